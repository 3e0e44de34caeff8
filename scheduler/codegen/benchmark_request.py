"""All that a worker process needs to build, load and call one kernel, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from scheduler.codegen.kernel import KernelArg, KernelCall
from scheduler.ir.bindings import Bindings
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import Buffer
from scheduler.ir.storage import bind_buffer


@dataclass(frozen=True)
class TensorArg:
    """A pointer argument: the buffer it stands for, sizes and strides in elements."""

    name: str
    buffer: str
    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    is_output: bool


@dataclass(frozen=True)
class ScalarArg:
    """A number argument at the sizes asked for."""

    name: str
    type: str
    value: int


@dataclass(frozen=True)
class BenchmarkRequest:
    """One kernel at one binding of the symbolic sizes; ``args`` are in the C function's order."""

    kernel: str
    symbol: str
    source: str
    target: str
    args: tuple[TensorArg | ScalarArg, ...]
    bindings: Mapping[str, int]
    workspace_bytes: int

    @property
    def arg_types(self) -> tuple[str, ...]:
        """Types of the arguments as in the manifest."""
        return tuple("ptr" if isinstance(arg, TensorArg) else arg.type for arg in self.args)

    def to_json(self) -> dict[str, Any]:
        """The request in JSON's own types."""
        data = asdict(self)
        data["args"] = [
            {"kind": "tensor" if isinstance(arg, TensorArg) else "scalar", **asdict(arg)}
            for arg in self.args
        ]
        data["bindings"] = dict(self.bindings)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The request again; ``KeyError`` or ``TypeError`` where a field is missing or unknown."""
        args: list[TensorArg | ScalarArg] = []
        for item in data["args"]:
            fields = {key: value for key, value in item.items() if key != "kind"}
            if item["kind"] == "tensor":
                fields["size"] = tuple(fields["size"])
                fields["stride"] = tuple(fields["stride"])
                args.append(TensorArg(**fields))
            else:
                args.append(ScalarArg(**fields))
        return cls(**{**data, "args": tuple(args)})


def request_at(
    bindings: Bindings,
    call: KernelCall,
    args: Sequence[KernelArg],
    buffers: Mapping[str, Buffer],
    workspace_bytes: Expr,
    *,
    symbol: str,
    target: str,
    source: str = "",
    request_type: type[BenchmarkRequest] = BenchmarkRequest,
) -> BenchmarkRequest:
    """A call at concrete sizes; ``args`` are the kernel's, ``source`` is empty where it is built
    already. Raises ``KeyError`` for a symbol that has no binding, and what ``request_type``, the
    backend's, raises for sizes that its kernels cannot be called with."""
    made: list[TensorArg | ScalarArg] = []
    scalars = dict(bindings)
    for arg in args:
        value = call.args[arg.name]
        if isinstance(value, str):
            bound = bind_buffer(buffers[value], bindings)
            facts = (bound.dtype.label, bound.size, bound.stride)
            made.append(TensorArg(arg.name, value, *facts, arg.is_output))
        else:
            scalars[arg.name] = evaluate(value, bindings)
            made.append(ScalarArg(arg.name, arg.type, scalars[arg.name]))
    return request_type(
        call.kernel,
        symbol,
        source,
        target,
        tuple(made),
        dict(bindings),
        evaluate(workspace_bytes, scalars),
    )
