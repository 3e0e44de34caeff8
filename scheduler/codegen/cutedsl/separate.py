"""A kernel of its own beside a template's: what could be fused into it, done before or after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.codegen.cutedsl.text import kernel_text
from scheduler.codegen.cutedsl.types import element_name
from scheduler.codegen.kernel import Launch
from scheduler.codegen.launch import ceil_div
from scheduler.codegen.names import PLACEHOLDER
from scheduler.codegen.printing.lines import Lines
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr, symbol

_THREADS = 256


@dataclass(frozen=True)
class SeparateKernel:
    """A kernel over the points of a matrix for each batch, which lies in the workspace row by row.

    ``definition`` is its text, ``call`` the statement that launches it from the host function.
    """

    name: str
    definition: str
    call: str
    grid: Expr

    def launch(self, place: int) -> Launch:
        """The record of its launch, the ``place``-th of the host function."""
        one = as_expr(1)
        function = f"{PLACEHOLDER}_{self.name}_{place}"
        return Launch(function, (self.grid, one, one), (_THREADS, 1, 1), 0, ())


@dataclass(frozen=True)
class Matrix:
    """What lies in the workspace: [batches, rows, columns] of an element type, from byte ``first``.
    ``row`` and ``column`` are the indices' names, the others arguments of the kernel."""

    element: DType
    row: str
    rows: str
    column: str
    columns: str
    first: Expr

    @property
    def points(self) -> Expr:
        return symbol("batches") * symbol(self.rows) * symbol(self.columns)

    @property
    def bytes(self) -> Expr:
        """A multiple of 256, so that what follows is aligned as the workspace is."""
        return ceil_div(self.points * self.element.itemsize, 256) * 256


def separate(
    name: str,
    matrix: Matrix,
    vector: int,
    body: Lines,
    parameters: Sequence[str],
    arguments: Sequence[str],
) -> SeparateKernel:
    """The kernel with this body for each ``vector`` points of a row, ``values`` being the matrix'
    pointer and ``point`` the place of the first of them."""
    wide = IndexPrinter(wide=True)
    grid = ceil_div(matrix.points, _THREADS * vector)
    definition = kernel_text("separate").render(
        name=name,
        parameters=parameters,
        threads=_THREADS,
        vector=vector,
        points=wide(matrix.points),
        last=matrix.column,
        last_extent=matrix.columns,
        row=matrix.row,
        row_extent=matrix.rows,
        first=wide(matrix.first),
        element=element_name(matrix.element),
        body=body,
    )
    call = (
        f"{PLACEHOLDER}_{name}({', '.join((*arguments, 'workspace'))}).launch(\n"
        f"        grid=({wide(grid)}, 1, 1), block=({_THREADS}, 1, 1), stream=stream\n    )"
    )
    return SeparateKernel(name, definition, call, grid)
