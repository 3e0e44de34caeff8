"""Writes one plain sentence on where a launch's time goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.cycles.report import InstructionFigures, Pipe, ResourceLimit, StallReason
from scheduler.isa.listing import Function

_BOUND = 0.6  # share of the time: a pipe at least this busy is called the bound
_WORTH_SAYING = 0.1
_CONFLICT = 1.15
_FEW_UNITS = 0.75
_ISSUE_BOUND = 0.6
_USED = 0.6
TIMES = "\N{MULTIPLICATION SIGN}"

_PIPES = {
    Pipe.MATRIX: "matrix instructions",
    Pipe.VECTOR: "vector instructions",
    Pipe.SCALAR: "scalar instructions",
    Pipe.LDS: "LDS",
    Pipe.MEMORY: "requests to memory",
    Pipe.BRANCH: "branches",
}
_WIDTHS = (("b128", "128-bit"), ("b96", "96-bit"), ("b64", "64-bit"), ("b32", "32-bit"))
MEMORY_LIMIT = "memory"
LAST_LEVEL_LIMIT = "last-level cache"
L2_LIMIT = "L2"
_MEMORY_LIMITS = (MEMORY_LIMIT, LAST_LEVEL_LIMIT, L2_LIMIT)


def bottleneck_sentence(
    function: Function,
    time_us: float,
    pipes: Mapping[Pipe, float],
    waits: Mapping[StallReason, float],
    limits: Sequence[ResourceLimit],
    figures: Sequence[InstructionFigures],
    tail: float,
    units: tuple[int, int],
) -> str:
    """Return the sentence. ``pipes`` are shares of the launch's time, ``waits`` of the waves';
    ``tail`` is the share in which units are idle; ``units`` is how many units get a block, and how
    many exist."""
    used_units, unit_count = units
    pipes = {pipe: min(1.0, busy * unit_count / used_units) for pipe, busy in pipes.items()}
    bounds = [(busy, _PIPES[pipe]) for pipe, busy in pipes.items()]
    if time_us:
        bounds += [
            (min(1.0, limit.time_us.mid / time_us), limit.name)
            for limit in limits
            if limit.name in _MEMORY_LIMITS
        ]
    busy, name = max(bounds, default=(0.0, "nothing"))
    share = f"{round(100 * busy)}%"
    issuing = 1 - sum(waits.values())
    if busy >= _BOUND:
        first = f"bound by {name} ({share} of the time)"
    elif issuing > _ISSUE_BOUND:
        percent = round(100 * issuing)
        first = f"issue-bound ({percent}% of a wave's time): {name} busy {share} of the time"
    else:
        first = f"latency-bound: {name} busy {share} of the time"
    parts = [first]
    if used_units < _FEW_UNITS * unit_count:
        parts.append(f"{used_units} of {unit_count} compute units have work")
    parts += _conflicts(function, pipes, figures)
    for kind, word in (("loads", "_load"), ("stores", "_store")):
        accesses = [
            each
            for each in figures
            if each.bytes_moved and word in function.instructions[each.index].mnemonic
        ]
        bytes_used = sum(each.executed * (each.bytes_used or 0.0) for each in accesses)
        bytes_moved = sum(each.executed * (each.bytes_moved or 0.0) for each in accesses)
        if bytes_moved and bytes_used < _USED * bytes_moved:
            percent = round(100 * bytes_used / bytes_moved)
            parts.append(f"{kind} use {percent}% of the bytes they move")
    reason = max(waits, key=lambda each: waits[each], default=None)
    if reason is not None and waits[reason] >= _WORTH_SAYING:
        what = "pipe contention" if reason is StallReason.PIPE else f"waves wait for {reason.value}"
        parts.append(f"{what} {round(100 * waits[reason])}% of the time")
    if tail >= 2 * _WORTH_SAYING:
        parts.append(f"compute units are idle {round(100 * tail)}% of the time")
    return "; ".join(parts)


def _conflicts(
    function: Function, pipes: Mapping[Pipe, float], figures: Sequence[InstructionFigures]
) -> list[str]:
    """Return the kind of LDS access that loses most to conflicts, if it loses much."""
    if pipes.get(Pipe.LDS, 0.0) < _WORTH_SAYING:
        return []
    wasted: dict[str, list[float]] = {}
    for figure in figures:
        if figure.conflict is not None:
            mnemonic = function.instructions[figure.index].mnemonic
            width = next((text for part, text in _WIDTHS if part in mnemonic), "narrow")
            kind = f"{width} {'reads' if 'read' in mnemonic or 'load' in mnemonic else 'writes'}"
            entry = wasted.setdefault(kind, [0.0, 0.0])
            entry[0] += figure.issue
            entry[1] += figure.issue / figure.conflict
    kind, (spent, free) = max(
        wasted.items(), key=lambda item: item[1][0] - item[1][1], default=("", (0.0, 1.0))
    )
    whole = sum(entry[0] for entry in wasted.values())
    if not kind or spent - free < _WORTH_SAYING * whole or spent < _CONFLICT * free:
        return []
    return [f"{kind} conflict {TIMES}{spent / free:.2f}"]
