"""One module of this process, and of those that it starts, with a fault in it (tests/mutants.py).

Python loads this first where the folder is in ``PYTHONPATH``. ``KILN_MUTANT`` is the number of the
mutant in ``tests/mutants.toml``: its file is compiled anew with the replaced text each time it is
imported, so that neither the file nor byte code of it is written or read. Processes that are
started without their environment (``python -I``) have no fault in them.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tomllib
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

_ROOT = Path(__file__).resolve().parents[3]


class _Loader(SourceFileLoader):
    """Compiles the file's text with the one place replaced."""

    def __init__(self, name: str, path: str, old: str, new: str) -> None:
        super().__init__(name, path)
        self._old, self._new = old, new

    def get_code(self, fullname: str) -> CodeType:
        """The code, never from a cache and never written to one."""
        text = Path(self.path).read_text(encoding="utf-8")
        if text.count(self._old) != 1:
            raise ImportError(f"{self.path}: the mutant's text is not there exactly once")
        return compile(text.replace(self._old, self._new), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    """Finds the one module before any other finder does."""

    def __init__(self, file: str, old: str, new: str) -> None:
        self._path = _ROOT / file
        self._name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self._texts = old, new

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = _Loader(fullname, str(self._path), *self._texts)
        return importlib.util.spec_from_file_location(fullname, self._path, loader=loader)


def _install(number: int) -> None:
    mutants = tomllib.loads((_ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    mutant = mutants["mutant"][number - 1]
    sys.meta_path.insert(0, _Finder(mutant["file"], mutant["old"], mutant["new"]))


if os.environ.get("KILN_MUTANT"):
    _install(int(os.environ["KILN_MUTANT"]))
