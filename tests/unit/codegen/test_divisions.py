"""Divisions of indices by sizes that are not known: multiplications by numbers that the caller
computes, on CPU emulation and by the instructions."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.pointwise.template import PointwiseTemplate
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr, evaluate, symbol
from scheduler.ir.operations import Pointwise, Reduction, ReductionKind, Store
from scheduler.ir.values import Accumulator, Call, Load
from tests.support.caches import KEPT
from tests.unit.codegen.loopnest import at, axes, buffer, run
from tests.unit.codegen.test_pointwise_kernels import template
from tests.unit.codegen.test_reduction_kernels import F32, WAVES, reduction

A, B, C = (symbol(name) for name in ("s0", "s1", "s2"))


def sizes(most: int | None) -> tuple[SymbolInfo, ...]:
    return tuple(SymbolInfo(name, 8, 0, most) for name in ("s0", "s1", "s2"))


def turned(most: int | None) -> PointwiseTemplate:
    """x[s0, s1, s2] turned and added to a row of it: no two axes are one."""
    walked = axes(A, B, C)
    a, b, c = at(walked)
    value = Call("add", (Load("x", (c, b, a), F32), Load("row", (c,), F32)), F32)
    buffers = [buffer("x", F32, (C, B, A)), buffer("row", F32, (C,)), buffer("y", F32, (A, B, C))]
    return template(
        [Pointwise("op0", walked, Store("y", (a, b, c), value), ())], buffers, sizes(most)
    )


def check(caller: TemplateCaller, count: tuple[int, int, int], target: str) -> None:
    rng = np.random.default_rng(sum(count))
    x = rng.standard_normal(count[::-1]).astype(np.float32)
    row = rng.standard_normal(count[2]).astype(np.float32)
    bindings = dict(zip(("s0", "s1", "s2"), count, strict=True))
    found = run(caller, {"x": x.reshape(-1), "row": row}, bindings, target)["y"]
    assert (found.reshape(count) == x.transpose(2, 1, 0) + row).all(), (count, target)


def wide(caller: TemplateCaller) -> TemplateCaller:
    """The same, told of sizes that need 64 bits."""
    args = {**caller.call.args, "extent": as_expr(1 << 40)}
    return replace(caller, call=replace(caller.call, args=args))


@pytest.mark.full(but=2)
@pytest.mark.parametrize("most", [512, None])
def test_flat_indices(most: int | None) -> None:
    """Of 32 bits; where sizes may need 64 the kernel has both."""
    caller = turned(most).generate({"threads": 256, "vector": 1})
    source = caller.kernel.source
    assert "kiln::remainder(xindex, s2, by1)" in source
    assert not re.search(r"xindex\w* [/%]", source)
    numbers = [arg.name for arg in caller.kernel.args if arg.type == "i64" and arg.name[0] != "s"]
    assert numbers == ["by0", "by1"] + (["extent"] if most is None else [])
    for count in ((1, 1, 1), (3, 5, 7), (2, 1, 131), (9, 4, 16), (1, 509, 2), (3, 0, 2)):
        for target in WAVES:
            check(caller, count, target)
            if most is None:
                check(wide(caller), count, target)


def test_the_width_hangs_on_all_that_is_counted() -> None:
    """Steps, and how far each buffer reaches: whichever is the most."""
    caller = turned(None).generate({"threads": 256, "vector": 1})
    extent = caller.call.args["extent"]
    assert not isinstance(extent, str)
    assert 1 << 32 <= evaluate(extent, {"s0": 1 << 20, "s1": 1 << 10, "s2": 4}) < 1 << 33
    assert 1 << 12 <= evaluate(extent, {"s0": 1 << 4, "s1": 1 << 4, "s2": 1 << 4}) < 1 << 13
    assert "if (extent <= 2147418111)" in caller.kernel.source


@pytest.mark.full(but=["512-isa:gfx942", "512-isa:gfx1201"])
@pytest.mark.parametrize("target", ["isa:gfx942", "isa:gfx1100", "isa:gfx1201"])
@pytest.mark.parametrize("most", [512, None])
def test_the_instructions(target: str, most: int | None) -> None:
    check(turned(most).generate({"threads": 256, "vector": 1}), (7, 5, 13), target)


def squares() -> TemplateCaller:
    """x[s1, s0, 32, 32] with the first two axes and the last two exchanged, in squares."""
    walked = axes(A, B, 32, 32)
    a, b, c, d = at(walked)
    buffers = [buffer("x", F32, (B, A, 32, 32)), buffer("y", F32, (A, B, 32, 32))]
    store = Store("y", (a, b, c, d), Load("x", (b, a, d, c), F32))
    made = template([Pointwise("op0", walked, store, ())], buffers, sizes(None))
    config = {"threads": 256, "vector": 4, "turned": 32}
    assert made.reject(config) is None
    return made.generate(config)


def test_squares_of_both_widths() -> None:
    x = np.random.default_rng(5).standard_normal((5, 3, 32, 32)).astype(np.float32)
    for caller in (squares(), wide(squares())):
        assert "kiln::remainder(others, s1, by0)" in caller.kernel.source
        found = run(caller, {"x": x.reshape(-1)}, {"s0": 3, "s1": 5})["y"]
        assert (found.reshape(3, 5, 32, 32) == x.transpose(1, 0, 3, 2)).all()


@pytest.mark.full(but=["gfx942"])
@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "sm_90"])
def test_both_widths_build(target: str) -> None:
    kernels = turned(None).generate({"threads": 256, "vector": 1}).kernel, squares().kernel
    chosen = targets.find(target)
    for kernel in kernels:
        toolchain = pick_toolchain(find_target_toolchains(chosen, Search(cache=KEPT)), chosen)
        assert isinstance(build(kernel.source, kernel.name, chosen, toolchain, KEPT), Build)


def test_indices_that_are_computed() -> None:
    """x read back to front in groups: FloorDiv and Mod by a size, and one by what may be none."""
    (walked,) = axes(A)
    i = walked.var
    index = FloorDiv(i, B) + Mod(i, B)
    store = Store("y", (i,), Load("x", (index,), F32))
    buffers = [buffer("x", F32, (A + B,)), buffer("y", F32, (A,))]
    caller = template([Pointwise("op0", (walked,), store, ())], buffers, sizes(4096)).generate(
        {"threads": 256, "vector": 1}
    )
    assert "kiln::quotient(x0, s1, by0)" in caller.kernel.source
    x = np.arange(2000, dtype=np.float32)
    for count, each in ((1000, 7), (1000, 1), (5, 1000)):
        found = run(caller, {"x": x[: count + each]}, {"s0": count, "s1": each})["y"]
        places = np.arange(count)
        assert (found == places // each + places % each).all()


def test_steps_of_several_axes() -> None:
    """A sum over the first and the last axis: each step's place is two divisions otherwise."""
    walked = axes(A, B, C)
    outer, inner = walked[1:2], (walked[0], walked[2])
    load, store = Load("x", at(walked), F32), Store("y", at(outer), Accumulator(F32))
    member = Reduction("op0", outer, inner, ReductionKind.SUM, load, F32, store, ())
    buffers = [buffer("x", F32, (A, B, C)), buffer("y", F32, (B,))]
    made = reduction([member], buffers, sizes(512))
    for config in (made.default_config(), {"lanes": 64, "vector": 4, "keep": False}):
        caller = made.generate(config)
        assert "kiln::remainder(rindex, s2, by0)" in caller.kernel.source
        for count in ((3, 5, 8), (4, 3, 7), (1, 1, 1), (2, 3, 0)):
            x = np.random.default_rng(4).standard_normal(count).astype(np.float32)
            bindings = dict(zip(("s0", "s1", "s2"), count, strict=True))
            found = run(caller, {"x": x.reshape(-1)}, bindings)["y"]
            assert np.allclose(found, x.sum((0, 2)), atol=1e-4), (config, count)


def test_known_sizes_need_no_numbers() -> None:
    walked = axes(A, 6, 10)
    a, b, c = at(walked)
    buffers = [buffer("x", F32, (A, 10, 6)), buffer("y", F32, (A, 6, 10))]
    store = Store("y", (a, b, c), Load("x", (a, c, b), F32))
    made = template([Pointwise("op0", walked, store, ())], buffers, sizes(None))
    caller = made.generate({"threads": 256, "vector": 1})
    assert "kiln/divide.h" not in caller.kernel.source
    assert [arg.name for arg in caller.kernel.args if arg.type == "i64"] == ["s0"]


def test_a_row_is_found_by_division() -> None:
    """Once a row: no number is worth it."""
    walked = axes(A, B, C)
    outer, inner = walked[:2], walked[2:]
    load = Load("x", (*at(walked[1::-1]), walked[2].var), F32)
    store = Store("y", at(outer), Accumulator(F32))
    member = Reduction("op0", outer, inner, ReductionKind.SUM, load, F32, store, ())
    buffers = [buffer("x", F32, (B, A, C)), buffer("y", F32, (A, B))]
    caller = reduction([member], buffers, sizes(512)).generate(
        {"lanes": 8, "vector": 1, "keep": False}
    )
    assert "xindex % s1" in caller.kernel.source


def test_a_multiplier_is_what_the_caller_computes() -> None:
    caller = turned(None).generate({"threads": 256, "vector": 1})
    by = caller.call.args["by1"]
    assert not isinstance(by, str)
    for size in (0, 1, 2, 3, 7, 641, (1 << 31) - 1):
        assert evaluate(by, {"s2": size}) == (1 << 62) // max(size, 1) + 1
