"""What is taken to the machine with the GPU: kernels of commits, each code object once.

history.json             the sample, the target, the commits with what was built of each
commits/<commit>/manifest.json
code/<digest>/           the library, and build.json
sources/<digest>         a kernel's text
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scheduler import samples
from scheduler.outcome import UserError

INDEX = "history.json"


@dataclass(frozen=True)
class Kernel:
    """``code`` names its folder below ``code/``, ``source`` its text's file below ``sources/``."""

    code: str
    library: str
    source: str


@dataclass(frozen=True)
class Commit:
    """``kernels`` by their names in its manifest. Nothing is kept of one that ``left_out`` says
    why it is not measured."""

    commit: str
    date: str
    subject: str
    kernels: dict[str, Kernel] = field(default_factory=dict)
    left_out: str = ""


@dataclass
class History:
    """``sample`` is a sample's name, or a file."""

    sample: str
    target: str
    flags: list[str]
    commits: list[Commit] = field(default_factory=list)

    @property
    def model(self) -> Path:
        """The sample's file. Raises ``UserError`` for a name that none has."""
        try:
            return Path(self.sample) if self.sample.endswith(".pt2") else samples.path(self.sample)
        except KeyError:
            known = ", ".join(samples.names())
            raise UserError(f"there is no sample {self.sample}: {known}") from None

    @property
    def measured(self) -> list[Commit]:
        """Those whose kernels differ from those of the one before."""
        return [one for one in self.commits if not one.left_out]

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / INDEX).write_text(json.dumps(asdict(self), indent=1) + "\n")


def load(folder: Path) -> History:
    """Raises ``UserError`` where nothing was prepared."""
    path = folder / INDEX
    if not path.is_file():
        raise UserError(f"{folder}: {INDEX} is missing: prepare it first")
    data = json.loads(path.read_text())
    return History(data["sample"], data["target"], data["flags"], [*map(_commit, data["commits"])])


def build_json(folder: Path, code: str) -> dict[str, Any]:
    """What made a code object."""
    found: dict[str, Any] = json.loads((folder / "code" / code / "build.json").read_text())
    return found


def _commit(row: dict[str, Any]) -> Commit:
    kernels = {name: Kernel(**one) for name, one in row["kernels"].items()}
    return Commit(row["commit"], row["date"], row["subject"], kernels, row["left_out"])
