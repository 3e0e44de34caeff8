"""Reports of the model with figures made up from a listing: for tests of what shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler import targets
from scheduler.cycles.report import (
    VERSION,
    Band,
    InstructionFigures,
    Lane,
    LaunchReport,
    LoopFigures,
    Pipe,
    Report,
    ResourceLimit,
    Sharing,
    Span,
    StallReason,
)
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function
from scheduler.isa.reader import reader_of

_PIPES = {
    Kind.MATRIX: Pipe.MATRIX,
    Kind.VECTOR: Pipe.VECTOR,
    Kind.SCALAR: Pipe.SCALAR,
    Kind.LDS: Pipe.LDS,
    Kind.GLOBAL: Pipe.MEMORY,
    Kind.SCRATCH: Pipe.MEMORY,
    Kind.BRANCH: Pipe.BRANCH,
}


def band(mid: float) -> Band:
    """A figure a fifth lower and higher than ``mid``."""
    return Band(mid * 0.8, mid, mid * 1.2)


def report(
    listing: str,
    target: str = "gfx942",
    board: str = "MI300X",
    *,
    kernel: str = "kernel",
    sizes: Mapping[str, int] | None = None,
    time_us: float = 12.5,
    launches: int = 1,
    waves: int = 4,
    unknown: Mapping[str, int] | None = None,
) -> Report:
    """One of the first function of a listing: LDS instructions have conflicts of 1.67, and waits
    are where the listing has them."""
    function = reader_of(targets.find(target)).parse(listing).functions[0]
    return Report(
        version=VERSION,
        kernel=kernel,
        target=target,
        board=board,
        sizes=dict(sizes or {}),
        time_us=band(time_us),
        sentence="bound by LDS: 128-bit reads conflict \N{MULTIPLICATION SIGN}1.67; waits for"
        " global loads 31% of the time",
        launches=tuple(_launch(function, time_us / launches, n, waves) for n in range(launches)),
        unknown=dict(unknown or {}),
        sampled="4 of 1024 blocks",
    )


def _launch(function: Function, time_us: float, number: int, waves: int) -> LaunchReport:
    figures = tuple(_figures(function, index) for index in range(len(function.instructions)))
    return LaunchReport(
        function=function.name,
        grid=(64 + number, 1, 1),
        block=(256, 1, 1),
        waves=4,
        resident=2,
        limiter="LDS",
        rounds=1.7,
        tail=0.21,
        time_us=band(time_us),
        cycles=band(time_us * 2100),
        pipes={Pipe.LDS: 0.62, Pipe.VECTOR: 0.35, Pipe.MEMORY: 0.2, Pipe.MATRIX: 0.0},
        waits={StallReason.GLOBAL: 0.31, StallReason.LDS: 0.12, StallReason.BARRIER: 0.05},
        limits=(
            ResourceLimit("LDS", band(time_us * 0.9), "64 bytes a cycle"),
            ResourceLimit("memory bandwidth", band(time_us * 0.4)),
        ),
        instructions=figures,
        loops=(LoopFigures(2, len(figures) // 2, 16.0, 512.0, 0.44),),
        timeline=tuple(_lane(function, wave) for wave in range(waves)),
        sharing=Sharing(4e6, 1e6, Band(1e6, 1.5e6, 4e6), 8),
        sentence=f"bound by LDS in launch {number + 1}",
        notes=("The first blocks begin together.",),
    )


def _figures(function: Function, index: int) -> InstructionFigures:
    kind = function.instructions[index].kind
    executed = 16.0 if function.depths[index] else 1.0
    waits = kind is Kind.WAIT
    memory = kind is Kind.GLOBAL
    return InstructionFigures(
        index=index,
        executed=executed,
        lanes=64.0,
        issue=4.0 * executed,
        stall=40.0 * executed if waits else 0.0,
        reasons={StallReason.GLOBAL: 40.0 * executed} if waits else {},
        conflict=1.67 if kind is Kind.LDS else None,
        requests=4.0 if memory else None,
        bytes_used=256.0 if memory else None,
        bytes_moved=512.0 if memory else None,
    )


def _lane(function: Function, wave: int) -> Lane:
    spans: list[Span] = []
    at = wave * 4
    for index, instruction in enumerate(function.instructions):
        if instruction.kind is Kind.WAIT:
            spans.append(Span(at, at + 40, index, reason=StallReason.GLOBAL))
            at += 40
        spans.append(Span(at, at + 4, index, pipe=_PIPES.get(instruction.kind, Pipe.SCALAR)))
        at += 4
    return Lane(0, wave, wave % 4, tuple(spans))


def listing(instructions: Sequence[str], name: str = "f") -> str:
    """A listing of one function, each instruction from a line of the source of its own."""
    body = "".join(
        f"\t.loc\t1 {number} 0\n\t{text}\n" for number, text in enumerate(instructions, 1)
    )
    return (
        f'\t.text\n\t.file\t1 "source.hip"\n\t.type\t{name},@function\n{name}:\n{body}'
        f"\ts_endpgm\n.Lfunc_end0:\n\t.size\t{name}, .Lfunc_end0-{name}\n"
    )
