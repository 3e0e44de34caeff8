"""What was modelled of a problem, ours beside Triton's, and whether it reaches its bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.support import kernel_bars


@dataclass(frozen=True)
class Modelled:
    """A way to compute a problem. ``conflict`` is cycles of LDS over those without conflicts;
    ``spills`` registers that lie in memory; ``narrow`` the share of the stored bytes whose stores
    write fewer than 8 a lane. ``error`` says why there is none."""

    title: str
    time_us: float = 0.0
    conflict: float = 1.0
    spills: int = 0
    narrow: float = 0.0
    matrix_busy: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Row:
    """A problem on a target. ``peak`` is the share of the board's peak a microsecond would be:
    the share that a time reaches is ``peak / time``."""

    target: str
    problem: str
    bar: float | None
    peak: float
    ours: Modelled
    peers: tuple[Modelled, ...]
    candidates: tuple[Modelled, ...] = ()

    @property
    def peer(self) -> Modelled | None:
        """The fastest of the peer's."""
        return _fastest(self.peers)

    @property
    def ratio(self) -> float | None:
        """Our rate over the peer's: above 1 ours is faster. None where either is missing."""
        return _ratio(self.ours, self.peer)

    @property
    def best(self) -> Modelled | None:
        """The fastest of our candidates, the default among them, where they were modelled."""
        return _fastest((self.ours, *self.candidates)) if self.candidates else None

    @property
    def missed(self) -> tuple[str, ...]:
        """Each bar that is not reached, in words."""
        if self.ours.error:
            return (f"no kernel: {self.ours.error}",)
        found = []
        if self.bar is not None and (self.ratio is None or self.ratio < self.bar):
            found.append(f"rate {_shown(self.ratio)}, {self.bar:g} wanted")
        ours = self.ours
        return (*found, *kernel_bars.missed(ours.conflict, ours.spills, ours.narrow))


def _fastest(of: Sequence[Modelled]) -> Modelled | None:
    return min((one for one in of if not one.error), key=lambda one: one.time_us, default=None)


def _ratio(ours: Modelled | None, theirs: Modelled | None) -> float | None:
    if ours is None or theirs is None or ours.error or theirs.error:
        return None
    return theirs.time_us / ours.time_us


def _shown(ratio: float | None) -> str:
    return "none" if ratio is None else f"{ratio:.2f}"


HEADS = (
    *("target", "problem", "Kiln µs", "of peak", "Triton µs", "of peak", "rate / Triton's", "bar"),
    *("LDS conflict", "spills", "narrow stores", "matrix busy", "Triton's configuration"),
)


def cells(row: Row) -> Iterator[str]:
    """A row's cells, under ``HEADS``; with candidates the best of them too."""
    ours, peer = row.ours, row.peer
    yield from (row.target, row.problem)
    for one in (ours, peer):
        shown = one is not None and not one.error
        yield f"{one.time_us:.1f}" if one is not None and shown else "none"
        yield f"{row.peak / one.time_us:.0%}" if one is not None and shown else ""
    yield _shown(row.ratio)
    yield "" if row.bar is None else f"{row.bar:g}" + (" missed" if row.missed else "")
    yield f"x{ours.conflict:.2f}"
    yield str(ours.spills)
    yield f"{ours.narrow:.0%}"
    yield f"{ours.matrix_busy:.0%}" if ours.matrix_busy else ""
    yield "" if peer is None else peer.title


def notes(row: Row) -> Iterator[str]:
    """What a cell has no room for: missed bars, the best candidate, peers that were not to be
    had."""
    name = f"{row.target}, {row.problem}"
    for line in row.missed:
        yield f"{name}: {line}"
    if row.best is not None:
        ratio = _shown(_ratio(row.best, row.peer))
        yield (
            f"{name}: best candidate {row.best.time_us:.1f} µs, {ratio} of Triton's rate:"
            f" {row.best.title}"
        )
    for one in row.peers:
        if one.error:
            yield f"{name}: Triton, {one.title}: {one.error}"


def table(rows: Sequence[Row]) -> str:
    """All rows as a table of Markdown, aligned, and notes."""
    lines = [HEADS, *(tuple(cells(row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        f"| {' | '.join(text.ljust(width) for text, width in zip(line, widths, strict=True))} |"
        for line in lines
    ]
    shown.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    said = [f"- {line}" for row in rows for line in notes(row)]
    return "\n".join([*shown, "", *said])
