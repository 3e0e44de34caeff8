"""A kernel's text, and so its name, is the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = """
import json
from tests.golden.__main__ import kernels, texts
print(json.dumps([dict(texts()), kernels("resnet_small"), kernels("gpt2_2layer")]))
"""


@pytest.mark.full
def test_texts_and_names_do_not_depend_on_the_process() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", CODE],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
