"""Rows and tensors around 2^31 elements: kernels count in 64 bits where 32 may not hold an index,
and what a kernel cannot count is refused. The export's upper bound decides where sizes are not
known."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import sympy

from scheduler import targets
from scheduler.bundle.execute import arguments
from scheduler.bundle.manifest import kernel_entry
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.errors import UserError
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, GraphInput, InputKind, Node, Ref, SymbolInfo
from scheduler.ir.operations import GroupKind
from scheduler.lowering import lower
from scheduler.runtime.cpu import CpuDevice
from tests.unit.codegen.loopnest import compiled
from tests.unit.lowering.graphs import graph, meta, node

CPU = targets.find("cpu")
N = sympy.Symbol("s0", positive=True, integer=True)
NARROW = 2**31 - 2**16 - 1  # the most steps that 32 bits count, a block's beyond the end included
X = Ref("x")
I8, F16, I64 = DType.I8, DType.F16, DType.I64
#: What is computed of x, what x is, and what comes out, over n elements in all.
CASES: dict[str, tuple[list[Node], Any, Any, Any]] = {
    "pointwise": ([node("y", "aten.neg.default", X)], F16, lambda n: (n,), lambda n: (n,)),
    "row": ([node("y", "aten.amax.default", X, (0,))], I8, lambda n: (n,), lambda n: ()),
    "place": ([node("y", "aten.argmax.default", X, 0)], I8, lambda n: (n,), lambda n: ()),
    "rows": ([node("y", "aten.amax.default", X, (1,))], I8, lambda n: (3, n / 3), lambda n: (3,)),
    "columns": (
        [node("y", "aten.amax.default", X, (0,))],
        I8,
        lambda n: (n / 3, 3),
        lambda n: (3,),
    ),
    "many rows": (
        [node("y", "aten.amax.default", X, (1,))],
        I8,
        lambda n: (n / 3, 3),
        lambda n: (n / 3,),
    ),
    "softmax": ([node("y", "aten.softmax.int", X, 0)], F16, lambda n: (n,), lambda n: (n,)),
    "scan": ([node("y", "aten.cumsum.default", X, 0)], F16, lambda n: (n,), lambda n: (n,)),
    "gather": (
        [node("y", "aten.index_select.default", X, 0, Ref("at"))],
        F16,
        lambda n: (n / 3, 3),
        lambda n: (2, 3),
    ),
}


def graph_of(case: str, size: Any, most: int | None = None) -> Graph:
    nodes, dtype, shape, out = CASES[case]
    made = {"place": I64}.get(case, dtype)
    tensors = {"x": meta(dtype, *shape(size)), "y": meta(made, *out(size))}
    names = ["x"]
    if case == "gather":
        tensors["at"] = meta(I64, 2)
        names.append("at")
    symbols = {} if size.is_Integer else {"s0": SymbolInfo("s0", 64, 1, most)}
    inputs = [GraphInput(name, InputKind.USER) for name in names]
    return graph(inputs, nodes, tensors, ("y",), symbols)


def callers(made: Graph) -> list[TemplateCaller]:
    plan = schedule(lower(made))
    assert all(one.kind is not GroupKind.EXTERN for one in plan.nodes)
    return [ROCmCPPScheduling(plan, (CPU,)).default(one) for one in plan.nodes]


def widths(made: Graph) -> set[str]:
    """Of the indices of each kernel that computes ``made``."""
    found = {
        width
        for one in callers(made)
        for width in ("32", "64")
        if f"using index_t = int{width}_t;" in one.kernel.source
    }
    assert found, "no kernel says how wide its indices are"
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_fixed_size_beyond_32_bits_is_counted_in_64(case: str) -> None:
    assert widths(graph_of(case, sympy.Integer(3 * 2**28))) == {"32"}
    for size in (NARROW // 3 * 3 + 3, 2**31 + 1, 3 * 2**31):
        assert "64" in widths(graph_of(case, sympy.Integer(size))), size


@pytest.mark.parametrize("case", CASES)
def test_the_upper_bound_of_a_size_decides(case: str) -> None:
    assert widths(graph_of(case, 3 * N, 2**28)) == {"32"}
    for most in (2**31 // 3 + 1, 2**40, None):
        assert "64" in widths(graph_of(case, 3 * N, most)), most


class Zeros:
    """Memory that takes none where it is only read: its pages are the system's page of zeros."""

    def __init__(self, nbytes: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        self._memory = mmap.mmap(-1, nbytes + mmap.PAGESIZE, flags=flags)
        self.bytes = np.frombuffer(self._memory, np.uint8)
        self.pointer = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))


def run(made: Graph, size: int, given: Mapping[int, int]) -> int:
    """What comes out of the only kernel for a row of zeros with ``given`` at these places."""
    (caller,) = callers(made)
    x, y = Zeros(size), Zeros(8)
    for place, value in given.items():
        x.bytes[place] = value
    device = CpuDevice(CPU, threads=2)
    try:
        kernel = caller.kernel
        types = [arg.type for arg in kernel.args]
        loaded = device.load(compiled(caller).directory / "kernel.so", kernel.symbol, types)
        args = [
            (y.pointer if arg.is_output else x.pointer) if arg.type == "ptr" else size
            for arg in kernel.args
        ]
        workspace = Zeros(max(1, loaded.workspace_bytes(args)))
        loaded(args, workspace.pointer)
    finally:
        device.close()
    return int(y.bytes[:8].view(np.int64)[0])


@pytest.mark.long
@pytest.mark.parametrize("case", ["row", "place"])
@pytest.mark.parametrize("size", [2**30 + 3, NARROW, 2**31 + 5, 2**32 + 7])
@pytest.mark.parametrize("fixed", [True, False])
def test_a_row_is_read_to_its_end(case: str, size: int, fixed: bool) -> None:
    """Two elements are alike, so that the first of them is what is found."""
    expr = sympy.Integer(size) if fixed else N
    made = graph_of(case, expr, None if fixed else size)
    for first in (size - 2, size // 2, 2**30):
        found = run(made, size, {first: 9, size - 1: 9})
        assert found == (9 if case == "row" else first)


def test_a_size_that_a_product_cannot_count_is_refused() -> None:
    """Rows, columns and steps of a product are 32 bits wide: others are no arguments."""
    k = sympy.Integer(2**31 + 8)
    tensors = {"x": meta(F16, 1, k), "w": meta(F16, k, 1), "y": meta(F16, 1, 1)}
    inputs = [GraphInput(name, InputKind.USER) for name in ("x", "w")]
    made = graph(inputs, [node("y", "aten.mm.default", X, Ref("w"))], tensors, ("y",), {})
    (caller,) = callers(made)
    pointers = dict.fromkeys(caller.buffers, 256)
    with pytest.raises(
        UserError, match=r"K is 2147483656, which does not fit in the 32 bits of this kernel"
    ):
        arguments(caller.call, kernel_entry(caller.kernel), pointers, {})
