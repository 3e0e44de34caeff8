"""How a backend builds for its targets: the compiler, the steps, and the names of the output
files."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from scheduler.build.elf import dynamic_symbols
from scheduler.build.flags import Flags
from scheduler.build.includes import included_digest
from scheduler.build.model import Build, Diagnostic, Toolchain
from scheduler.build.sandbox_paths import HEADER_ROOT
from scheduler.errors import UserError
from scheduler.targets import Target, find
from scheduler.targets.registry import backend_of, load_part


@dataclass(frozen=True)
class Step:
    """One command, and the files to prepare from earlier steps before it runs.

    Names in a command are relative and fixed, so that the output is the same in any folder.
    """

    command: tuple[str, ...]
    before: Callable[[Path], None] | None = None
    output: str = ""
    """The file that receives the command's output; "": the log does."""


class Recipe(ABC):
    """How a backend's sources become what a device loads. Files are names within one folder."""

    version: ClassVar[str]
    """Incremented when anything besides the commands changes: the record, the checks."""

    source_file: ClassVar[str]
    listing_file: ClassVar[str]
    listing_title: ClassVar[str] = "Listing"
    library_file: ClassVar[str]
    """The shared library with the exported function: what a device loads."""

    code_object_file: ClassVar[str] = ""
    """The device code alone, for users' own launchers; "" if there is none."""

    code_object_title: ClassVar[str] = "Code object"

    intermediate_file: ClassVar[str] = ""
    """The text between source and listing, for inspection (PTX); "" if there is none."""

    intermediate_title: ClassVar[str] = ""

    remedy: ClassVar[str] = "install the ziglang package"
    """What a person does if no compiler is available."""

    without_code_object: ClassVar[str] = ""
    """Message about a build whose compiler left no code object: its listing is then the
    intermediate text."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that may be kept of a build: listing, code object, library and intermediate
        file."""
        names = (self.listing_file, self.code_object_file, self.library_file)
        return tuple(name for name in (*names, self.intermediate_file) if name)

    def files_with(self, toolchain: Toolchain) -> tuple[str, ...]:  # noqa: ARG002 - all make all
        """Return the files that a build with this compiler has."""
        return self.files

    @property
    def code_file(self) -> str:
        """The file that holds the kernels' code, whose digest identifies it."""
        return self.code_object_file or self.library_file

    @abstractmethod
    def obstacle(self, toolchain: Toolchain) -> str:
        """Return why this compiler cannot build, or ""."""

    def ignored_flags(self, flags: Flags) -> tuple[str, ...]:  # noqa: ARG002 - most take all
        """Return allowed flags that have no effect here: they are for other targets' compilers."""
        return ()

    @abstractmethod
    def steps(
        self, target: Target, toolchain: Toolchain, flags: Flags, symbol: str
    ) -> tuple[Step, ...]:
        """Return the steps, in order; ``symbol`` is the name that the library must export."""

    def included_digest(self, source: str) -> str:  # noqa: ARG002 - most read nothing else
        """Return the digest of the files that a build reads besides the source and the compiler's
        own."""
        return ""

    @abstractmethod
    def prepare(self, directory: Path, toolchain: Toolchain) -> None:
        """Place the inputs of the commands beside the source, as links."""

    @abstractmethod
    def load_error(self, directory: Path, symbol: str) -> str:
        """Return an error that would otherwise appear only when the library is loaded, or ""."""

    @abstractmethod
    def resources(self, directory: Path, target: Target) -> Mapping[str, Mapping[str, Any]]:
        """Return the resources of each device function, in the vendor's own terms (JSON types),
        read from the build's files; empty if nothing is known."""

    @abstractmethod
    def diagnostics(self, log: str) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of the kernel's own source, each once, in the log's order."""


class LibraryRecipe(Recipe):
    """A source in any language with our headers; the library exports its function."""

    may_leave_open: ClassVar[re.Pattern[str] | None] = None
    """Symbols that the loading process provides to the library; None: its linker checks them."""

    header_folders: ClassVar[tuple[str, ...]]
    """Folders of our headers that a source's includes are searched in, in order."""

    def included_digest(self, source: str) -> str:
        return included_digest(source, self.header_folders)

    def prepare(self, directory: Path, toolchain: Toolchain) -> None:
        (directory / "include").symlink_to(HEADER_ROOT)
        if toolchain.builtin_headers:
            (directory / "builtin").symlink_to(toolchain.builtin_headers)

    def load_error(self, directory: Path, symbol: str) -> str:
        symbols = dynamic_symbols((directory / self.library_file).read_bytes())
        if symbol not in symbols.defined:
            return f"the source does not export {symbol}"
        if self.may_leave_open is None:
            return ""
        unknown = sorted(
            name for name in symbols.undefined if not self.may_leave_open.fullmatch(name)
        )
        return f"undefined symbols: {', '.join(unknown)}" if unknown else ""

    def diagnostics(self, log: str) -> tuple[Diagnostic, ...]:
        return parse_diagnostics(log, self.source_file)


def parse_diagnostics(log: str, source_file: str) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the kernel's own source, each once, in the log's order.

    Lines are ``file:line:column: severity: message``, as clang and gcc write them. The device and
    the host pass read the same text, so both may report the same.
    """
    line = rf"^{re.escape(source_file)}:(\d+):(\d+): (?:fatal )?(error|warning|note): (.*)$"
    diagnostics = (
        Diagnostic(match[3], int(match[1]), int(match[2]), match[4])
        for match in re.finditer(line, log, re.MULTILINE)
    )
    return tuple(dict.fromkeys(diagnostics))


def recipe_of(target: Target, source_file: str = "") -> Recipe:
    """Return the recipe of the target's backend for sources with that file name; without a name,
    for those of its base scheduling. Raises ``UserError`` if the backend builds no such sources."""
    backend = backend_of(target)
    recipe: Recipe = load_part(backend.recipe)
    if source_file in ("", recipe.source_file):
        return recipe
    other_recipes: Iterable[Recipe] = map(load_part, backend.recipes)
    recipe_for_file = next(
        (other for other in other_recipes if other.source_file == source_file), None
    )
    if recipe_for_file is None:
        raise UserError(f"{source_file} cannot be built for {target.name}: choose another target")
    return recipe_for_file


def can_build(target: Target, source_file: str) -> bool:
    """Whether the target has a recipe for such sources."""
    backend = backend_of(target)
    return any(
        load_part(recipe_name).source_file == source_file
        for recipe_name in (backend.recipe, *backend.recipes)
    )


def listing_of(build: Build) -> Path:
    """Return the file of a build that shows its instructions."""
    return build.directory / recipe_of(find(build.target), build.source_file).listing_file


def library_of(build: Build) -> Path:
    """Return the file of a build that a device loads."""
    return build.directory / recipe_of(find(build.target), build.source_file).library_file
