"""The common part of recipes that link a library from a source with our headers, in any
language."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from scheduler.build.diagnostics import parse_diagnostics
from scheduler.build.elf import dynamic_symbols
from scheduler.build.includes import included_digest
from scheduler.build.model import Diagnostic, Toolchain
from scheduler.build.recipe import Recipe
from scheduler.build.sandbox_paths import HEADERS


class LibraryRecipe(Recipe):
    """A source with our headers, and a shared library that exports its function."""

    may_leave_open: ClassVar[re.Pattern[str] | None] = None
    """Symbols that the loading process provides to the library; None: its linker checks them."""

    header_folders: ClassVar[tuple[str, ...]]
    """Folders of our headers that a source's includes are searched in, in order."""

    def included_digest(self, source: str) -> str:
        return included_digest(source, self.header_folders)

    def prepare(self, directory: Path, toolchain: Toolchain) -> None:
        (directory / "include").symlink_to(HEADERS)
        if toolchain.builtin_headers:
            (directory / "builtin").symlink_to(toolchain.builtin_headers)

    def load_error(self, directory: Path, symbol: str) -> str:
        symbols = dynamic_symbols((directory / self.library_file).read_bytes())
        if symbol not in symbols.defined:
            return f"the source does not export {symbol}"
        if self.may_leave_open is None:
            return ""
        unknown = sorted(n for n in symbols.undefined if not self.may_leave_open.fullmatch(n))
        return f"undefined symbols: {', '.join(unknown)}" if unknown else ""

    def diagnostics(self, log: str) -> tuple[Diagnostic, ...]:
        return parse_diagnostics(log, self.source_file)
