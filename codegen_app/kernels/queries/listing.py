"""A listing as the kernel's page shows it: lines with source line, loop and live registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.isa.flow import Loop
from scheduler.isa.hazards import Hazard
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Function, Instruction, LineKind, count_kinds
from scheduler.isa.occupancy import Resources, rules_of
from scheduler.isa.reader import reader_of
from scheduler.targets import Target


@dataclass(frozen=True, slots=True)
class ListingLine:
    """One line of a listing, by its kind.

    ``source`` is the line of the kernel's source that an instruction belongs to, 0 for
    compiler-generated ones; ``depth`` its loop depth; ``live`` the live vector registers at it,
    None if unknown; ``jump`` the listing's line that it branches to, 0 for none. ``block`` is the
    number of the basic block that begins here (from 1), 0 on other lines. ``header`` is the header
    of ours that it was inlined from, ``header_line`` the line there; ``callers`` are the lines of
    the source that it was inlined through, the innermost first.
    """

    kind: str
    instruction: str = ""
    source: int = 0
    depth: int = 0
    live: int | None = None
    peak: bool = False
    jump: int = 0
    target: str = ""
    block: int = 0
    header: str = ""
    header_line: int = 0
    callers: tuple[int, ...] = ()

    @property
    def header_name(self) -> str:
        """The short name of its header with the line there (``mma:26``); "" for none. A compiler's
        own instruction has no line."""
        name = self.header.rpartition("/")[2].removesuffix(".h")
        return f"{name}:{self.header_line}" if self.header_line else name


@dataclass(frozen=True)
class LoopRow:
    """A loop with its instructions by class, nested loops included.

    ``lines`` are its ranges in the listing, (first, last) by runs of blocks; ``inner`` marks the
    loop that takes the most time.
    """

    first_line: int
    depth: int
    inner: bool
    instructions: int
    counts: Mapping[str, int]
    lines: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class BlockRow:
    """A basic block; ``successors`` are the first lines of the blocks that may follow."""

    number: int
    label: str
    first_line: int
    last_line: int
    instructions: int
    depth: int
    successors: tuple[int, ...]


@dataclass(frozen=True)
class FunctionRow:
    """One function. ``own`` counts instructions that have no source line."""

    name: str
    first_line: int
    last_line: int
    instructions: int
    own: int
    counts: Mapping[str, int]
    loops: tuple[LoopRow, ...]
    blocks: tuple[BlockRow, ...]
    live_peak: int | None
    hazards: tuple[Hazard, ...]


@dataclass(frozen=True)
class ListingView:
    """A whole listing; ``lines`` has one entry per line of ``text``, ``dialect`` is its language,
    ``registers`` the name of its live registers, ``headers`` our headers that it has instructions
    from, with the MD5 that the compiler recorded ("" for none)."""

    text: str
    dialect: str
    lines: tuple[ListingLine, ...]
    functions: tuple[FunctionRow, ...]
    registers: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def follows_registers(self) -> bool:
        """Whether live registers are known."""
        return any(function.live_peak is not None for function in self.functions)

    @property
    def hazards(self) -> tuple[tuple[FunctionRow, Hazard], ...]:
        """Patterns in its instructions that are likely to cost time."""
        return tuple(
            (function, hazard) for function in self.functions for hazard in function.hazards
        )

    @property
    def inner_loop(self) -> LoopRow | None:
        """The inner loop of the function that has the largest one; loops of helpers are ignored."""
        loops = [loop for function in self.functions for loop in function.loops if loop.inner]
        return max(loops, key=lambda loop: loop.instructions, default=None)

    def loop_at(self, first_line: int) -> LoopRow | None:
        """The loop that begins with that line."""
        loops = [loop for function in self.functions for loop in function.loops]
        return next((loop for loop in loops if loop.first_line == first_line), None)

    @property
    def peaks(self) -> tuple[int, ...]:
        """The first line of each range where the number of live registers is at its maximum."""
        numbers = []
        before = False
        for number, line in enumerate(self.lines, 1):
            if line.live is None:
                continue
            if line.peak and not before:
                numbers.append(number)
            before = line.peak
        return tuple(numbers)


def read_listing(text: str, target: Target) -> ListingView:
    """Parse a listing. Live registers are known if the target's reader tracks them."""
    text = text.removesuffix("\n")
    reader = reader_of(target)
    listing = reader.parse(text)
    rows = text.split("\n")
    lines = [
        ListingLine(LineKind.DIRECTIVE.value if row.startswith(_DEBUG_LABELS) else kind.value)
        for row, kind in zip(rows, listing.kinds, strict=True)
    ]
    at_label = {
        row.partition(":")[0]: number
        for number, (row, kind) in enumerate(zip(rows, listing.kinds, strict=True), 1)
        if kind is LineKind.LABEL
    }
    functions = []
    for function in listing.functions:
        live = reader.live_registers(function)
        peaks = set(live.peaks) if live else set()
        begins = {block.first: number for number, block in enumerate(function.blocks, 1)}
        for index, instruction in enumerate(function.instructions):
            lines[instruction.line - 1] = ListingLine(
                kind=LineKind.INSTRUCTION.value,
                instruction=instruction.kind.value,
                source=instruction.source_line,
                depth=function.depths[index],
                live=live.counts[index] if live else None,
                peak=index in peaks,
                jump=at_label.get(instruction.target, 0),
                target=instruction.target,
                block=begins.get(index, 0),
                header=instruction.header,
                header_line=instruction.header_line,
                callers=instruction.callers,
            )
        blocks = _block_rows(function, at_label)
        inner = function.inner_loop()
        loops = (_loop_row(function, loop, blocks, loop is inner) for loop in function.loops)
        functions.append(
            FunctionRow(
                name=function.name,
                first_line=function.first_line,
                last_line=function.last_line,
                instructions=len(function.instructions),
                own=sum(1 for row in function.instructions if not row.source_line),
                counts=_counts(function.instructions),
                loops=tuple(loops),
                blocks=blocks,
                live_peak=live.peak if live else None,
                hazards=reader.hazards(function),
            )
        )
    title = reader.registers_title
    return ListingView(
        *(text, reader.dialect_of(text), tuple(lines), tuple(functions), title),
        headers=listing.headers,
    )


# Labels of the debug information, in assembly and in PTX.
_DEBUG_LABELS = (".Ltmp", ".Lfunc_begin", ".Lfunc_end", "$L__tmp", "$L__func_")


def next_steps(text: str, resources: Mapping[str, Resources], target: Target) -> Mapping[str, str]:
    """Return for each device function of a build what would allow one more wave; "" for nothing."""
    rules = rules_of(target)
    return {} if rules is None else rules.next_steps(text, resources, target)


def _block_rows(function: Function, at_label: Mapping[str, int]) -> tuple[BlockRow, ...]:
    def first_line(number: int) -> int:
        block = function.blocks[number]
        line = function.instructions[block.first].line
        return min(line, at_label.get(block.label, line))

    return tuple(
        BlockRow(
            number=number + 1,
            label=block.label,
            first_line=first_line(number),
            last_line=function.instructions[block.end - 1].line,
            instructions=block.end - block.first,
            depth=function.depths[block.first],
            successors=tuple(first_line(successor) for successor in block.successors),
        )
        for number, block in enumerate(function.blocks)
    )


def _loop_row(function: Function, loop: Loop, blocks: tuple[BlockRow, ...], inner: bool) -> LoopRow:
    instructions = function.loop_instructions(loop)
    runs: list[tuple[int, int]] = []
    last = -1
    for number in sorted(loop.blocks):
        first = runs.pop()[0] if number == last + 1 and runs else blocks[number].first_line
        runs.append((first, blocks[number].last_line))
        last = number
    return LoopRow(
        first_line=blocks[loop.header].first_line,
        depth=loop.depth,
        inner=inner,
        instructions=len(instructions),
        counts=_counts(instructions),
        lines=tuple(runs),
    )


def _counts(instructions: tuple[Instruction, ...]) -> dict[str, int]:
    counts = count_kinds(instructions)
    return {kind.value: counts[kind] for kind in Kind if kind in counts}
