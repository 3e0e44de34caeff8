"""The ops that the engine knows, as ``docs/ops.md`` has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from scheduler.lowering.ops.table import TableRow, catalogue, table

PAGE = 200
KERNEL, REFERENCE = "kernel", "reference"
MADE_BY = (KERNEL, REFERENCE)


@dataclass(frozen=True)
class OpRow:
    """One op. ``kernel`` is the family of rules that makes its kernels, "view" for one that needs
    none; ``reason`` says why it is left to the reference. Both are empty for an op of Core ATen
    that is not read.

    ``dtypes`` are those of the OpInfo samples that it is judged by, ``samples`` counts these,
    ``entries`` names their entries in OpInfo.
    """

    name: str
    overloads: tuple[str, ...]
    core: bool
    kernel: str
    reason: str
    dtypes: tuple[str, ...]
    samples: int
    entries: tuple[str, ...]


@dataclass(frozen=True)
class OpList:
    """Ops by name, ``PAGE`` at a time from ``start``: ``found`` of ``total`` are as asked for.
    ``kernels`` counts those with kernels, ``references`` those left to the reference,
    ``core_total`` those of Core ATen, by torch ``torch``."""

    words: str
    made_by: str
    core: bool
    torch: str
    total: int
    kernels: int
    references: int
    core_total: int
    found: int
    start: int
    ops: tuple[OpRow, ...]

    @property
    def any(self) -> bool:
        """Whether anything narrows the list."""
        return bool(self.words or self.made_by or self.core)

    @property
    def previous(self) -> int | None:
        """Where the page before this one starts; None on the first."""
        return max(0, self.start - PAGE) if self.start else None

    @property
    def end(self) -> int:
        """The position behind the last op shown."""
        return self.start + len(self.ops)

    @property
    def more(self) -> bool:
        """Whether there are ops behind those shown."""
        return self.end < self.found


def op_list(words: str = "", made_by: str = "", core: bool = False, start: int = 0) -> OpList:
    """The ops that have all of these words, are computed by kernels (``KERNEL``) or left to the
    reference (``REFERENCE``), and are of Core ATen where ``core`` is set (no queries)."""
    sought = words.lower().split()
    found = [
        row
        for row, text in _rows()
        if all(word in text for word in sought)
        and (made_by != KERNEL or row.kernel)
        and (made_by != REFERENCE or row.reason)
        and (row.core or not core)
    ]
    every = [row for row, _ in _rows()]
    return OpList(
        words=words,
        made_by=made_by,
        core=core,
        torch=catalogue()["torch"],
        total=len(every),
        kernels=sum(bool(row.kernel) for row in every),
        references=sum(bool(row.reason) for row in every),
        core_total=sum(row.core for row in every),
        found=len(found),
        start=start,
        ops=tuple(found[start : start + PAGE]),
    )


@cache
def _rows() -> tuple[tuple[OpRow, str], ...]:
    """Every op with the text that words are looked for in; it stays while the process runs."""
    return tuple((row, _text(row)) for row in map(_row, table()))


def _row(row: TableRow) -> OpRow:
    return OpRow(
        name=row.name,
        overloads=row.overloads,
        core=row.core,
        kernel=row.kernel,
        reason=row.reason,
        dtypes=row.dtypes,
        samples=row.samples,
        entries=row.entries,
    )


def _text(row: OpRow) -> str:
    targets = (f"{row.name}.{overload}" for overload in row.overloads)
    return "\n".join((row.name, *targets, row.kernel, row.reason, *row.dtypes)).lower()
