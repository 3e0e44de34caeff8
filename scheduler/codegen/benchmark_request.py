"""The data that a worker process needs to build, load and call one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler.codegen.kernel import KernelArg, KernelCall
from scheduler.errors import UserError
from scheduler.ir.bindings import Bindings, format_bindings
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import Buffer
from scheduler.ir.storage import bind_buffer

if TYPE_CHECKING:
    from cattrs import Converter


@dataclass(frozen=True)
class TensorArg:
    """A pointer argument: its buffer, with sizes and strides in elements."""

    name: str
    buffer: str
    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    is_output: bool


@dataclass(frozen=True)
class ScalarArg:
    """A number argument, evaluated at the requested sizes."""

    name: str
    type: str
    value: int


@dataclass(frozen=True)
class BenchmarkRequest:
    """One kernel at one binding of the symbolic sizes; ``args`` are in the C function's order."""

    kernel: str
    symbol: str
    target: str
    args: tuple[TensorArg | ScalarArg, ...]
    bindings: Mapping[str, int]

    @property
    def arg_types(self) -> tuple[str, ...]:
        """Return the argument types, as in the manifest."""
        return tuple("ptr" if isinstance(arg, TensorArg) else arg.type for arg in self.args)

    @property
    def numbers(self) -> dict[str, int]:
        """Return the number arguments by name; grids and workspace bytes are expressions over
        them."""
        return {arg.name: arg.value for arg in self.args if isinstance(arg, ScalarArg)}


_INTEGER_BITS = {"i32": 32, "i64": 64}


@dataclass(frozen=True)
class CFunctionRequest(BenchmarkRequest):
    """One kernel behind an exported C function. Raises ``UserError`` for sizes that exceed the
    types of its arguments, before a worker process calls it."""

    def __post_init__(self) -> None:
        for arg in self.args:
            if not isinstance(arg, ScalarArg) or arg.type not in _INTEGER_BITS:
                continue
            bits = _INTEGER_BITS[arg.type]
            if not -(1 << bits - 1) <= arg.value < 1 << bits - 1:
                sizes = format_bindings(self.bindings)
                raise UserError(
                    f"argument {arg.name} of {self.kernel} has {bits} bits, which cannot "
                    f"hold {arg.value}: choose smaller sizes than {sizes}"
                )


def register_arg_union(codec: Converter) -> None:
    """Encode requests as JSON with a tag for the kind of each argument."""
    from cattrs.strategies import configure_tagged_union  # noqa: PLC0415 - rendering needs none

    kinds = {TensorArg: "tensor", ScalarArg: "scalar"}
    configure_tagged_union(TensorArg | ScalarArg, codec, kinds.__getitem__, tag_name="kind")


def make_request(
    bindings: Bindings,
    call: KernelCall,
    args: Sequence[KernelArg],
    buffers: Mapping[str, Buffer],
    *,
    symbol: str,
    target: str,
    request_type: type[BenchmarkRequest] = BenchmarkRequest,
) -> BenchmarkRequest:
    """Return a call at concrete sizes; ``args`` are the kernel's. Raises ``KeyError`` for an
    unbound symbol, and what ``request_type``, the backend's, raises for sizes that its kernels
    cannot be called with."""
    values: list[TensorArg | ScalarArg] = []
    for arg in args:
        value = call.args[arg.name]
        if isinstance(value, str):
            bound = bind_buffer(buffers[value], bindings)
            facts = (bound.dtype.label, bound.size, bound.stride)
            values.append(TensorArg(arg.name, value, *facts, arg.is_output))
        else:
            values.append(ScalarArg(arg.name, arg.type, evaluate(value, bindings)))
    return request_type(call.kernel, symbol, target, tuple(values), dict(bindings))
