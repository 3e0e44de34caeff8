"""Lines of a kernel that remember which graph nodes they compute.

Each line that computes something carries a mark until the whole source is rendered;
``Marks.finish`` then takes the marks away and says where the lines ended up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Self

from scheduler.codegen.kernel import LineOrigin

_MARK = "\x00"


class Marks:
    """The sets of graph nodes that the lines of one template compute.

    A mark in the text is a set's number, never a name: names come from the model's file, and what
    is in the text is compiled.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}

    def mark(self, nodes: tuple[str, ...]) -> str:
        """What follows a line that computes these graph nodes, until ``finish``."""
        if not nodes:
            return ""
        return f"{_MARK}{self._numbers.setdefault(nodes, len(self._numbers))}"

    def finish(self, text: str) -> tuple[str, tuple[LineOrigin, ...]]:
        """The source without marks, and the lines that compute each set of nodes, in line order."""
        origins: list[LineOrigin] = []
        sets = tuple(self._numbers)
        lines = text.split("\n")
        for number, line in enumerate(lines, start=1):
            code, marked, computed = line.partition(_MARK)
            if not marked:
                continue
            lines[number - 1] = code
            nodes = sets[int(computed)]
            last = origins[-1] if origins else None
            if last and last.last == number - 1 and last.nodes == nodes:
                origins[-1] = LineOrigin(last.first, number, nodes)
            else:
                origins.append(LineOrigin(number, number, nodes))
        return "\n".join(lines), tuple(origins)


class Lines:
    """Statements with their indentation; ``nodes`` says what is being computed now.

    Blocks are C++'s; ``BlocksByIndent`` are Python's.
    """

    step: ClassVar[str] = "  "

    def __init__(self, marks: Marks, indent: int = 1, nodes: tuple[str, ...] = ()) -> None:
        self.marks = marks
        self.indent = indent
        self.nodes = nodes
        self._lines: list[str] = []

    def __len__(self) -> int:
        return len(self._lines)

    def __str__(self) -> str:
        return "\n".join(self._lines)

    def new_block(self, nodes: tuple[str, ...] = ()) -> Self:
        """Empty lines for a block inside these, to ``extend`` them by."""
        return type(self)(self.marks, self.indent + 1, nodes)

    def add(self, text: str, nodes: tuple[str, ...] | None = None) -> None:
        """One statement, computed for ``nodes`` (for ``self.nodes`` where none are given)."""
        computes = self.nodes if nodes is None else nodes
        self._lines.append(self.step * self.indent + text + self.marks.mark(computes))

    def extend(self, other: Lines) -> None:
        """Take over the lines of ``other``, which have the same marks, as they are."""
        self._lines.extend(other._lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines inside run one step deeper, under ``head``."""
        self.add(f"{head} {{", ())
        self.indent += 1
        yield
        self.indent -= 1
        self.add("}", ())


class PythonLines(Lines):
    """Lines of Python."""

    step: ClassVar[str] = "    "

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(f"{head}:", ())
        self.indent += 1
        yield
        self.indent -= 1
