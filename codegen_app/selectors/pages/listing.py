"""A listing as the kernel's page shows it: lines with source line, loop and live registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.build.metadata import kernels
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function, Instruction, LineKind, Listing, counts, parse
from scheduler.isa.liveness import live_registers
from scheduler.isa.occupancy import next_step
from scheduler.targets import Target


@dataclass(frozen=True, slots=True)
class ListingLine:
    """One line of a listing, by what it is.

    ``source`` is the line of the kernel's source that an instruction belongs to, 0 for the
    compiler's own; ``depth`` its loop depth; ``live`` the live vector registers at it, None where
    that is not known; ``jump`` the listing's line that it branches to, 0 for none.
    """

    kind: str
    instruction: str = ""
    source: int = 0
    depth: int = 0
    live: int | None = None
    peak: bool = False
    jump: int = 0
    target: str = ""


@dataclass(frozen=True)
class InnerLoop:
    """The loop where the time goes, with its instructions by class."""

    first_line: int
    depth: int
    instructions: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class FunctionRow:
    """One function. ``own`` counts instructions that have no source line."""

    name: str
    first_line: int
    last_line: int
    instructions: int
    own: int
    counts: Mapping[str, int]
    loops: int
    inner_loop: InnerLoop | None
    live_peak: int | None


@dataclass(frozen=True)
class ListingView:
    """A whole listing; ``lines`` has one entry a line of ``text``."""

    text: str
    lines: tuple[ListingLine, ...]
    functions: tuple[FunctionRow, ...]

    @property
    def inner_loop(self) -> InnerLoop | None:
        """The inner loop of the function that has the largest, helpers' loops aside."""
        loops = [function.inner_loop for function in self.functions if function.inner_loop]
        return max(loops, key=lambda loop: loop.instructions, default=None)


def read_listing(text: str, target: Target) -> ListingView:
    """Read a listing. Live registers are known for AMD's targets only."""
    text = text.removesuffix("\n")
    listing = parse(text)
    rows = text.split("\n")
    lines = [
        ListingLine(LineKind.DIRECTIVE.value if row.startswith(_ASIDE) else kind.value)
        for row, kind in zip(rows, listing.kinds, strict=True)
    ]
    at_label = _label_lines(text, listing)
    functions = []
    for function in listing.functions:
        live = live_registers(function) if target.family != "cpu" else None
        peaks = set(live.peaks) if live else set()
        for index, instruction in enumerate(function.instructions):
            lines[instruction.line - 1] = ListingLine(
                kind=LineKind.INSTRUCTION.value,
                instruction=instruction.kind.value,
                source=instruction.source_line,
                depth=function.depths[index],
                live=live.vgpr[index] if live else None,
                peak=index in peaks,
                jump=at_label.get(instruction.target, 0),
                target=instruction.target,
            )
        functions.append(_function_row(function, live.peak if live else None))
    return ListingView(text, tuple(lines), tuple(functions))


_ASIDE = (".Ltmp", ".Lfunc_begin", ".Lfunc_end")  # labels of the debug information


def next_steps(text: str, target: Target) -> dict[str, str]:
    """For each device function of a listing what would let in one more wave; "" for nothing."""
    if target.family == "cpu":
        return {}
    steps = {name: next_step(metadata.demand(), target) for name, metadata in kernels(text).items()}
    return {name: step.text if step else "" for name, step in steps.items()}


def _label_lines(text: str, listing: Listing) -> dict[str, int]:
    return {
        line.partition(":")[0]: number
        for number, (line, kind) in enumerate(zip(text.split("\n"), listing.kinds, strict=False), 1)
        if kind is LineKind.LABEL
    }


def _function_row(function: Function, live_peak: int | None) -> FunctionRow:
    loop = function.inner_loop()
    inner = None
    if loop is not None:
        inside = function.of_loop(loop)
        inner = InnerLoop(inside[0].line, loop.depth, len(inside), _counts(inside))
    return FunctionRow(
        name=function.name,
        first_line=function.first_line,
        last_line=function.last_line,
        instructions=len(function.instructions),
        own=sum(1 for instruction in function.instructions if not instruction.source_line),
        counts=_counts(function.instructions),
        loops=len(function.loops),
        inner_loop=inner,
        live_peak=live_peak,
    )


def _counts(instructions: tuple[Instruction, ...]) -> dict[str, int]:
    found = counts(instructions)
    return {kind.value: found[kind] for kind in Kind if kind in found}
