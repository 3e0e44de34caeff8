"""The columns that the rows of attention see, as source of its kernel: tiles that no row of a block
sees are not loaded, and tiles that every row of a warpgroup sees are not masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from scheduler.codegen.attention_window import Window
from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import variable
from scheduler.text import to_identifier

# Variables cannot have the names of a model's size symbols.
_ROW_VAR, _ROW_RANGE = variable("row", 0), (variable("first", 0), variable("last", 0))
_ROW_NAMES = {_ROW_VAR.name: "row", _ROW_RANGE[0].name: "first_row", _ROW_RANGE[1].name: "last_row"}


@dataclass(frozen=True)
class Limits:
    """Source text of a ``window``. ``names`` are the kernel's own names of sizes and of the batch's
    variables.

    ``inside`` and ``outside`` are about one ``row``, in terms of what a warpgroup holds (``own``),
    the others about the rows from ``first_row`` to ``last_row``. Texts of first columns are "" if
    all rows begin with the very first column.
    """

    window: Window
    names: Mapping[str, str]

    @property
    def has_any(self) -> bool:
        """Whether there are any limits."""
        return bool(self.window.limits)

    @property
    def longest_last(self) -> bool:
        """Whether the last rows see the most columns."""
        return self.has_any and all(limit.upper and limit.slope > 0 for limit in self.window.limits)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names that a warpgroup needs in addition to its rows."""
        symbols = {s.name for limit in self.window.limits for s in limit.offset.free_symbols}
        return tuple(sorted(map(self._name, symbols)))

    @property
    def inside(self) -> str:
        """The first column after those that the row sees."""
        last_columns = [limit.at(_ROW_VAR) for limit in self.window.upper]
        return self._end_text("own.columns", last_columns, "own.")

    @property
    def outside(self) -> str:
        """The first column that the row sees."""
        return self._start_text([limit.at(_ROW_VAR) for limit in self.window.lower], "own.")

    @property
    def ends(self) -> str:
        """The first column after those that any of the rows sees."""
        last_columns = [limit.outermost(*_ROW_RANGE) for limit in self.window.upper]
        return self._end_text("columns", last_columns)

    @property
    def starts(self) -> str:
        """The first column that any of the rows sees."""
        return self._start_text([limit.outermost(*_ROW_RANGE) for limit in self.window.lower])

    @property
    def all_end(self) -> str:
        """The first column after those that all of the rows see."""
        last_columns = [limit.innermost(*_ROW_RANGE) for limit in self.window.upper]
        return self._end_text("columns", last_columns)

    @property
    def all_start(self) -> str:
        """The first column that all of the rows see."""
        return self._start_text([limit.innermost(*_ROW_RANGE) for limit in self.window.lower])

    def _end_text(self, text: str, last_columns: list[Expr], owner: str = "") -> str:
        for column in last_columns:
            text = f"cutlass.min({text}, {self._text(column + 1, owner)})"
        return text

    def _start_text(self, first_columns: list[Expr], owner: str = "") -> str:
        texts = [self._text(column, owner) for column in first_columns]
        return reduce("cutlass.max({}, {})".format, texts) if texts else ""

    def _text(self, expr: Expr, owner: str) -> str:
        sizes = {s.name for s in expr.free_symbols} - _ROW_NAMES.keys()
        names = {name: f"{owner}{self._name(name)}" for name in sizes}
        text = IndexPrinter(names={**names, **_ROW_NAMES})(expr)
        return f"Int32({text})" if sizes else text

    def _name(self, symbol: str) -> str:
        return self.names.get(symbol) or to_identifier(symbol.replace(".", ""))
