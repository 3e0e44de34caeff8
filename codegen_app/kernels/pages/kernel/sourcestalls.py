"""Modelled stalls by line and by region of a kernel's source, with the code that was inlined."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codegen_app.kernels.modelled.view import InstructionRow

MAX_LINES = 15
_LEAST_SHARE = 0.0005  # the smallest share that one decimal digit can show
_STRUCT = re.compile(r"^\s*(?:struct|class)\s+(\w+)")
_FUNCTION = re.compile(r"^\s*[\w<>,:&*\s\"()]*?\b(\w+)\(")
_LAUNCH_BOUNDS = re.compile(r"__launch_bounds__\([^)]*\)")
_PYTHON = re.compile(r"^(\s*)def\s+(\w+)\(")
_NOT_FUNCTIONS = frozenset({"if", "for", "while", "switch", "return", "defined", "sizeof"})


@dataclass(frozen=True)
class Region:
    """A function of the source, by its first and last line."""

    name: str
    first: int
    last: int


@dataclass(frozen=True)
class StallRow:
    """Shares of all stalls at a line or in a region: of its instructions, and with the code that
    was inlined there. ``headers`` are the lines of headers that its instructions come from, with
    their shares, the largest first."""

    name: str
    first: int
    last: int
    share: float
    inclusive: float
    headers: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class SourceStalls:
    """Functions and lines of the source by their stalls, those with the most first; the lines are
    ordered by the stalls of their own instructions."""

    regions: tuple[StallRow, ...]
    lines: tuple[StallRow, ...]


def source_regions(source: str, file: str) -> tuple[Region, ...]:
    """Return the functions of a source. One within a structure is named with it (``A::read``)."""
    lines = source.split("\n")
    return _python_regions(lines) if file.endswith(".py") else _braced_regions(lines)


def stalls_by_source(
    source: str, regions: Sequence[Region], instructions: Iterable[InstructionRow]
) -> SourceStalls:
    """Sum the stalls of instructions by line and by region. A stall counts once in each region and
    line that it was inlined through."""
    texts = source.split("\n")
    region_of = {
        number: region for region in regions for number in range(region.first, region.last + 1)
    }
    at_line: dict[int, float] = defaultdict(float)
    with_inlined: dict[int, float] = defaultdict(float)
    in_headers: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    in_region: dict[Region, float] = defaultdict(float)
    region_inclusive: dict[Region, float] = defaultdict(float)
    for row in instructions:
        if not row.source or row.share <= 0:
            continue
        at_line[row.source] += row.share
        if row.header:
            in_headers[row.source][row.header] += row.share
        if row.source in region_of:
            in_region[region_of[row.source]] += row.share
        chain = {row.source, *row.callers}
        for number in chain:
            with_inlined[number] += row.share
        for region in {region_of[number] for number in chain if number in region_of}:
            region_inclusive[region] += row.share
    region_rows = [
        StallRow(region.name, region.first, region.last, in_region[region], inclusive)
        for region, inclusive in region_inclusive.items()
        if inclusive >= _LEAST_SHARE
    ]
    line_rows = [
        StallRow(
            texts[number - 1].strip() if number <= len(texts) else "",
            *(number, number, share, with_inlined[number]),
            tuple(
                (name, part)
                for name, part in sorted(in_headers[number].items(), key=lambda pair: -pair[1])
                if part >= _LEAST_SHARE
            ),
        )
        for number, share in at_line.items()
        if share >= _LEAST_SHARE
    ]
    return SourceStalls(
        tuple(sorted(region_rows, key=lambda row: (-row.inclusive, row.first))),
        tuple(sorted(line_rows, key=lambda row: (-row.share, row.first))[:MAX_LINES]),
    )


def _python_regions(lines: Sequence[str]) -> tuple[Region, ...]:
    heads = [
        (number, len(match[1]), match[2])
        for number, line in enumerate(lines, 1)
        if (match := _PYTHON.match(line))
    ]
    return tuple(
        Region(name, number, _last_indented(lines, number, indent))
        for number, indent, name in heads
    )


def _last_indented(lines: Sequence[str], number: int, indent: int) -> int:
    """Return the last line of the block whose head is line ``number``."""
    last = number
    for at, line in enumerate(lines[number:], number + 1):
        text = line.strip()
        if text and len(line) - len(line.lstrip()) <= indent and text[0] not in ")]}":
            break
        last = at if text else last
    return last


def _braced_regions(lines: Sequence[str]) -> tuple[Region, ...]:
    """Return the functions outside of functions, by matching braces."""
    regions: list[Region] = []
    structs: list[tuple[str, int]] = []  # with the depth outside of each
    depth = 0
    function: tuple[str, int, int] | None = None  # name, first line, and the depth outside
    head = ""
    for number, line in enumerate(lines, 1):
        code = _LAUNCH_BOUNDS.sub("", line.partition("//")[0])
        if function is None:
            if (match := _STRUCT.match(code)) and "{" in code:
                structs.append((match[1], depth))
            elif not head and not code.lstrip().startswith("#"):
                match = _FUNCTION.match(code)
                head = match[1] if match and match[1] not in _NOT_FUNCTIONS else ""
                first = number
            if head and "{" in code:
                name = "::".join([*(struct for struct, _ in structs), head])
                function = name, first, depth
                head = ""
            elif head and ";" in code:
                head = ""  # a declaration, or a macro's use
        depth += code.count("{") - code.count("}")
        if function is not None and depth <= function[2]:
            regions.append(Region(function[0], function[1], number))
            function = None
        while structs and depth <= structs[-1][1] and "}" in code:
            structs.pop()
    return tuple(regions)
