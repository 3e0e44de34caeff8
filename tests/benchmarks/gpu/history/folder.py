"""What is taken to the machine with the GPU: kernels of commits, each code object once.

history.json             samples, target, the commits with what was built of each
commits/<commit>/<sample>-<language>/manifest.json
code/<digest>/           a library, and build.json; the digest is the library's
sources/<digest>         a kernel's text
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scheduler import samples
from scheduler.codegen import bundle_paths
from scheduler.errors import UserError

INDEX = "history.json"


@dataclass(frozen=True)
class Sample:
    """A model by its name, or a file, at these sizes; of its kernels those that compute one of the
    graph's ``nodes``, all where none is named."""

    name: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        """Raises ``UserError`` for a name that no sample has."""
        try:
            return Path(self.name) if self.name.endswith(".pt2") else samples.path(self.name)
        except KeyError:
            known = ", ".join(samples.names())
            raise UserError(f"there is no sample {self.name}: {known}") from None

    @property
    def key(self) -> str:
        return self.file.stem


@dataclass(frozen=True)
class Kernel:
    """``code`` is the digest of the device's code, ``library`` the file's path in the folder,
    ``source`` the text's file below ``sources/``. ``instructions`` is the digest of the code
    without names, which change with a comment: what differs there runs differently."""

    code: str
    library: str
    source: str
    instructions: str


@dataclass(frozen=True)
class Commit:
    """``bundles`` are named by sample and language, their kernels as in their manifests. ``date``
    is the commit's, later than that of the one before it in Git's order: by a microsecond where
    Git says the same or an earlier one. Nothing is kept of a commit that ``left_out`` says why it
    is not measured; ``said`` is what could not be built of it, and why. ``as_before``: its kernels
    have the instructions of the commit before, so that a change of their times is none of theirs.
    ``rendered_for`` is the target that the commit's engine wrote the sources for where it did not
    know the history's yet: today's compiler and headers built them."""

    commit: str
    date: str
    subject: str
    bundles: dict[str, dict[str, Kernel]] = field(default_factory=dict)
    left_out: str = ""
    said: dict[str, str] = field(default_factory=dict)
    as_before: bool = False
    rendered_for: str = ""


@dataclass
class History:
    """``flags`` are the compilers'."""

    samples: list[Sample]
    target: str
    flags: str
    commits: list[Commit] = field(default_factory=list)

    @property
    def measured(self) -> list[Commit]:
        """Those that could be built."""
        return [one for one in self.commits if not one.left_out]

    def with_controls(self, count: int) -> History:
        """Only so many of the commits in a row that left the kernels as they were: what is found
        at one of them is a false alarm, and a hundred of them say no more than twenty."""
        kept, row = [], 0
        for one in self.measured:
            row = row + 1 if one.as_before else 0
            if row <= count:
                kept.append(one)
        return History(self.samples, self.target, self.flags, kept)

    def kernels(self) -> Iterator[tuple[Commit, str, str, Kernel]]:
        """All that are measured, each with its commit, its bundle, and its name."""
        for commit in self.measured:
            for bundle, kernels in commit.bundles.items():
                for name, kernel in kernels.items():
                    yield commit, bundle, name, kernel

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / INDEX).write_text(json.dumps(asdict(self), indent=1) + "\n")


def load(folder: Path) -> History:
    """Raises ``UserError`` where nothing was prepared."""
    path = folder / INDEX
    if not path.is_file():
        raise UserError(f"{folder}: {INDEX} is missing: prepare it first")
    data = json.loads(path.read_text())
    named = [Sample(one["name"], one["sizes"], tuple(one["nodes"])) for one in data["samples"]]
    return History(named, data["target"], data["flags"], [*map(_commit, data["commits"])])


def manifest_folder(folder: Path, commit: Commit, bundle: str) -> Path:
    """Where a commit's bundle has its manifest."""
    return folder / "commits" / commit.commit / bundle


def build_json(folder: Path, kernel: Kernel) -> dict[str, Any]:
    """What made a kernel's library."""
    record = (folder / kernel.library).with_name(bundle_paths.BUILD_RECORD)
    found: dict[str, Any] = json.loads(record.read_text())
    return found


def _commit(row: dict[str, Any]) -> Commit:
    bundles = {
        bundle: {name: Kernel(**one) for name, one in kernels.items()}
        for bundle, kernels in row["bundles"].items()
    }
    return Commit(**{**row, "bundles": bundles})
