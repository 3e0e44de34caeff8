"""Recognize what a file is by its first and last bytes, and say what to do with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from scheduler.frontends.file_kinds import ARCHIVE, KINDS, UNKNOWN, FileKind, Use
from scheduler.frontends.file_sample import Sample, read_sample, unpack_sample
from scheduler.text import one_line

_SHOWN_NAME = 80
_SHOWN_MEMBERS = 3


@dataclass(frozen=True)
class Recognition:
    """What a file is. ``packing`` is the compression around it, ``members`` the names in an archive
    of unknown content."""

    file: str
    kind: FileKind
    packing: str = ""
    members: tuple[str, ...] = ()

    @property
    def use(self) -> Use:
        """What Kiln imports the file as: of compressed files, only results."""
        return Use.NONE if self.packing and self.kind.use is not Use.RESULTS else self.kind.use

    @property
    def title(self) -> str:
        """What the file is: ``a JSON file, compressed with gzip``."""
        packed = f", compressed with {self.packing}" if self.packing else ""
        return f"{self.kind.title}{packed}"

    @property
    def advice(self) -> str:
        """What to do with it."""
        if self.packing and self.use is Use.NONE:
            return f"Unpack the file first. {self.kind.advice}"
        if self.members:
            names = ", ".join(one_line(name, _SHOWN_NAME) for name in self.members[:3])
            rest = f" and {len(self.members) - 3} more" if len(self.members) > 3 else ""
            return f"It contains {names}{rest}. {self.kind.advice}"
        return self.kind.advice

    @property
    def code(self) -> str:
        """The lines of Python that make a file for Kiln; "" if there are none."""
        quoted = '"' + re.sub(r"[^\w .()+-]", "_", one_line(self.file, _SHOWN_NAME)) + '"'
        return self.kind.code.replace("{file}", quoted)

    @property
    def sentence(self) -> str:
        """All of it in one line, for a terminal."""
        code = f" In Python: {'; '.join(self.code.splitlines())}" if self.code else ""
        return f"{self.title}. {self.advice}{code}"


def recognize(sample: Sample) -> Recognition:
    """Return what the sampled file is: the first kind that matches."""
    content, packing = unpack_sample(sample)
    kind = next((kind for kind in KINDS if kind.matches(content)), UNKNOWN)
    return Recognition(sample.name, kind, packing, content.members if kind is ARCHIVE else ())


def recognize_beginning(name: str, head: bytes) -> Recognition | None:
    """Return what a file is by its first bytes alone; None if that needs its end, as for archives,
    compressed files and texts."""
    sample = Sample(name, len(head), head, b"")
    is_text = bool(sample.text)
    is_archive = head.startswith(b"PK") or bool(unpack_sample(sample)[1])
    return None if is_text or is_archive else recognize(sample)


def recognize_file(path: Path) -> Recognition:
    """Return what a file or a folder is. Raises ``OSError``."""
    return recognize(read_sample(path))
