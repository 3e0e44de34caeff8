"""How a backend builds for its targets: with which compiler, by which steps, and what
the files that come of it are called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from scheduler.build.flags import Flags
from scheduler.build.model import Build, Diagnostic, Toolchain
from scheduler.errors import UserError
from scheduler.targets import Target, find
from scheduler.targets.registry import backend_of, load_part


@dataclass(frozen=True)
class Step:
    """One command, and what is made of the earlier steps' files before it runs.

    Names in a command are relative and fixed, so that the output is the same in any folder.
    """

    command: tuple[str, ...]
    before: Callable[[Path], None] | None = None
    output: str = ""
    """The file that takes what the command prints; "": the log does."""


class Recipe(ABC):
    """How a backend's sources become what a device loads. Files are names within one folder."""

    version: ClassVar[str]
    """Counts up when what is made beside the commands changes: the record, the checks."""

    source_file: ClassVar[str]
    listing_file: ClassVar[str]
    listing_title: ClassVar[str] = "Listing"
    library_file: ClassVar[str]
    """The shared library with the exported function: what a device loads."""

    code_object_file: ClassVar[str] = ""
    """The device code by itself, for launchers of one's own; "" where there is none."""

    code_object_title: ClassVar[str] = "Code object"

    intermediate_file: ClassVar[str] = ""
    """The text between source and listing that a person may want to see (PTX); "" where there is
    none."""

    intermediate_title: ClassVar[str] = ""

    remedy: ClassVar[str] = "install the ziglang package"
    """What a person does where no compiler is there."""

    without_code_object: ClassVar[str] = ""
    """What is said of a build whose compiler left no code object: its listing is the text in
    between then."""

    @property
    def files(self) -> tuple[str, ...]:
        """What may be kept of a build: listing, code object, library, and what lies between."""
        kept = (self.listing_file, self.code_object_file, self.library_file)
        return tuple(name for name in (*kept, self.intermediate_file) if name)

    def files_with(self, toolchain: Toolchain) -> tuple[str, ...]:  # noqa: ARG002 - all make all
        """Those that a build with this compiler has."""
        return self.files

    @property
    def code_file(self) -> str:
        """The one that holds the kernels' code, whose digest identifies it."""
        return self.code_object_file or self.library_file

    @abstractmethod
    def obstacle(self, toolchain: Toolchain) -> str:
        """Why this compiler cannot build; "" where it can."""

    def ignored_flags(self, flags: Flags) -> tuple[str, ...]:  # noqa: ARG002 - most take all
        """Allowed flags that would change nothing here: they are for other targets' compilers."""
        return ()

    @abstractmethod
    def steps(
        self, target: Target, toolchain: Toolchain, flags: Flags, symbol: str
    ) -> tuple[Step, ...]:
        """What is done, in order; ``symbol`` is what the library must export."""

    def included_digest(self, source: str) -> str:  # noqa: ARG002 - most read nothing else
        """Of what a build of the source reads beside it, other than the compiler's own files."""
        return ""

    @abstractmethod
    def prepare(self, directory: Path, toolchain: Toolchain) -> None:
        """Lay what the commands need beside the source, as links."""

    @abstractmethod
    def load_error(self, directory: Path, symbol: str) -> str:
        """What would only be found when the library is loaded; "" where nothing is wrong."""

    @abstractmethod
    def resources(self, directory: Path, target: Target) -> Mapping[str, Mapping[str, Any]]:
        """The resources of each device function, in the maker's own terms (JSON's own types),
        read from the files of the build; empty where nothing is known."""

    @abstractmethod
    def diagnostics(self, log: str) -> tuple[Diagnostic, ...]:
        """The diagnostics of the kernel's own source, each once, in the log's order."""


def recipe_of(target: Target, source_file: str = "") -> Recipe:
    """The recipe of the target's backend for sources that are called so; for those of its base
    scheduling where no name is given. ``UserError`` where the backend builds no such sources."""
    backend = backend_of(target)
    recipe: Recipe = load_part(backend.recipe)
    if source_file in ("", recipe.source_file):
        return recipe
    others: Iterable[Recipe] = map(load_part, backend.recipes)
    found = next((one for one in others if one.source_file == source_file), None)
    if found is None:
        raise UserError(f"nothing builds {source_file} for {target.name}: choose another target")
    return found


def can_build(target: Target, source_file: str) -> bool:
    """Whether anything builds such sources for the target."""
    backend = backend_of(target)
    return any(
        load_part(one).source_file == source_file for one in (backend.recipe, *backend.recipes)
    )


def library_of(build: Build) -> Path:
    """What a device loads of a build."""
    return build.directory / recipe_of(find(build.target), build.source_file).library_file
