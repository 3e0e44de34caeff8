"""Building small groups by hand, running their kernels on CPU emulation, and what they must give.

``Points`` evaluates the same trees with NumPy in float64, over all points at once. It is not the
engine's interpreter, on purpose: it addresses flat memory by strides and rounds where trees cast,
as the printed text does, so that the two tell on each other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sympy

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled_clang
from scheduler.codegen.caller import TemplateCaller
from scheduler.fusion.nodes import SchedulerNode, make_node
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, Node, SymbolInfo
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr, evaluate, symbol
from scheduler.ir.operations import Axis, Buffer, BufferKind, GroupKind, Lowered, Operation
from scheduler.ir.pointwise import FUNCTIONS
from scheduler.ir.values import Accumulator, Call, Cast, Const, IndexValue, Load, Masked, Value
from scheduler.runtime.cpu import CpuDevice
from scheduler.runtime.device import Device
from scheduler.runtime.isa_device import EmulatedKernel, IsaDevice
from tests.support.caches import KEPT
from tests.support.memory import contiguous, from_device, to_device


def ints(*sizes: Any) -> tuple[sympy.Expr, ...]:
    return tuple(as_expr(size) for size in sizes)


def axes(*sizes: Any, prefix: str = "i") -> tuple[Axis, ...]:
    return tuple(
        Axis(symbol(f"{prefix}{number}"), size) for number, size in enumerate(ints(*sizes))
    )


def at(walked: Sequence[Axis]) -> tuple[sympy.Expr, ...]:
    return tuple(axis.var for axis in walked)


def buffer(
    name: str, dtype: DType, sizes: Sequence[Any], stride: Sequence[Any] | None = None
) -> Buffer:
    strides = contiguous(sizes) if stride is None else ints(*stride)
    return Buffer(name, dtype, ints(*sizes), strides, BufferKind.INTERMEDIATE, name)


def group(
    kind: GroupKind,
    members: Sequence[Operation],
    buffers: Sequence[Buffer],
    symbols: Sequence[SymbolInfo] = (),
    ops: Sequence[str] = ("aten.add.Tensor",),
    needed: Sequence[str] | None = None,
) -> tuple[SchedulerNode, Lowered]:
    """A node of these members that writes what is ``needed`` of their results (None: all)."""
    nodes = tuple(
        Node(op.split(".")[1] + str(i), op, (), {}, (f"v{i}",)) for i, op in enumerate(ops)
    )
    names = tuple(node.name for node in nodes)
    graph = Graph("test", "0" * 64, {s.name: s for s in symbols}, (), (), nodes, {}, {})
    by_name = {one.name: one for one in buffers}
    lowered = Lowered(graph, by_name, tuple(members), (), ())
    one = sympy.Integer(1)
    made = make_node(members, kind, (one, one), {}, needed)
    return replace(made, name="node0", nodes=names), lowered


# -- NumPy --------------------------------------------------------------------------------------


def rounded(values: np.ndarray, dtype: DType) -> np.ndarray:
    return from_device(to_device(values, dtype), dtype)


class Points:
    """Evaluates trees and indices at all points of some axes; memory is flat arrays."""

    def __init__(
        self,
        walked: Sequence[Axis],
        memory: Mapping[str, np.ndarray],
        buffers: Mapping[str, Buffer],
        bindings: Mapping[str, int],
        accumulators: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.bindings = dict(bindings)
        self.shape = tuple(evaluate(axis.size, self.bindings) for axis in walked)
        grids = np.indices(self.shape, dtype=np.int64)
        self.grid = {axis.var: grids[i] for i, axis in enumerate(walked)}
        self.memory = memory
        self.buffers = buffers
        self.accumulators = accumulators or {}

    def index(self, expr: sympy.Expr, extra: Mapping[sympy.Symbol, Any]) -> Any:
        if expr.is_Integer:
            return int(expr)
        if expr.is_Symbol:
            if expr in extra:
                return extra[expr]
            return self.grid[expr] if expr in self.grid else self.bindings[expr.name]
        parts = [self.index(arg, extra) for arg in expr.args]
        if isinstance(expr, FloorDiv):
            return parts[0] // parts[1]
        if isinstance(expr, Mod):
            return parts[0] % parts[1]
        result = parts[0]
        for part in parts[1:]:
            result = result + part if expr.is_Add else result * part
        return result

    def flat(self, name: str, index: Sequence[sympy.Expr], extra: Mapping[Any, Any]) -> np.ndarray:
        position: Any = 0
        for expr, stride in zip(index, self.buffers[name].stride, strict=True):
            position = position + self.index(expr, extra) * evaluate(stride, self.bindings)
        return np.broadcast_to(np.asarray(position, dtype=np.int64), self.shape)

    def value(self, value: Value) -> np.ndarray:
        if isinstance(value, Const):
            kind = np.float64 if value.dtype.is_float else value.dtype.numpy
            return np.full(self.shape, value.value, dtype=kind)
        if isinstance(value, Accumulator):
            return self.accumulators[value.name]
        if isinstance(value, IndexValue):
            full = np.broadcast_to(self.index(value.expr, {}), self.shape)
            return full.astype(np.float64 if value.dtype.is_float else value.dtype.numpy)
        if isinstance(value, Call):
            args = [self.value(arg) for arg in value.args]
            with np.errstate(all="ignore"):
                return np.asarray(FUNCTIONS[value.op].numpy(*args))
        if isinstance(value, Cast):
            inner = self.value(value.value)
            if value.dtype.is_float:
                return rounded(inner, value.dtype)
            return inner.astype(value.dtype.numpy)
        if isinstance(value, Masked):
            condition = self.value(value.condition).astype(bool)
            return np.where(condition, self.value(value.value), self.value(value.other))
        return self.load(value)

    def load(self, load: Load) -> np.ndarray:
        extra: dict[sympy.Symbol, np.ndarray] = {}
        for indirect in load.indirect:
            size = evaluate(indirect.size, self.bindings)
            found = self.value(indirect.value).astype(np.int64)
            if indirect.wrap:
                found = np.where(found < 0, found + size, found)
            extra[indirect.symbol] = np.clip(found, 0, size - 1)
        memory = self.memory[load.buffer]
        if memory.size == 0:
            return np.zeros(self.shape)
        flat = np.clip(self.flat(load.buffer, load.index, extra), 0, memory.size - 1)
        return from_device(memory[flat], load.dtype)


# -- the device ---------------------------------------------------------------------------------


def extent(of: Buffer, bindings: Mapping[str, int]) -> int:
    """Elements from the first to the last of a buffer."""
    last = 0
    for size, stride in zip(of.size, of.stride, strict=True):
        length = evaluate(size, dict(bindings))
        if length == 0:
            return 0
        last += (length - 1) * evaluate(stride, dict(bindings))
    return last + 1


def compiled(caller: TemplateCaller, target: str = "cpu") -> Build:
    made = build(
        caller.kernel.source, caller.kernel.name, targets.find(target), bundled_clang(KEPT), KEPT
    )
    assert isinstance(made, Build), f"{made.reason}\n{made.detail}\n{caller.kernel.source}"
    return made


_GUARD = 64


def run(
    caller: TemplateCaller,
    memory: Mapping[str, np.ndarray],
    bindings: Mapping[str, int] | None = None,
    target: str = "cpu",
) -> dict[str, np.ndarray]:
    """Call a kernel on copies of ``memory``; outputs begin as NaN, and have guards behind them.

    ``target`` is an emulation, or ``isa:<target>``: the code object's instructions.
    """
    bindings = dict(bindings or {})
    made = compiled(caller, target.removeprefix("isa:"))
    library, device = _device(caller, made, target)
    try:
        kernel = caller.kernel
        loaded = device.load(library, kernel.symbol, [arg.type for arg in kernel.args])
        args: list[int | float] = []
        outputs: list[tuple[str, int, int, DType]] = []
        for arg in kernel.args:
            value = caller.call.args[arg.name]
            if not isinstance(value, str):
                args.append(evaluate(value, bindings))
                continue
            dtype = DType.from_label(arg.dtype)
            count = extent(caller.buffers[value], bindings)
            nbytes = count * dtype.itemsize
            pointer = device.allocate(nbytes + _GUARD) if count else 0
            if pointer:
                device.fill(pointer, 0xFF, nbytes + _GUARD)
            if arg.is_output:
                outputs.append((value, pointer, count, dtype))
            elif pointer:
                device.write(pointer, memory[value])
            args.append(pointer)
        workspace = loaded.workspace_bytes(args)
        loaded(args, device.allocate(workspace))
        return {name: _read(device, pointer, n, dtype) for name, pointer, n, dtype in outputs}
    finally:
        device.close()


def _device(caller: TemplateCaller, made: Build, target: str) -> tuple[Path, Device]:
    if not target.startswith("isa:"):
        return made.directory / "kernel.so", CpuDevice(targets.find(target), threads=2)
    processor, kernel = target.removeprefix("isa:"), caller.kernel
    listing = (made.directory / "kernel.s").read_text()
    emulated = EmulatedKernel(
        processor, listing, kernel.symbol, kernel.args, kernel.launches, kernel.workspace_bytes
    )
    library = Path(tempfile.mkdtemp()) / "kernel.json"
    library.write_text(emulated.to_json())
    return library, IsaDevice(processor)


def _read(device: Device, pointer: int, count: int, dtype: DType) -> np.ndarray:
    raw = np.empty(count * dtype.itemsize + (_GUARD if pointer else 0), dtype=np.uint8)
    if pointer:
        device.read(pointer, raw)
        assert (raw[count * dtype.itemsize :] == 0xFF).all(), "written behind the buffer"
    return raw[: count * dtype.itemsize].view(dtype.numpy)


def random_memory(
    rng: np.random.Generator, of: Buffer, bindings: Mapping[str, int], high: int = 8
) -> np.ndarray:
    """Values that fill a buffer from its first element to its last."""
    count = extent(of, bindings)
    if of.dtype is DType.BOOL:
        return rng.integers(0, 2, count).astype(bool)
    if of.dtype.is_float:
        return to_device(rng.standard_normal(count), of.dtype)
    return rng.integers(0, high, count).astype(of.dtype.numpy)
