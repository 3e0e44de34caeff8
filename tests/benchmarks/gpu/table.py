"""The measured table as text: aligned columns that are Markdown too. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.benchmarks.gpu.results import CONTENDERS, COPY, OURS, Bar, Outcome, Row, Verdict

_TITLES = {
    **{"kiln": "Kiln", "cutedsl": "Kiln CuteDSL", "mixed": "Kiln mixed", "tuned": "Kiln tuned"},
    **{"eager": "eager", "compile": "compile", "copy": "copy"},
}
_LANGUAGES = {"kiln": "HIP C++", "cutedsl": "CuteDSL", "mixed": "mixed", "tuned": "tuned"}


def table(rows: Sequence[Row]) -> str:
    """A line for each problem: microseconds of each contender, the fastest of our times over
    theirs, its bars, and what share of memory's and the arithmetic's speed it reaches."""
    shown = [one for one in CONTENDERS if any(one in row.outcomes for row in rows)]
    peers = [one for one in shown if one not in (*OURS, COPY)]
    heads = ["problem", *(f"{_TITLES[one]} µs" for one in shown)]
    heads += [f"Kiln / {_TITLES[one]}" for one in peers]
    heads += ["bars", "TB/s", "TFLOP/s", "error", "allowed"]
    lines = [[row.name, *_cells(row, shown, peers)] for row in rows]
    return "\n".join((*aligned([heads, *lines]), *_notes(rows)))


def said(row: Row, bar: Bar) -> str:
    """A bar in words: what it allows, what was found."""
    ours = " or ".join(_LANGUAGES[one] for one in bar.ours) or "Kiln"
    return f"{ours} / {_TITLES[bar.peer]} ≤ {bar.at_most:g}: {_found(row, bar)}"


def _found(row: Row, bar: Bar) -> str:
    ratio, verdict = row.ratio(bar.peer, bar.ours), row.verdict(bar)
    if ratio is None:
        return "not timed"
    if verdict is Verdict.TIED:
        return f"{ratio:.3f}, {verdict}"
    if verdict is not Verdict.MISSED:
        return f"{ratio:.2f}"
    copy = row.copys_ratio(bar)
    return f"{ratio:.2f} MISSED" + ("" if copy is None else f", a copy takes {copy:.2f}")


def _cells(row: Row, shown: Sequence[str], peers: Sequence[str]) -> Iterator[str]:
    for one in shown:
        yield _time(row.outcomes.get(one))
    for peer in peers:
        ratio = row.ratio(peer)
        yield "" if ratio is None else f"{ratio:.2f}"
    yield "; ".join(said(row, bar) for bar in row.bars)
    fastest = row.fastest()
    seconds = (row.median(fastest) or 0.0) * 1e-6 if fastest else None
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


def aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Cells in columns, the first line their heads."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for place, line in enumerate(lines):
        first, *rest = zip(line, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]
        yield f"| {' | '.join(cells)} |"
        if place == 0:
            rules = ["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]
            yield f"|{'|'.join(rules)}|"


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """What a cell has no room for: how many bars are reached, why something was not timed, the
    clocks, what held them down."""
    yield ""
    found = [row.verdict(bar) for row in rows for bar in row.bars]
    yield f"- bars: {', '.join(f'{found.count(one)} {one}' for one in Verdict)}"
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
