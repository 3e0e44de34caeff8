"""A recipe of ARCHITECTURE.md, followed in a copy of the engine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Recipe:
    """Edits a copy of ``scheduler/``, only in files that the recipe names, and runs Python in it.

    What works then needs no change that the recipe does not mention.
    """

    def __init__(self, title: str, folder: Path) -> None:
        recipes = (ROOT / "ARCHITECTURE.md").read_text()
        text = recipes.split(f"### {title}\n")[1].split("\n### ")[0]
        self._code = set(re.findall(r"`([^`]+)`", text))
        self.folder = folder
        # With compiled modules, which are valid for the sources' modification times.
        shutil.copytree(ROOT / "scheduler", folder / "scheduler", copy_function=shutil.copy2)

    def insert(self, file: str, before: str, text: str) -> None:
        """Insert text before the first line that begins so."""
        self.replace(file, f"\n{before}", f"\n{text}{before}")

    def replace(self, file: str, old: str, new: str) -> None:
        """Replace the first occurrence of a text."""
        content = (self.folder / file).read_text()
        assert old in content, f"{file} does not contain {old!r}"
        self.write(file, content.replace(old, new, 1))

    def write(self, file: str, text: str) -> None:
        """Write a whole file."""
        folder, _, name = file.rpartition("/")
        is_named = {f"{folder}/", name} <= self._code or any(
            fnmatch(file, re.sub("<[^>]+>", "*", one)) for one in self._code
        )
        assert is_named, f"the recipe does not name {file}"
        (self.folder / file).write_text(text)

    def step(self, module: str) -> None:
        """Run a program that the recipe names."""
        assert f"python -m {module}" in self._code
        self.run("-m", module)

    def run(self, *arguments: str) -> str:
        """Return what Python prints, run in the copy."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(self.folder), str(ROOT)))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
