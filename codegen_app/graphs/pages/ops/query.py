"""The ops that the engine knows, as in ``docs/ops.md``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from codegen_app.web.row import build_row
from codegen_app.web.tables import Column, Kind, Table, TableQuery, build_table
from scheduler.lowering.ops.table import catalogue, table

PAGE_SIZE = 200
KERNEL, REFERENCE = "kernel", "reference"
MADE_BY = (KERNEL, REFERENCE)


@dataclass(frozen=True)
class OpRow:
    """One op. ``kernel`` is the family of rules that generates its kernels, "view" for an op
    without a kernel; ``reason`` says why it is left to the reference. Both are empty for an op of
    Core ATen that is not supported.

    ``dtypes`` are those of the OpInfo samples that test it, ``samples`` counts these, ``entries``
    names their entries in OpInfo.
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
    """Ops by name, ``PAGE_SIZE`` at a time from ``start``: ``found`` of ``total`` match.
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
        """Whether the list is filtered."""
        return bool(self.words or self.made_by or self.core)


def computed_by(row: OpRow) -> str:
    """Return the family of rules that generates its kernels, or why there is none."""
    if row.kernel:
        return row.kernel
    return f"reference only: {row.reason}" if row.reason else "not supported"


COLUMNS: tuple[Column[OpRow], ...] = (
    Column("op", "Op", lambda row: row.name, Kind.CODE),
    Column(
        "target",
        "Full overloads",
        lambda row: " ".join(_targets(row)) or None,
        Kind.CODE,
        note="as in graphs: aten.add.Tensor",
        shown=False,
    ),
    Column("core", "Core ATen", lambda row: "core" if row.core else None, shown=False),
    Column("by", "Kernel family", computed_by, note="lowering rules that generate its kernels"),
    Column("types", "Types", lambda row: " ".join(row.dtypes) or None, Kind.CODE),
    Column("samples", "Samples", lambda row: row.samples or None, Kind.WHOLE, note="in OpInfo"),
    Column("entries", "OpInfo entries", lambda row: ", ".join(row.entries) or None, Kind.CODE),
    Column("overloads", "Overloads", lambda row: ", ".join(row.overloads) or None, Kind.CODE),
)


def op_list(
    words: str = "", made_by: str = "", core: bool = False, query: TableQuery | None = None
) -> tuple[OpList, Table[OpRow]]:
    """Return a table of the ops that have all of these words, are computed by kernels (``KERNEL``)
    or only by the reference (``REFERENCE``), and belong to Core ATen if ``core`` is set
    (no queries)."""
    search_words = words.lower().split()
    matching = [
        row
        for row, text in _rows()
        if all(word in text for word in search_words)
        and (made_by != KERNEL or row.kernel)
        and (made_by != REFERENCE or row.reason)
        and (row.core or not core)
    ]
    ops = [row for row, _ in _rows()]
    table_of_ops = build_table("ops", COLUMNS, matching, query or TableQuery(), PAGE_SIZE)
    page = OpList(
        words=words,
        made_by=made_by,
        core=core,
        torch=catalogue()["torch"],
        total=len(ops),
        kernels=sum(bool(row.kernel) for row in ops),
        references=sum(bool(row.reason) for row in ops),
        core_total=sum(row.core for row in ops),
        found=table_of_ops.matching,
        start=table_of_ops.start,
        ops=tuple(table_of_ops.rows),
    )
    return page, table_of_ops


@cache
def _rows() -> tuple[tuple[OpRow, str], ...]:
    """Return every op with its searchable text; cached for the process."""
    rows = [build_row(OpRow, row) for row in table()]
    texts = (
        "\n".join((row.name, *_targets(row), row.kernel, row.reason, *row.dtypes)).lower()
        for row in rows
    )
    return tuple(zip(rows, texts, strict=True))


def _targets(row: OpRow) -> Iterator[str]:
    """Yield its overloads as graphs name them."""
    return (f"{row.name}.{overload}" for overload in row.overloads)
