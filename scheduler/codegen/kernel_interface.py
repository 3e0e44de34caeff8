"""The interface of one kernel: the buffers and numbers that it takes, and their names.

``KernelInterface`` collects arguments while a template renders; a buffer with several roles
(``mm(x, x)``) is one argument under one name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.codegen.kernel import ArgType, KernelArg, KernelCall
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr
from scheduler.ir.operations import Buffer


class KernelInterface:
    """Arguments of the kernel under construction, in the order of the exported function."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # buffer -> argument
        self._args: list[KernelArg] = []
        self._buffers: dict[str, Buffer] = {}
        self._values: dict[str, str | Expr] = {}

    def def_kernel(
        self,
        inputs: Sequence[Buffer | None],
        outputs: Sequence[Buffer],
        names: Sequence[str],
        input_reorder: Sequence[int] | None = None,
    ) -> None:
        """Register pointers: inputs (in ``input_reorder`` order, each buffer once), then outputs.

        ``names`` has one name for each input and output, in the order given; None inputs are
        skipped with their names. ``input_reorder[i]`` is the position in ``inputs`` of the i-th
        argument. Raises ``ValueError`` if names or order do not match.
        """
        if len(names) != len(inputs) + len(outputs):
            raise ValueError(
                f"{len(names)} names for {len(inputs)} inputs and {len(outputs)} outputs"
            )
        order = list(range(len(inputs))) if input_reorder is None else list(input_reorder)
        if sorted(order) != list(range(len(inputs))):
            raise ValueError(f"input_reorder {order} is not a permutation of {len(inputs)} inputs")
        for position in order:
            buffer = inputs[position]
            if buffer is not None:
                self._add_pointer(buffer, names[position], is_output=False)
        for buffer, name in zip(outputs, names[len(inputs) :], strict=True):
            self._add_pointer(buffer, name, is_output=True)

    def _add_pointer(self, buffer: Buffer, name: str, *, is_output: bool) -> None:
        if buffer.name in self._names:
            if is_output:
                raise ValueError(f"a kernel cannot write buffer {buffer.name}, which it reads")
            return
        self._names[buffer.name] = name
        self._buffers[buffer.name] = buffer
        self._args.append(KernelArg(name, "ptr", is_output, buffer.dtype.label))
        self._values[name] = buffer.name

    def add_scalar(self, name: str, value: Expr | int, type_: ArgType = "i32") -> str:
        """Register a number under its own name (M, N, K)."""
        if name in self._values:
            raise ValueError(f"argument {name} already exists")
        self._args.append(KernelArg(name, type_))
        self._values[name] = as_expr(value)
        return name

    def buffer_of(self, arg: KernelArg) -> Buffer:
        """Return the buffer of a pointer argument."""
        return self._buffers[str(self._values[arg.name])]

    @property
    def args(self) -> tuple[KernelArg, ...]:
        return tuple(self._args)

    @property
    def buffers(self) -> Mapping[str, Buffer]:
        return self._buffers

    def arg_name(self, buffer: Buffer | str) -> str:
        """Return the argument that holds a registered buffer; raises ``KeyError`` if there is
        none."""
        return self._names[buffer if isinstance(buffer, str) else buffer.name]

    def size(
        self, buffer: Buffer, start: int, end: int | None = None, default: Expr | int = 0
    ) -> Expr:
        """Return the product of the sizes of dimensions ``start`` to ``end`` inclusive (negative:
        from the end; None: the last); ``default`` if the buffer has no such dimension."""
        rank = len(buffer.size)
        last = rank - 1 if end is None else end + rank if end < 0 else end
        first = start + rank if start < 0 else start
        if first < 0 or last >= rank or first > last:
            return as_expr(default)
        product: Expr = as_expr(1)
        for extent in buffer.size[first : last + 1]:
            product = product * extent
        return product

    def call_kernel(self, name: str, nodes: tuple[str, ...]) -> KernelCall:
        """Return the wrapper's call: a buffer or an expression for each argument."""
        return KernelCall(name, dict(self._values), nodes)
