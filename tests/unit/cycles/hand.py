"""Kernels and traces made by hand, run on a modelled unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduler import targets
from scheduler.cycles.constants import rates_at
from scheduler.cycles.decode import decode
from scheduler.cycles.paths import BlockPaths, paths_of
from scheduler.cycles.unit import MemoryShare, Unit, UnitResult
from scheduler.isa.listing import Function
from scheduler.isa.rocm.emulator.trace import Access, WaveTrace
from scheduler.isa.rocm.reader import GPU
from scheduler.targets.cycle_model import End


def function_of(text: str) -> Function:
    """A function from its lines; labels end with a colon."""
    lines = [line.strip() for line in text.strip().splitlines()]
    body = "".join(f"{line}\n" if line.endswith(":") else f"\t{line}\n" for line in lines)
    return GPU.parse(f"\t.type f,@function\nf:\n{body}").functions[0]


def trace(
    executed: Sequence[int],
    accesses: Mapping[int, Access] | None = None,
    wave: int = 0,
    lanes: int = 64,
) -> WaveTrace:
    """A wave that executes these; ``accesses`` by position."""
    return WaveTrace(
        *(0, wave, np.array(executed, np.int32), np.full(len(executed), lanes, np.uint8)),
        accesses or {},
    )


def looped(before: int, body: int, after: int, times: int) -> list[int]:
    """Instructions of a function with one loop, in the order of their execution."""
    whole = list(range(before))
    for _ in range(times):
        whole += range(before, before + body)
    return whole + list(range(before + body, before + body + after))


def block(text: str, traces: Sequence[WaveTrace], target: str = "gfx942") -> BlockPaths:
    function = function_of(text)
    rates = rates_at(targets.find(target), End.MID)
    return paths_of(function, decode(function, target, rates), traces, target, rates, {})


def run(
    text: str,
    traces: Sequence[WaveTrace],
    *,
    blocks: int = 1,
    resident: int = 1,
    target: str = "gfx942",
    end: End = End.MID,
    memory: float = 8.0,
    timeline: int = 0,
    code_lines: int = 512,
) -> UnitResult:
    """Some equal blocks on one unit."""
    function = function_of(text)
    rates = rates_at(targets.find(target), end)
    decoded = decode(function, target, rates)
    paths = paths_of(function, decoded, traces, target, rates, {})
    setting = MemoryShare(memory, rates.l2_bytes_cycle, rates.l1_bytes // rates.line, code_lines)
    unit = Unit(decoded, rates, setting, resident, timeline)
    return unit.run([paths.paths] * blocks)
