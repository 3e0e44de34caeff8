"""Kernels that are not ours, with their launches, and what their waves' accesses to LDS cost."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scheduler import targets
from scheduler.cycles.banks import access_cost
from scheduler.cycles.kernel_file import KernelFile, read_kernels
from scheduler.cycles.launches.binding import bind_launch
from scheduler.cycles.launches.parser import LaunchSpec, read_launch
from scheduler.isa.listing import Function
from scheduler.isa.rocm.emulator.program import Program, program_of
from scheduler.isa.rocm.emulator.run import EmulationResult, run
from scheduler.isa.rocm.emulator.trace import WaveTrace
from scheduler.targets import Target

FOLDER = Path(__file__).parents[1] / "benchmarks" / "cycles"
DATA = FOLDER / "data"


def launch_of(name: str, **arguments: Any) -> LaunchSpec:
    """The launch beside ``data/<name>``, with other arguments by their names or positions."""
    data = json.loads((DATA / f"{name}.json").read_text())
    for key, value in arguments.items():
        data["arguments"][int(key.removeprefix("a")) if key[1:].isdigit() else key] = value
    return read_launch(json.dumps(data), name)


def kernels_of(file: Path) -> tuple[KernelFile, Target]:
    """What is in ``<name>-<target>.<ending>``."""
    target = targets.find(file.stem.rsplit("-", 1)[1])
    return read_kernels(file, target), target


def ran(
    kernels: KernelFile, target: Target, text: LaunchSpec, blocks: Sequence[int] = (0,)
) -> tuple[Program, EmulationResult]:
    """Some blocks of a launch, without the values of its products."""
    program = program_of(kernels.listing, kernels.select_kernel(text.function), target.name)
    launch, memory = bind_launch(text, program, target)
    return program, run(program, launch, memory, blocks, values=False)


def conflicts(
    processor: str, function: Function, traces: Sequence[WaveTrace]
) -> Mapping[int, float]:
    """Of each instruction that reads or writes LDS: its cycles over those without conflicts."""
    cycles: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for trace in traces:
        for position, access in trace.accesses.items():
            index = int(trace.executed[position])
            mnemonic = function.instructions[index].mnemonic
            if not mnemonic.startswith("ds_") or not access.addresses.size:
                continue
            one = access_cost(processor, access, reads=mnemonic.startswith(("ds_read", "ds_load")))
            cycles[index][0] += one.cycles
            cycles[index][1] += one.free
    return {index: taken / free for index, (taken, free) in cycles.items()}
