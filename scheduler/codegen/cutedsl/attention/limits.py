"""The columns that the rows of attention see, as source of its kernel: tiles that no row of a block
sees are not loaded, and tiles that every row of a warpgroup sees are not masked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scheduler.codegen.attention_window import Limit, Window
from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import variable
from scheduler.text import to_identifier

# Distinct from a model's size symbols, whatever their names.
_ROW, _FIRST, _LAST = variable("row", 0), variable("first", 0), variable("last", 0)
_ROWS = {_FIRST.name: "first_row", _LAST.name: "last_row"}


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
    def whole(self) -> bool:
        """Whether the limits describe the mask completely."""
        return self.window.whole

    @property
    def are_of_rows(self) -> bool:
        """Whether there are any limits."""
        return bool(self.window.limits)

    @property
    def long_last(self) -> bool:
        """Whether the last rows see the most columns."""
        return self.are_of_rows and all(one.upper and one.slope > 0 for one in self.window.limits)

    @property
    def held(self) -> tuple[str, ...]:
        """The names that a warpgroup needs besides its rows."""
        symbols = {s.name for limit in self.window.limits for s in limit.offset.free_symbols}
        return tuple(sorted(map(self._name, symbols)))

    @property
    def inside(self) -> str:
        """The first column after those that the row sees."""
        return self._ends("own.columns", lambda one: one.at(_ROW), own=True)

    @property
    def outside(self) -> str:
        """The first column that the row sees."""
        return self._starts(lambda one: one.at(_ROW), own=True)

    @property
    def ends(self) -> str:
        """The first column after those that any of the rows sees."""
        return self._ends("columns", lambda one: one.outermost(_FIRST, _LAST))

    @property
    def starts(self) -> str:
        """The first column that any of the rows sees."""
        return self._starts(lambda one: one.outermost(_FIRST, _LAST))

    @property
    def all_end(self) -> str:
        """The first column after those that all of the rows see."""
        return self._ends("columns", lambda one: one.innermost(_FIRST, _LAST))

    @property
    def all_start(self) -> str:
        """The first column that all of the rows see."""
        return self._starts(lambda one: one.innermost(_FIRST, _LAST))

    def _ends(self, text: str, last: Callable[[Limit], Expr], *, own: bool = False) -> str:
        for limit in (limit for limit in self.window.limits if limit.upper):
            text = f"cutlass.min({text}, {self._text(last(limit) + 1, own=own)})"
        return text

    def _starts(self, first: Callable[[Limit], Expr], *, own: bool = False) -> str:
        text = ""
        for limit in (limit for limit in self.window.limits if not limit.upper):
            found = self._text(first(limit), own=own)
            text = f"cutlass.max({text}, {found})" if text else found
        return text

    def _text(self, expr: Expr, *, own: bool) -> str:
        sizes = {s.name for s in expr.free_symbols} - {_ROW.name, *_ROWS}
        kept = {name: f"{'own.' if own else ''}{self._name(name)}" for name in sizes}
        text = IndexPrinter(names={**kept, **_ROWS, _ROW.name: "row"})(expr)
        return f"Int32({text})" if sizes else text

    def _name(self, symbol: str) -> str:
        return self.names.get(symbol) or to_identifier(symbol.replace(".", ""))
