"""Pointwise kernels against NumPy, every function, layout, type and mask: HIP's on CPU emulation,
CuteDSL's by the stand-in for it (``tests/support/cutedsl.py``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from scheduler import targets
from scheduler.codegen.rocm.pointwise.template import PointwiseTemplate
from scheduler.codegen.template import KernelTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import GroupKind, Pointwise, Store
from scheduler.ir.pointwise import FUNCTIONS, Domain, Result
from scheduler.ir.values import (
    Call,
    Cast,
    Const,
    IndexValue,
    Indirect,
    Load,
    Masked,
    Value,
)
from tests.support import cutedsl as support_cutedsl
from tests.support.memory import from_device, to_device
from tests.unit.codegen.cutedsl import cutedsl_template
from tests.unit.codegen.loopnest import (
    Points,
    at,
    axes,
    buffer,
    compiled,
    extent,
    group,
    random_memory,
    run,
)

F32, F16, BF16, F64, I64, I32, BOOL = (
    DType.F32,
    DType.F16,
    DType.BF16,
    DType.F64,
    DType.I64,
    DType.I32,
    DType.BOOL,
)
GPU = tuple(
    targets.find(n) for n in ("gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201")
)
S = symbol("s27")
SYMBOL = SymbolInfo("s27", 6, 1, 64)


def template(members: list[Pointwise], buffers: list, symbols: tuple = ()) -> PointwiseTemplate:
    node, lowered = group(GroupKind.POINTWISE, members, buffers, symbols)
    return PointwiseTemplate(node, lowered, GPU)


@dataclass(frozen=True)
class Language:
    """How a language's kernels are made and called, and the functions that it does not have."""

    template: Callable[..., KernelTemplate]
    run: Callable[..., dict[str, np.ndarray]]
    lacks: frozenset[str] = frozenset()


HIP = Language(template, run)
# Their candidates are rejected by the function's name.
NOT_IN_CUTEDSL = frozenset(
    [
        *("erfinv", "erfcx", "ndtri", "lgamma", "digamma", "i0", "i0e", "i1", "i1e", "nextafter"),
        *("gcd", "float32_of", "philox_word", "philox_word0", "philox_word1"),
    ]
)
CUTEDSL = Language(cutedsl_template, support_cutedsl.run, NOT_IN_CUTEDSL)
in_each_language = pytest.mark.parametrize("language", [HIP, CUTEDSL], ids=["hip", "cutedsl"])


# -- functions ------------------------------------------------------------------------------------

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-3, 80.0, -80.0]
SPECIAL = [np.inf, -np.inf, np.nan]


def function_dtypes(name: str) -> list[DType]:
    domain = FUNCTIONS[name].domain
    if FUNCTIONS[name].result in (Result.COMPLEX, Result.BITS):
        return []  # tests/unit/codegen/test_dtypes.py
    return {
        Domain.FLOAT: [F32, F64],
        Domain.NUMBER: [F32, F64, I64, I32],
        Domain.INTEGER: [I64, I32],
        Domain.BOOL: [BOOL],
        Domain.ANY: [F32, I64, BOOL],
        Domain.COMPLEX: [],
    }[domain]


def arguments(name: str, dtype: DType) -> list[np.ndarray]:
    arity = FUNCTIONS[name].arity
    if dtype.is_float:
        grid = np.array(FLOATS + SPECIAL)
    elif dtype is BOOL:
        grid = np.array([False, True])
    else:
        grid = np.array([-7, -3, -2, -1, 1, 2, 3, 5, 11])
    if arity == 1:
        return [grid]
    first, second = (part.ravel() for part in np.meshgrid(grid, grid))
    if name in ("lshift", "rshift") or (name == "pow" and not dtype.is_float):
        second = np.abs(second) % 8
    if FUNCTIONS[name].result is Result.SECOND:
        return [first > second, first, second]
    return [first, second] if arity == 2 else [first, second, first * second, second - first]


@pytest.mark.long(but=3)
@pytest.mark.full(but=["f32-hip"])
@in_each_language
@pytest.mark.parametrize("dtype", [F32, F64, I64, I32, BOOL], ids=lambda d: d.label)
def test_every_function_gives_what_numpy_gives(language: Language, dtype: DType) -> None:
    names = [name for name in FUNCTIONS if dtype in function_dtypes(name)]
    names = [name for name in names if name not in language.lacks]
    buffers, members, memory, expected = [], [], {}, {}
    for name in names:
        values = arguments(name, dtype)
        (axis,) = axes(values[0].size)
        loads: list[Value] = []
        for position, array in enumerate(values):
            kind = BOOL if FUNCTIONS[name].result is Result.SECOND and position == 0 else dtype
            source = f"{name}_{position}"
            buffers.append(buffer(source, kind, (array.size,)))
            memory[source] = to_device(array, kind)
            loads.append(Load(source, (axis.var,), kind))
        result = BOOL if FUNCTIONS[name].result is Result.BOOL else dtype
        buffers.append(buffer(name, result, (values[0].size,)))
        members.append(
            Pointwise(name, (axis,), Store(name, (axis.var,), Call(name, tuple(loads), result)), ())
        )
        with np.errstate(all="ignore"):
            held = [from_device(memory[f"{name}_{i}"], load.dtype) for i, load in enumerate(loads)]
            expected[name] = FUNCTIONS[name].numpy(*held)
            if name == "truncdiv" and dtype.is_float:  # torch truncates the rounded quotient
                expected[name] = np.trunc((held[0] / held[1]).astype(dtype.numpy))
            if name == "nextafter":  # the neighbour in the kernel's own type
                expected[name] = np.nextafter(*(value.astype(dtype.numpy) for value in held))
    wrong = []
    for size in sorted({evaluate_size(member) for member in members}):
        same = [member for member in members if evaluate_size(member) == size]
        made = language.template(same, buffers)
        found = language.run(made.generate({"threads": 256, "vector": 1}), memory)
        for member in same:
            got, want = found[member.name], np.asarray(expected[member.name])
            if not agrees(got, want, dtype, member.name):
                wrong.append((member.name, got, want))
    assert not wrong


def evaluate_size(member: Pointwise) -> int:
    return int(member.axes[0].size)


def agrees(got: np.ndarray, want: np.ndarray, dtype: DType, name: str) -> bool:
    if not dtype.is_float or want.dtype == bool:
        return bool((got == want.astype(got.dtype)).all())
    if name in ("pow", "floordiv", "truncdiv", "remainder", "fmod"):
        # NumPy and C differ on infinities; torch goes with C.
        usable = np.isfinite(want)
        got, want = got[usable], want[usable]
    with np.errstate(over="ignore"):
        want = want.astype(got.dtype)
    # Near their roots, places of 1 count.
    least = 16 * dtype.eps if name in ("lgamma", "digamma") else 1e-37
    return np.allclose(got, want, rtol=16 * dtype.eps, atol=least, equal_nan=True)


# -- layouts --------------------------------------------------------------------------------------


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], list[tuple[tuple[int, ...], list[bool], DType]]]:
    """A shape, and for each input a permutation of its dimensions in memory, which dimensions
    are broadcast, and a type."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 4, 8, 16]), min_size=1, max_size=4))
    one = st.tuples(
        st.permutations(range(len(shape))).map(tuple),
        st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)),
        st.sampled_from([F32, F16, BF16, F64, I64, BOOL]),
    )
    return shape, draw(st.lists(one, min_size=1, max_size=3))


def strided_buffer(
    name: str, dtype: DType, shape: list[int], order: tuple[int, ...], drop: list[bool]
):
    stride = [0] * len(shape)
    step = 1
    for dimension in reversed(order):
        if not drop[dimension]:
            stride[dimension] = step
            step *= shape[dimension]
    return buffer(name, dtype, shape, stride)


@pytest.mark.full
@in_each_language
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(problem=problems())
def test_any_layout_broadcast_and_type(
    language: Language,
    problem: tuple[list[int], list[tuple[tuple[int, ...], list[bool], DType]]],
) -> None:
    shape, inputs = problem
    assume(language is HIP or prod(shape) <= 512)  # one thread after another takes its time
    walked = axes(*shape)
    value: Value = Const(0.5, F32)
    buffers = []
    for number, (order, drop, dtype) in enumerate(inputs):
        name = f"in{number}"
        buffers.append(strided_buffer(name, dtype, shape, order, drop))
        read: Value = Load(name, at(walked), dtype)
        value = Call("add", (value, read if dtype is F32 else Cast(read, F32)), F32)
    order, _, _ = inputs[0]
    out = strided_buffer("out", BF16, shape, order, [False] * len(shape))
    exact = buffer("exact", F32, shape)
    buffers += [out, exact]
    members = [
        Pointwise("op0", walked, Store("out", at(walked), value), ()),
        Pointwise("op1", walked, Store("exact", at(walked), value), ()),
    ]
    made = language.template(members, buffers)
    rng = np.random.default_rng(1)
    memory = {b.name: random_memory(rng, b, {}) for b in buffers}
    points = Points(walked, memory, made.lowered.buffers, {})
    want = points.value(value)
    serving = [c for c in made.configs() if made.reject(c) is None and c["threads"] == 256]
    for config in (serving[0], serving[-1]):
        found = language.run(made.generate(config), memory)
        assert np.allclose(found["exact"], want.ravel(), rtol=1e-6, atol=1e-6)
        flat = points.flat("out", at(walked), {})
        assert np.allclose(from_device(found["out"], BF16)[flat], want, rtol=2**-7, atol=1e-6)


@in_each_language
def test_symbolic_sizes_serve_every_binding(language: Language) -> None:
    walked = axes(S, 12, 64)
    buffers = [
        buffer("x", F16, (S, 12, 64)),
        buffer("b", F32, (64,)),
        buffer("y", F16, (12, S, 64)),
    ]
    biased = Call(
        "add", (Cast(Load("x", at(walked), F16), F32), Load("b", (walked[2].var,), F32)), F32
    )
    index = (walked[1].var, walked[0].var, walked[2].var)
    made = language.template(
        [Pointwise("op0", walked, Store("y", index, biased), ())], buffers, (SYMBOL,)
    )
    caller = made.generate({"threads": 256, "vector": 4})
    assert [arg.name for arg in caller.kernel.args] == ["in_ptr0", "in_ptr1", "out_ptr0", "s27"]
    for size in (1, 7, 64) if language is HIP else (1, 3):
        bindings = {"s27": size}
        rng = np.random.default_rng(size)
        memory = {b.name: random_memory(rng, b, bindings) for b in buffers}
        want = Points(walked, memory, made.lowered.buffers, bindings).value(biased)
        got = from_device(language.run(caller, memory, bindings)["y"], F16).reshape(12, size, 64)
        assert np.allclose(got.transpose(1, 0, 2), want, rtol=2**-10, atol=2**-12)


@in_each_language
def test_an_empty_tensor_launches_nothing(language: Language) -> None:
    walked = axes(S, 4)
    buffers = [buffer("x", F32, (S, 4)), buffer("y", F32, (S, 4))]
    store = Store("y", at(walked), Load("x", at(walked), F32))
    caller = language.template([Pointwise("op0", walked, store, ())], buffers, (SYMBOL,)).generate(
        {"threads": 256, "vector": 1}
    )
    assert language.run(caller, {"x": np.zeros(0, np.float32)}, {"s27": 0})["y"].size == 0


@in_each_language
def test_indices_from_memory_never_leave_the_table(language: Language) -> None:
    walked = axes(10, 8)
    row, column = at(walked)
    chosen = Indirect(symbol("ind0"), Load("i", (row,), I64), symbol("s27"))
    buffers = [buffer("i", I64, (10,)), buffer("t", F32, (S, 8)), buffer("y", F32, (10, 8))]
    value = Load("t", (symbol("ind0"), column), F32, (chosen,))
    made = language.template(
        [Pointwise("op0", walked, Store("y", (row, column), value), ())], buffers, (SYMBOL,)
    )
    table = np.arange(40, dtype=np.float32)
    indices = np.array([0, 4, -1, -5, 2, 99, -99, 2**40, -(2**40), 3])
    expected = table.reshape(5, 8)[np.clip(np.where(indices < 0, indices + 5, indices), 0, 4)]
    for vector in (1, 4):
        caller = made.generate({"threads": 256, "vector": vector})
        found = language.run(caller, {"i": indices, "t": table}, {"s27": 5})
        assert (found["y"].reshape(10, 8) == expected).all()
    packs = ("load_pack<4>(in_ptr0", "load_pack(in_ptr0,")
    assert any(pack in caller.kernel.source for pack in packs), "whole rows are copied in packs"


@in_each_language
def test_a_masked_read_touches_nothing_outside(language: Language) -> None:
    """A concatenation: each part has its own buffer, one of them empty."""
    walked = axes(12)
    (x,) = at(walked)
    inside = Call("lt", (IndexValue(x, I64), IndexValue(S, I64)), BOOL)
    value = Masked(inside, Load("a", (x,), F32), Load("b", (x - S,), F32))
    buffers = [buffer("a", F32, (S,)), buffer("b", F32, (12 - S,)), buffer("y", F32, (12,))]
    made = language.template(
        [Pointwise("op0", walked, Store("y", (x,), value), ())], buffers, (SYMBOL,)
    )
    caller = made.generate({"threads": 256, "vector": 1})
    for size in (0, 5, 12):
        a, b = np.arange(size, dtype=np.float32), -np.arange(12 - size, dtype=np.float32)
        found = language.run(caller, {"a": a, "b": b}, {"s27": size})
        assert (found["y"] == np.concatenate([a, b])).all()


@in_each_language
def test_a_later_member_takes_what_was_written_from_a_register(language: Language) -> None:
    walked = axes(6, 4)
    buffers = [buffer(name, dtype, (6, 4)) for name, dtype in (("x", F32), ("h", BF16), ("y", F32))]
    first = Call("mul", (Load("x", at(walked), F32), Const(1.1, F32)), F32)
    other = axes(6, 4, prefix="j")  # the same steps under other names
    second = Call("neg", (Cast(Load("h", at(other), BF16), F32),), F32)
    members = [
        Pointwise("op0", walked, Store("h", at(walked), first), ()),
        Pointwise("op1", other, Store("y", at(other), second), ()),
    ]
    made = language.template(members, buffers)
    rng = np.random.default_rng(2)
    memory = {"x": random_memory(rng, buffers[0], {})}
    for config in ({"threads": 256, "vector": 1}, {"threads": 128, "vector": 4}):
        found = language.run(made.generate(config), memory)
        assert (found["y"] == -from_device(found["h"], BF16)).all()


def test_reading_elsewhere_what_the_kernel_writes_is_rejected() -> None:
    walked = axes(6, 4)
    i, j = at(walked)
    buffers = [buffer(name, F32, (6, 4)) for name in ("x", "h")] + [buffer("y", F32, (6, 4))]
    members = [
        Pointwise("op0", walked, Store("h", (i, j), Load("x", (i, j), F32)), ()),
        Pointwise("op1", walked, Store("y", (i, j), Load("h", (5 - i, j), F32)), ()),
    ]
    with pytest.raises(ValueError, match="cannot be one kernel"):
        template(members, buffers)


# -- configurations --------------------------------------------------------------------------------


def test_rules_give_reasons() -> None:
    walked = axes(6, 7)
    buffers = [buffer("x", F32, (6, 7)), buffer("y", F32, (6, 7))]
    made = template(
        [Pointwise("op0", walked, Store("y", at(walked), Load("x", at(walked), F32)), ())], buffers
    )
    rejected = {c["vector"]: made.reject(c) for c in made.configs() if c["threads"] == 256}
    assert not any(rejected[vector] for vector in (1, 2, 4)), "the last pack may be a part"
    assert rejected[8] is not None
    assert "16 bytes per lane" in rejected[8].reason
    apart = [buffer(name, F32, (6, 7), (9, 1)) for name in "xy"]
    made = template(
        [Pointwise("op0", walked, Store("y", at(walked), Load("x", at(walked), F32)), ())], apart
    )
    rejected = {c["vector"]: made.reject(c) for c in made.configs() if c["threads"] == 256}
    assert rejected[4] is not None
    assert "4 aligned, consecutive elements" in rejected[4].reason
    assert made.reject(made.default_config()) is None


@pytest.mark.parametrize("target", [t.name for t in GPU])
def test_one_text_builds_for_every_target(target: str) -> None:
    walked = axes(S, 64)
    buffers = [buffer("x", BF16, (S, 64)), buffer("y", F16, (S, 64))]
    value = Call("tanh", (Cast(Load("x", at(walked), BF16), F32),), F32)
    made = template(
        [Pointwise("op0", walked, Store("y", at(walked), value), ())], buffers, (SYMBOL,)
    )
    caller = made.generate({"threads": 256, "vector": 8})
    build = compiled(caller, target)
    (resources,) = build.resources.values()
    assert resources["scratch_bytes"] == 0
    listing = (build.directory / "kernel.s").read_text()
    assert "_load_dwordx4" in listing or "_load_b128" in listing, "one load for a whole pack"


def test_what_is_beyond_32_bits_is_counted_in_64() -> None:
    walked = axes(2**16, 2**16)
    buffers = [buffer("x", DType.U8, (2**16, 2**16)), buffer("y", DType.U8, (2**16, 2**16))]
    made = template(
        [Pointwise("op0", walked, Store("y", at(walked), Load("x", at(walked), DType.U8)), ())],
        buffers,
    )
    assert "using index_t = int64_t;" in made.generate(made.default_config()).kernel.source
    unbounded = SymbolInfo("s27", 6, 1, None)
    narrow = axes(S)
    members = [Pointwise("op0", narrow, Store("b", at(narrow), Load("a", at(narrow), F32)), ())]
    made = template(members, [buffer("a", F32, (S,)), buffer("b", F32, (S,))], (unbounded,))
    caller = made.generate(made.default_config())
    assert [arg.type for arg in caller.kernel.args] == ["ptr", "ptr", "i64"]


def test_extent_of_a_strided_buffer() -> None:
    assert extent(buffer("x", F32, (3, 4), (1, 3)), {}) == 12


def copied(size: object, first: int = 0) -> PointwiseTemplate:
    """One buffer into another, from an element on."""
    walked = axes(size)
    (axis,) = walked
    read = Load("x", (axis.var + first,), F32)
    members = [Pointwise("op0", walked, Store("y", at(walked), read), ())]
    return template(members, [buffer("x", F32, (size + first,)), buffer("y", F32, (size,))])


@pytest.mark.parametrize(("steps", "width"), [(2**31 - 2**16 - 1, 32), (2**31 - 2**16, 64)])
def test_the_last_blocks_steps_beyond_the_end_fit_into_an_index(steps: int, width: int) -> None:
    """A block of 65,536 steps may begin at the last element: 32 bits must hold where it stops."""
    made = copied(steps)
    source = made.generate(made.default_config()).kernel.source
    assert f"using index_t = int{width}_t;" in source


@pytest.mark.parametrize(
    ("first", "widest"), [(0, 8), (1, 1), (2, 2), (3, 1), (4, 4), (6, 2), (8, 8), (12, 4)]
)
def test_packs_are_read_where_memory_is_aligned(first: int, widest: int) -> None:
    """Buffers begin at multiples of a pack: what begins within one does not."""
    nest = copied(64, first).nest
    (axis,) = nest.outer
    (read,) = (access for access in nest.accesses if access.buffer == "x")
    assert [n for n in (1, 2, 4, 8) if nest.is_vectorizable(read, axis, n)][-1] == widest
