"""Lines of a kernel that record which graph nodes they compute.

Each line that computes something carries a mark until the whole source is rendered;
``Marks.finish`` then removes the marks and returns the final line numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Self

from scheduler.codegen.kernel import LineOrigin

_MARK = "\x00"


class Marks:
    """The sets of graph nodes that the lines of one template compute.

    A mark in the text is a set's number, never a name: names come from the model's file, and the
    text is compiled.
    """

    def __init__(self) -> None:
        self._set_numbers: dict[tuple[str, ...], int] = {}

    def mark(self, nodes: tuple[str, ...]) -> str:
        """Return the mark to append to a line that computes these graph nodes, until ``finish``."""
        if not nodes:
            return ""
        return f"{_MARK}{self._set_numbers.setdefault(nodes, len(self._set_numbers))}"

    def finish(self, text: str) -> tuple[str, tuple[LineOrigin, ...]]:
        """Return the source without marks, and the lines that compute each set of nodes, in line
        order."""
        origins: list[LineOrigin] = []
        node_sets = tuple(self._set_numbers)
        lines = text.split("\n")
        for line_number, line in enumerate(lines, start=1):
            code, mark, set_number = line.partition(_MARK)
            if not mark:
                continue
            lines[line_number - 1] = code
            nodes = node_sets[int(set_number)]
            last = origins[-1] if origins else None
            if last and last.last == line_number - 1 and last.nodes == nodes:
                origins[-1] = LineOrigin(last.first, line_number, nodes)
            else:
                origins.append(LineOrigin(line_number, line_number, nodes))
        return "\n".join(lines), tuple(origins)


class Lines:
    """Statements with their indentation; ``nodes`` are the nodes being computed now.

    Blocks are C++'s; those of ``PythonLines`` are Python's.
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
        """Return empty lines for a nested block, to be passed to ``extend``."""
        return type(self)(self.marks, self.indent + 1, nodes)

    def add(self, text: str, nodes: tuple[str, ...] | None = None) -> None:
        """Add one statement, computed for ``nodes`` (for ``self.nodes`` if none are given)."""
        computes = self.nodes if nodes is None else nodes
        self._lines.append(self.step * self.indent + text + self.marks.mark(computes))

    def extend(self, other: Lines) -> None:
        """Append the lines of ``other``, which share the marks, unchanged."""
        self._lines.extend(other._lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines inside by one level, under ``head``."""
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
