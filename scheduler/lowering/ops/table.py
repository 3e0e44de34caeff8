"""The table of ops as people read it: docs/ops.md, and the page of ops.

    python -m scheduler.lowering.ops.table [--check]

writes docs/ops.md from the rows, and from ``catalogue.json``: what torch itself says of its ops
(which are Core ATen; which of its OpInfo samples export to which op, in which types), made by
``python -m tests.benchmarks.opinfo.catalogue``, which needs torch. ``--check`` writes nothing and
exits with 1 where the file is not current.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from scheduler.ir.ops import Elements, NoKernel, Op, functional_target
from scheduler.lowering.ops import ROWS

DOCUMENT = Path(__file__).parents[3] / "docs" / "ops.md"
_CATALOGUE = Path(__file__).with_name("catalogue.json")


@dataclass(frozen=True)
class TableRow:
    """One op. ``kernel`` is the family of rules that makes its kernels, or ``view`` if it needs
    none; ``reason`` states why it has no kernel.

    ``known`` is False for an op of Core ATen that has no row. ``dtypes`` are the engine's short
    names of the types that torch's CPU supports and OpInfo has samples of; ``samples`` counts those
    samples, ``entries`` names their entries in OpInfo.
    """

    name: str
    overloads: tuple[str, ...]
    core: bool
    known: bool
    kernel: str
    reason: str
    dtypes: tuple[str, ...]
    entries: tuple[str, ...]
    samples: int


@cache
def catalogue() -> Mapping[str, Any]:
    """The catalogue of torch's ops: ``torch`` (its version), ``core`` (targets), ``entries`` (by
    target, the names of OpInfo's entries that export to it), ``samples`` (by entry and type)."""
    contents: Mapping[str, Any] = json.loads(_CATALOGUE.read_text())
    return contents


@cache
def table() -> tuple[TableRow, ...]:
    """All ops by name: every row, and ops of Core ATen without a row."""
    core = set(catalogue()["core"])
    targets_with_row = {target for row in ROWS for target in row.targets}
    rows = [
        _described(row.name, tuple(row.signatures), not core.isdisjoint(row.targets), row)
        for row in ROWS
        if row.name.startswith("aten.")
    ]
    missing = sorted(t for t in core if functional_target(t) not in targets_with_row)
    rows += [_described(t, (t.split(".", 2)[2],), True, None) for t in missing]
    return tuple(sorted(rows, key=lambda row: row.name))


def _described(name: str, overloads: tuple[str, ...], core: bool, op: Op | None) -> TableRow:
    targets = op.targets if op is not None else (name,)
    entries, samples, dtypes = _samples_of(targets)
    reason = op.lowering.reason if op is not None and isinstance(op.lowering, NoKernel) else ""
    kernel = "" if op is None or reason else _kernel(op)
    return TableRow(name, overloads, core, op is not None, kernel, reason, dtypes, entries, samples)


def _kernel(op: Op) -> str:
    assert not isinstance(op.lowering, NoKernel)
    if op.elements in (Elements.VIEWED, Elements.RESHAPED, Elements.VIEWED_IF_CONTIGUOUS):
        return "view"
    return op.lowering.__module__.rpartition(".")[2].replace("_", " ")


def _samples_of(targets: tuple[str, ...]) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    """OpInfo's entries of an op, the number of their samples, and the samples' types."""
    entries_of_target, samples = catalogue()["entries"], catalogue()["samples"]
    entries = tuple(dict.fromkeys(entry for t in targets for entry in entries_of_target.get(t, ())))
    counts = [samples[entry] for entry in entries]
    dtypes = dict.fromkeys(dtype for count in counts for dtype in count)
    return entries, sum(sum(count.values()) for count in counts), tuple(dtypes)


def render_table() -> str:
    """The text of docs/ops.md."""
    rows = table()
    core = [row for row in rows if row.core]
    kernels = sum(bool(row.kernel) for row in rows)
    return "\n".join(
        (
            "# Ops",
            "",
            "Written by `python -m scheduler.lowering.ops.table`. For each op: its overloads; the"
            " family of rules that generates its kernels (a file in `scheduler/lowering/`; a view"
            " needs no kernel), or why the reference computes it; the element types of torch's"
            " OpInfo samples that test it, and their number (`python -m tests.benchmarks.opinfo`;"
            " over all OpInfo entries that export to the op). In-place forms (`add_`) use the rules"
            " of their functional forms.",
            "",
            (
                f"{len(rows)} ops, {kernels} with kernels; {len(core)} are Core ATen ops of "
                f"torch {catalogue()['torch']}."
            ),
            "",
            "| op | overloads | core | kernels | types | OpInfo samples |",
            "|---|---|---|---|---|---|",
            *map(_line, rows),
            "",
        )
    )


def _line(row: TableRow) -> str:
    kernel = row.kernel or (f"none: {row.reason}" if row.known else "not read")
    cells = (
        f"`{row.name.removeprefix('aten.')}`",
        ", ".join(row.overloads),
        "core" if row.core else "",
        kernel.replace("|", "\\|"),
        " ".join(row.dtypes),
        str(row.samples or ""),
    )
    return f"| {' | '.join(cells)} |"


def stale_lines(written: str) -> Iterator[str]:
    """Lines of the file that differ from the rows, one for each difference or missing line."""
    have, want = set(written.splitlines()), set(render_table().splitlines())
    yield from (f"not current: {line}" for line in sorted(have - want))
    yield from (f"lacks: {line}" for line in sorted(want - have))


def main() -> int:
    """Write the file, or check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    if not options.check:
        DOCUMENT.write_text(render_table())
        return 0
    differences = list(stale_lines(DOCUMENT.read_text()))
    sys.stderr.writelines(f"docs/ops.md {line}\n" for line in differences)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
