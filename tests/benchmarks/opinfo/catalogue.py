"""What torch says of its ops, for docs/ops.md: Core ATen, and which samples export to which op.

    python -m tests.benchmarks.opinfo.catalogue

writes scheduler/lowering/ops/catalogue.json. Some minutes: two samples of each entry of OpInfo are
exported, as they are and decomposed, all samples of all types are counted.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from scheduler.ir.ops import functional_target
from tests.benchmarks.opinfo.database import Use, database, dtypes_of, spread, uses
from tests.benchmarks.opinfo.exporting import NotExportedError, exported_program

FILE = Path(__file__).parents[3] / "scheduler" / "lowering" / "ops" / "catalogue.json"
_TOGETHER = 40


def core() -> list[str]:
    """The targets of Core ATen: every overload with torch's own tag.

    By the dispatcher's names: the namespace lists a few of its ops once they are asked for.
    """
    names = {name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")}
    packets = {name.removeprefix("aten::").partition(".")[0] for name in names}
    overloads = (
        getattr(packet, overload)
        for packet in (getattr(torch.ops.aten, name) for name in sorted(packets))
        for overload in packet.overloads()
    )
    return [str(overload) for overload in overloads if torch.Tag.core in overload.tags]


def samples() -> dict[str, dict[str, int]]:
    """How many samples each entry has, by type."""
    return {
        op: {dtype: sum(1 for _ in uses(op, dtype)) for dtype in dtypes_of(op)} for op in database()
    }


def entries() -> dict[str, list[str]]:
    """By target the entries that export to it, in their order."""
    found: dict[str, dict[str, None]] = {}
    chosen = [use for op in database() for use in _two(op)]
    for start in range(0, len(chosen), _TOGETHER):
        for decompose in (False, True):
            for use, target in _targets(chosen[start : start + _TOGETHER], decompose):
                found.setdefault(functional_target(target), {})[use.op] = None
    return {target: list(names) for target, names in sorted(found.items())}


def _two(op: str) -> list[Use]:
    dtypes = dtypes_of(op)
    if not dtypes:
        return []
    found = list(uses(op, "f32" if "f32" in dtypes else dtypes[0]))
    return [found[place] for place in spread(len(found), 2)]


def _targets(chosen: Sequence[Use], decompose: bool) -> Iterator[tuple[Use, str]]:
    """Ops of each use; a use that torch does not export has none."""
    if not chosen:
        return
    try:
        program = exported_program(chosen, decompose)
    except NotExportedError as error:
        if len(chosen) > 1:
            stopped = error.place is not None
            place = error.place if error.place is not None else len(chosen) // 2
            yield from _targets(chosen[:place], decompose)
            yield from _targets(chosen[place + stopped :], decompose)
        return
    owners: dict[str, Use] = {}
    given = iter(program.graph_signature.user_inputs)
    for use in chosen:
        owners |= {str(next(given)): use for _ in use.tensors}
    for node in program.graph.nodes:
        owner = next((owners[n.name] for n in node.all_input_nodes if n.name in owners), None)
        if owner is None:
            continue
        owners[node.name] = owner
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            yield owner, str(node.target)


def main() -> int:
    """Write the file."""
    torch.set_num_threads(1)
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    content: dict[str, Any] = {
        "torch": torch.__version__.partition("+")[0],
        "core": core(),
        "entries": entries(),
        "samples": samples(),
    }
    FILE.write_text(_one_a_line(content))
    return 0


def _one_a_line(content: dict[str, Any]) -> str:
    """As JSON, each entry of its tables on a line of its own."""
    parts = [
        f'"{name}": {{\n'
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in value.items())
        + "\n }"
        if isinstance(value, dict)
        else f'"{name}": {json.dumps(value)}'
        for name, value in content.items()
    ]
    return "{\n " + ",\n ".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
