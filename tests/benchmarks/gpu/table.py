"""The measured table as text: aligned columns that are Markdown too. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.benchmarks.gpu.results import CONTENDERS, OURS, Outcome, Row

_TITLES = {"kiln": "Kiln", "tuned": "Kiln tuned", "eager": "eager", "compile": "compile"}


def table(rows: Sequence[Row]) -> str:
    """A line for each problem: microseconds of each contender, our times over theirs, and what
    share of memory's and the arithmetic's speed our fastest reaches."""
    shown = [one for one in CONTENDERS if any(one in row.outcomes for row in rows)]
    pairs = [
        (ours, other) for ours in shown if ours in OURS for other in shown if other not in OURS
    ]
    heads = ["problem", *(f"{_TITLES[one]} µs" for one in shown)]
    heads += [f"{_TITLES[ours]} / {_TITLES[other]}" for ours, other in pairs]
    heads += ["TB/s", "TFLOP/s", "error", "allowed"]
    lines = [[row.name, *_cells(row, shown, pairs)] for row in rows]
    return "\n".join((*_aligned([heads, *lines]), *_notes(rows)))


def _cells(row: Row, shown: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    for one in shown:
        yield _time(row.outcomes.get(one))
    for pair in pairs:
        ratio = row.ratio(*pair)
        yield "" if ratio is None else f"{ratio:.2f}"
    ours = [time for one in shown if one in OURS and (time := row.median(one)) is not None]
    seconds = min(ours) * 1e-6 if ours else None
    for work in (row.moved_bytes, row.flops):
        yield (
            f"{work / seconds / 1e12:.{2 if work is row.moved_bytes else 0}f}"
            if work and seconds
            else ""
        )
    errors = [row.outcomes[one].error for one in shown if one in OURS and one in row.outcomes]
    yield f"{max(errors):.1e}" if errors else ""
    yield f"{row.bound:.1e}"


def _time(found: Outcome | None) -> str:
    """The median, and half of the middle half's width in per cent of it."""
    if found is None:
        return ""
    if found.time is None:
        return "WRONG" if found.error == found.error else "none"
    time = found.time
    width = (time.third_quartile - time.first_quartile) / 2 / time.median
    return f"{time.median:.1f} ±{width:.1%}"


def _aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for place, line in enumerate(lines):
        first, *rest = zip(line, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]
        yield f"| {' | '.join(cells)} |"
        if place == 0:
            rules = ["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]
            yield f"|{'|'.join(rules)}|"


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """What a cell has no room for: why something was not timed, the clocks, what held them down."""
    yield ""
    for title, key in (("SM", "sm_clock_mhz"), ("memory", "memory_clock_mhz")):
        seen = [row.readings[key] for row in rows if key in row.readings]
        if seen:
            least, most = min(one["min"] for one in seen), max(one["max"] for one in seen)
            yield f"- {title} clock while measuring: {least:.0f} to {most:.0f} MHz"
    for row in rows:
        for name, found in row.outcomes.items():
            if found.wrong:
                yield f"- {row.name}, {_TITLES[name]}: {found.wrong}"
        held = [
            reading.removeprefix("throttled_")
            for reading, seen in row.readings.items()
            if reading.startswith("throttled_") and seen["max"]
        ]
        if held:
            yield f"- {row.name}: the clock was held down meanwhile ({', '.join(held)})"
