"""Lines of a kernel that remember which graph nodes they compute.

Each line that computes something carries a mark until the whole source is rendered; ``finish``
then takes the marks away and says where the lines ended up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scheduler.codegen.kernel import LineOrigin

_MARK = "\x00"


def mark(nodes: tuple[str, ...]) -> str:
    """What follows a line that computes these graph nodes, until ``finish``."""
    return _MARK + ",".join(nodes) if nodes else ""


class Lines:
    """Statements with their indentation; ``nodes`` says what is being computed now."""

    def __init__(self, indent: int = 1, nodes: tuple[str, ...] = ()) -> None:
        self.indent = indent
        self.nodes = nodes
        self._lines: list[str] = []

    def __len__(self) -> int:
        return len(self._lines)

    def __str__(self) -> str:
        return "\n".join(self._lines)

    def add(self, text: str, nodes: tuple[str, ...] | None = None) -> None:
        """One statement, computed for ``nodes`` (for ``self.nodes`` where none are given)."""
        computes = self.nodes if nodes is None else nodes
        self._lines.append("  " * self.indent + text + mark(computes))

    def extend(self, other: Lines) -> None:
        """Take over the lines of ``other`` as they are."""
        self._lines.extend(other._lines)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Lines inside run one step deeper, between ``head {`` and ``tail``."""
        self.add(f"{head} {{", ())
        self.indent += 1
        yield
        self.indent -= 1
        self.add(tail, ())


def finish(text: str) -> tuple[str, tuple[LineOrigin, ...]]:
    """The source without marks, and the lines that compute each set of nodes, in line order."""
    origins: list[LineOrigin] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        code, marked, names = line.partition(_MARK)
        if not marked:
            continue
        lines[number - 1] = code
        nodes = tuple(names.split(","))
        last = origins[-1] if origins else None
        if last and last.last == number - 1 and last.nodes == nodes:
            origins[-1] = LineOrigin(last.first, number, nodes)
        else:
            origins.append(LineOrigin(number, number, nodes))
    return "\n".join(lines), tuple(origins)
