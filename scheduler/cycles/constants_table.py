"""The table of the model's constants as people read it: the end of docs/model.md.

    python -m scheduler.cycles.constants_table [--check]

writes it anew from ``targets``; what stands before its heading is kept. ``--check`` writes
nothing and exits with 1 where the table is not current.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from scheduler.cycles.constants import machine
from scheduler.targets import cycle_model, find
from scheduler.targets.cycle_model import Constant
from scheduler.targets.modelled import TARGETS

DOCUMENT = Path(__file__).parents[2] / "docs" / "model.md"
HEADING = "## Constants"
ESTIMATE = "estimate"

MEANINGS: Mapping[str, str] = {
    "cadence": "interval between issue slots of a SIMD",
    "vector": "vector pipe occupied by a vector instruction",
    "vector_latency": "latency of a vector instruction's result",
    "transcendental": "vector pipe occupied by a transcendental (exp, log, sqrt, sin)",
    "double": "vector pipe occupied by a double-precision instruction",
    "quarter": "vector pipe occupied at a quarter of the rate (32-bit integer products)",
    "matrix_read": "latency of a matrix result for other instructions",
    "matrix_chain": "latency of a matrix result as the next accumulator",
    "scalar": "scalar pipe occupied by a scalar instruction",
    "branch": "delay of a taken branch",
    "barrier": "release of a barrier",
    "block_start": "start of a block after another ended",
    "lds_latency": "latency of LDS, without conflicts and queue",
    "lds_port": "width of an LDS port",
    "lds_queue": "maximum queue before an LDS port",
    "address": "address unit occupied by a vector memory instruction",
    "l1_bytes_cycle": "L1 bandwidth",
    "l1_latency": "latency of L1",
    "l2_bytes_cycle": "L2 bandwidth",
    "l2_latency": "latency of L2",
    "memory_latency": "latency of memory",
    "memory_queue": "maximum queue before the address unit",
    "memory_share": "achievable share of the board's bandwidth",
    "last_level_bytes_s": "Infinity Cache bandwidth",
    "scalar_latency": "latency of scalar loads",
    "fetch_latency": "latency of instruction fetches",
    "fetch_ahead": "instruction prefetch",
    "launch_us": "interval between launches; not part of a modelled time",
    "matrix_clock": "clock while the matrix pipes are busy",
}


def constant_rows() -> Iterator[tuple[str, tuple[str, ...], Constant]]:
    """Yield each constant with the targets that share its value, in the order of ``Machine``."""
    constants_of = {target: machine(find(target)).constants() for target in TARGETS}
    for name in constants_of[TARGETS[0]]:
        targets_by_constant: dict[Constant, list[str]] = {}
        for target in TARGETS:
            targets_by_constant.setdefault(constants_of[target][name], []).append(target)
        for constant, targets in targets_by_constant.items():
            yield name, tuple(targets), constant


def render_section() -> str:
    """Return the section of docs/model.md, starting at its heading."""
    rows = list(constant_rows())
    without = sum(constant.source.startswith(ESTIMATE) for _, _, constant in rows)
    lines = [
        HEADING,
        "",
        "Written by `python -m scheduler.cycles.constants_table` from"
        " `scheduler/targets/`. Cycles are cycles of the compute unit's clock. A"
        " constant with a range has a value at the end that makes kernels fast, in the middle,"
        " and at the slow end; a time's band"
        " has all of them at one end together. Clocks, units, caches and peak bandwidth of the"
        " boards are AMD's own, cycles of matrix instructions in"
        f" `scheduler/cycles/matrix.py`. {without} of these {len(rows)} rows"
        f" are called an *{ESTIMATE}*: their values have no document or measurement as a"
        " source.",
        "",
        "| constant | what | targets | fast | middle | slow | unit | source |",
        "|---|---|---|--:|--:|--:|---|---|",
    ]
    for name, targets, constant in rows:
        values = (
            f"{value / 1e12:g}e12" if value >= 1e12 else f"{value:.4g}"
            for value in (constant.fast, constant.mid, constant.slow)
        )
        source = re.sub(rf"^{ESTIMATE}\b", f"*{ESTIMATE}*", constant.source)
        whose = "all" if targets == TARGETS else ", ".join(targets)
        cells = (f"`{name}`", MEANINGS[name], whose, *values, constant.unit, source)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "Sources, as the rows name them:", ""]
    # They are listed in the module's docstring.
    listed = (cycle_model.__doc__ or "").partition("as the rows name them:")[2]
    for entry in re.split(r"^\* ", listed, flags=re.MULTILINE)[1:]:
        lines.append(f"- {' '.join(entry.split())}")
    return "\n".join([*lines, ""])


def update_document(document: str) -> str:
    """Return the document with the current table."""
    return document.partition(f"{HEADING}\n")[0].rstrip() + "\n\n" + render_section()


def main() -> int:
    """Write the table, or check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    there = DOCUMENT.read_text()
    if not options.check:
        DOCUMENT.write_text(update_document(there))
        return 0
    if there != update_document(there):
        sys.stderr.write("docs/model.md: run python -m scheduler.cycles.constants_table\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
