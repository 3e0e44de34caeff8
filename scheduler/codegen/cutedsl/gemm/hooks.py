"""A contraction group in CuteDSL: the functions that a template calls at each point."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import sympy

from scheduler.codegen.contraction.indices import IndexGroup, address, collapsed_stride
from scheduler.codegen.contraction.interface import ContractionInterface, Member
from scheduler.codegen.contraction.operand import Operand
from scheduler.codegen.cutedsl.gemm.epilogue import FLAT_NAMES, EpiloguePrinter
from scheduler.codegen.cutedsl.hooks import Hook, make_hook
from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.codegen.cutedsl.kernel import CuteDSLTemplateKernel
from scheduler.codegen.cutedsl.types import type_obstacle
from scheduler.codegen.cutedsl.values import ValuePrinter, obstacle
from scheduler.codegen.printing.lines import Lines, Marks, PythonLines
from scheduler.codegen.printing.values import Memory
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import Affine
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.ranges import loop_ranges
from scheduler.ir.operations import Store
from scheduler.ir.values import Load

VECTORS = (8, 4, 2, 1)
ROW_VECTOR = 8
"""Elements per store of a row that may begin anywhere: 16 bytes."""
_ROW_ITEMSIZE = 2
_POINT_INDICES = ("batch", "m", "n")


@dataclass(frozen=True)
class TensorAccess:
    """A strided operand as a tensor, in texts of arguments or numbers: the argument with its
    address, the offset of its first element, the axes of the batch as (size, stride), outermost
    first (one if they collapse), and the strides of rows and k."""

    pointer: str
    first: str
    batch: tuple[tuple[str, str], ...]
    row: str
    k: str


class ContractionHooks:
    """Flat indices are ``batch``, ``m``, ``n``, ``k``; those along axes ``m_i0``, ``m_i1`` …"""

    def __init__(
        self, interface: ContractionInterface[CuteDSLTemplateKernel], marks: Marks
    ) -> None:
        self._interface = interface
        self._marks = marks
        kernel = interface.kernel
        self._memory = {
            name: Memory(kernel.arg_name(name), buffer) for name, buffer in kernel.buffers.items()
        }

    def obstacle(self) -> str:
        """Return why a tree of the group cannot be printed as CuteDSL, or ""."""
        values = (value for member in self._interface.members for value in member.contraction.trees)
        type_obstacles = (type_obstacle(memory.buffer.dtype) for memory in self._memory.values())
        return next(filter(None, (*type_obstacles, *map(obstacle, values))), "")

    # ---- operands

    def tensor(self, operand: Operand) -> TensorAccess:
        """Return a strided operand's layout. Raises ``ValueError`` for a computed one."""
        interface = self._interface
        parametrizer = interface.read_of(operand).parametrizer
        strides = parametrizer.strides(operand.load) if operand.load else None
        if strides is None or operand.load is None:
            raise ValueError(f"{operand.name} is computed element by element")
        steps = {
            group: list(map(IndexPrinter(), group_steps))
            for group, group_steps in strides.steps.items()
        }
        batch_strides = steps[operand.batch.name]
        inner_sizes = interface.axis_sizes(operand.batch.name, 0) if len(batch_strides) > 1 else ()
        outer_size = f"batches // ({' * '.join(inner_sizes)})" if inner_sizes else "batches"
        return TensorAccess(
            interface.kernel.arg_name(operand.load.buffer),
            IndexPrinter()(strides.first),
            tuple(zip((outer_size, *inner_sizes), batch_strides, strict=True)),
            steps[operand.row.name][0],
            steps[operand.k.name][0],
        )

    def element_reader(self, operand: Operand) -> Hook:
        """Return a function that computes an element of a masked or computed operand from its flat
        indices, ``read_a(batch, m, k)`` or ``read_b0(batch, n, k)``."""
        value = self._interface.read_of(operand).value
        lines = PythonLines(self._marks)
        lines.add(f"return {self._printer(lines).element(value, operand.element)}")
        return self._reader_hook(operand, lines)

    def run_reader(self, operand: Operand, width: int) -> Hook:
        """Return a function that reads ``width`` contiguous elements of an operand at once. It
        takes a register tensor of zeros (the values of masked elements) and the first element's
        indices. Raises ``ValueError`` if the operand has an obstacle to that."""
        vector_obstacle = operand.vector_obstacle(width)
        if vector_obstacle or operand.load is None:
            raise ValueError(vector_obstacle)
        parametrizer = self._interface.read_of(operand).parametrizer
        lines = PythonLines(self._marks)
        pointer = self._interface.kernel.arg_name(operand.load.buffer)
        offset = IndexPrinter(names=FLAT_NAMES)(parametrizer.offset(operand.load))
        context: AbstractContextManager[None] = nullcontext()
        if operand.condition is not None:
            condition = self._printer(lines).value(parametrizer.value(operand.condition))
            context = lines.block(f"if {condition}")
        with context:
            lines.add(f"place = {pointer} + cute.assume({offset}, divby={width})")
            lines.add(f"elements.store(cute.make_tensor(place, cute.make_layout({width})).load())")
        return self._reader_hook(operand, lines, "elements")

    def _reader_hook(self, operand: Operand, lines: Lines, *results: str) -> Hook:
        """Return the function that reads an operand at its flat indices, after ``results``."""
        members = self._interface.members
        position = next((i for i, member in enumerate(members) if member.b is operand), 0)
        groups = (operand.batch, operand.row, operand.k)
        parameters = (*results, *(group.name for group in groups))
        return self._hook(f"read_{operand.name.lower()}", parameters, groups, position, lines)

    # ---- results

    def epilogue_vector(self, position: int) -> int:
        """Return the largest pack for which every store of a member is one aligned run along n."""
        member = self._interface.members[position]
        stores = member.contraction.stores
        return next(
            width
            for width in VECTORS
            if width == 1 or all(self._is_run(store, member, width) for store in stores)
        )

    def epilogue(self, position: int, vector: int = 1) -> Hook:
        """Return the stores of a member: a function of ``acc`` and of batch, m and n.

        With ``vector`` above 1, ``acc`` is a list of that many results along n, of which the first
        is at a multiple of it; runs of memory are then read and written at once. Raises
        ``ValueError`` if axes of n end inside a vector.
        """
        body = PythonLines(self._marks)
        self._epilogue(position, vector, body).run(self._interface.stores[position])
        return self._at_points("epilogue", position, body)

    def holds_rows(self, position: int) -> bool:
        """Whether a member's stores have two bytes per element, and each row is one run of memory
        that may begin anywhere."""
        member, buffers = self._interface.members[position], self._interface.buffers
        return _holds_vectors(member.n, ROW_VECTOR) and all(
            buffers[store.buffer].dtype.itemsize == _ROW_ITEMSIZE
            and (form := self._form(store, member)) is not None
            and collapsed_stride(form, member.n) == 1
            for store in member.contraction.stores
        )

    def elements_of_row(self, position: int) -> Hook:
        """Return a member's stores for the template to write: a function of ``acc``, a list of
        ``ROW_VECTOR`` results along n, and of batch, m and n, which is a multiple of that. It
        returns (pointer, index of the first element, list of elements) of each store."""
        body = PythonLines(self._marks)
        printer = self._epilogue(position, ROW_VECTOR, body)
        printer.elements(self._interface.stores[position])
        return self._at_points("elements_of_row", position, body)

    def _epilogue(self, position: int, vector: int, body: Lines) -> EpiloguePrinter:
        member = self._interface.members[position]
        if vector > 1 and not _holds_vectors(member.n, vector):
            raise ValueError(f"axes of n end inside a vector of {vector} elements")
        acc = "acc[j]" if vector > 1 else "acc"
        return EpiloguePrinter(self._printer(body, {"acc": acc}), member, vector, self._is_run)

    def _at_points(self, name: str, position: int, body: Lines) -> Hook:
        """Return a function of the results at a point."""
        groups = (self._interface.batch, self._interface.m, self._interface.members[position].n)
        suffix = str(position) if self._interface.is_grouped else ""
        return self._hook(f"{name}{suffix}", ("acc", *_POINT_INDICES), groups, position, body)

    def _form(self, access: Load | Store, member: Member) -> Affine | None:
        """Return an access's address over the axes of a member."""
        groups = (self._interface.batch, self._interface.m, member.n)
        ranges = loop_ranges(*(group.axes for group in groups))
        return address(access, self._interface.buffers[access.buffer], ranges)

    def _is_run(self, access: Load | Store, member: Member, width: int) -> bool:
        """Whether ``width`` steps along n are one aligned run of memory."""
        inner_axis = member.n.innermost
        form = self._form(access, member)
        if inner_axis is None or form is None or form.at(inner_axis.var) != 1:
            return False
        collapses = collapsed_stride(form, member.n) == 1
        along_n = {axis.var for axis in member.n.axes} if collapses else {inner_axis.var}
        steps = [step for var, step in form.coefficients.items() if var not in along_n]
        return _holds_vectors(member.n, width) and all(
            is_multiple(step, width) for step in (*steps, form.rest)
        )

    def elements(self) -> dict[str, Expr]:
        """Return the minimum number of elements of each argument's buffer, over the arguments: none
        if all reads are masked, or at indices from memory."""
        kernel = self._interface.kernel
        min_elements: dict[str, Expr] = dict.fromkeys(kernel.names, sympy.Integer(0))
        for operand in self._interface.operands:
            if operand.load is not None and operand.condition is None:
                min_elements[kernel.arg_name(operand.load.buffer)] = symbol("K")
        for member in self._interface.members:
            for store in member.contraction.stores:
                min_elements[kernel.arg_name(store.buffer)] = symbol(member.columns)
        return {arg.name: min_elements[arg.name] for arg in kernel.args if arg.type == "ptr"}

    # ---- source

    def _printer(self, lines: Lines, accumulators: Mapping[str, str] | None = None) -> ValuePrinter:
        return ValuePrinter(
            lines,
            self._memory,
            accumulators,
            index=IndexPrinter(names=FLAT_NAMES),
            index_type="cutlass.Int64",
            address=lambda _, index: index[0],
        )

    def _hook(
        self,
        name: str,
        parameters: tuple[str, ...],
        groups: Iterable[IndexGroup],
        position: int,
        body: Lines,
    ) -> Hook:
        """Return the function of ``body``, after the divisions of those flat indices whose parts it
        uses."""
        lines = PythonLines(self._marks)
        used_names = set(re.findall(r"\w+", str(body)))
        for group in groups:
            if used_names.isdisjoint(component.name for component in group.components):
                continue
            flat_name = group.name
            sizes = self._interface.axis_sizes(group.name, position)
            for axis_number, size in reversed(list(enumerate(sizes, start=1))):
                suffix = f"outside{axis_number}" if axis_number > 1 else "i0"
                outer_name = f"{group.name}_{suffix}"
                lines.add(f"{group.name}_i{axis_number} = {flat_name} % {size}", ())
                lines.add(f"{outer_name} = {flat_name} // {size}", ())
                flat_name = outer_name
        lines.extend(body)
        return make_hook(name, parameters, lines, self._interface.kernel.names)


def _holds_vectors(n: IndexGroup, width: int) -> bool:
    """Whether ``width`` neighbouring n, the first a multiple of it, are on one axis."""
    inner_axis = n.innermost
    if width == 1 or inner_axis is None:
        return width == 1
    has_several_axes = sum(axis.size != 1 for axis in n.axes) > 1
    return not has_several_axes or is_multiple(inner_axis.size, width)
