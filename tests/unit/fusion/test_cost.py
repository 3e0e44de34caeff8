"""What may be computed again where it is read, and what not: every rule, on both sides of where it
turns."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import sympy

from scheduler.fusion.cost import (
    arithmetic_cost,
    inline_rejection,
    is_view_like,
    rows_rejection,
    transpose_rejection,
    tree_extent,
)
from scheduler.fusion.group import Group, new_group
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, as_expr, symbol, variable
from scheduler.ir.index.ranges import ANY_SIZES
from scheduler.ir.operations import (
    Attention,
    Axes,
    Axis,
    Buffer,
    BufferKind,
    Contraction,
    Extern,
    Pointwise,
    Reduction,
    ReductionKind,
    Scatter,
    Store,
)
from scheduler.ir.values import Accumulator, Call, Cast, Const, IndexValue, Indirect, Load, Value

F16, F32, F64, I64 = DType.F16, DType.F32, DType.F64, DType.I64
P, Q, R = (variable("v", number) for number in range(3))
ACC = Accumulator(F32)
TRUE = Const(True, DType.BOOL)


def axes(*sizes: int | Expr, at: Sequence[sympy.Symbol] = (P, Q, R)) -> Axes:
    return tuple(Axis(var, as_expr(size)) for var, size in zip(at, sizes, strict=False))


def load(buffer: str, *index: Expr | int, dtype: DType = F32) -> Load:
    return Load(buffer, tuple(map(as_expr, index)), dtype)


def adds(value: Value, times: int) -> Value:
    """A value after so many additions."""
    for _ in range(times):
        value = Call("add", (value, Const(1.0, F32)), F32)
    return value


def pointwise(
    value: Value, loops: Axes, buffer: str = "made", index: Sequence[Expr] | None = None
) -> Pointwise:
    place = tuple(axis.var for axis in loops) if index is None else tuple(index)
    return Pointwise(f"op_{buffer}", loops, Store(buffer, place, value), ())


def row_sums(value: Value, rows: int | Expr, steps: int | Expr) -> Reduction:
    outer, inner = axes(rows), axes(steps, at=(Q,))
    store = Store("sums", (P,), ACC)
    return Reduction("op_sums", outer, inner, ReductionKind.SUM, value, F32, store, ())


def product(
    a: Value, template: str = "gemm", stored: Value = ACC, index: Sequence[Expr] = (P, Q)
) -> Contraction:
    """Five rows by six columns, over four steps."""
    store = Store("out", tuple(map(as_expr, index)), stored)
    b = load("weights", R, Q)
    m, n, k = axes(5), axes(6, at=(Q,)), axes(4, at=(R,))
    return Contraction("op_out", template, "mm", (), m, n, k, a, b, (store,), ())


def buffers(*made: Buffer, **dtypes: DType) -> dict[str, Buffer]:
    """Buffers by name: of one dimension where nothing but a type is said."""
    plain = [shaped(name, 64, dtype=dtype) for name, dtype in dtypes.items()]
    return {one.name: one for one in (*plain, *made)}


def shaped(
    name: str, *size: int, stride: Sequence[int] | None = None, dtype: DType = F32
) -> Buffer:
    steps = [int(sympy.prod(size[d + 1 :])) for d in range(len(size))]
    strides = tuple(map(as_expr, steps if stride is None else stride))
    return Buffer(name, dtype, tuple(map(as_expr, size)), strides, BufferKind.INTERMEDIATE)


def alone(op: Pointwise | Contraction | Reduction | Scatter | Attention | Extern) -> Group:
    return new_group(0, op, 0, ANY_SIZES)


def together(*ops: Pointwise) -> Group:
    group = alone(ops[0])
    group.members.extend(ops[1:])
    return group


# the size of trees


def test_a_tree_counts_shared_parts_each_time_and_its_levels() -> None:
    leaf = load("x", P)
    assert tree_extent(leaf) == (1, 1)
    twice = Call("add", (leaf, leaf), F32)
    assert tree_extent(twice) == (3, 2)
    assert tree_extent(Call("mul", (twice, twice), F32)) == (7, 3)
    assert tree_extent(Call("mul", (twice, leaf), F32)) == (5, 3)
    assert tree_extent(Cast(twice, F16)) == (4, 3)


def test_arithmetic_is_in_additions() -> None:
    x = load("x", P)
    assert arithmetic_cost(Cast(x, F16)) == 0
    assert arithmetic_cost(Call("add", (x, x), F32)) == 1
    assert arithmetic_cost(Call("truediv", (x, x), F32)) == 8
    assert arithmetic_cost(Call("add", (Call("exp", (x,), F32), x), F32)) == 17


# pointwise work in the rows of a reduction


@pytest.mark.parametrize(
    ("rows", "steps", "pays"),
    [
        (15, 8192, False),
        (16, 8192, True),  # enough rows, whatever they do
        (1, 65_536, True),
        (1, 65_537, False),
        (8, 8192, True),  # few rows, and just as much work as they may have
        (8, 8193, False),
        (15, 4369, True),
        (15, 4370, False),
    ],
)
def test_fewer_than_sixteen_rows_do_not_take_much_work_from_the_device(
    rows: int, steps: int, pays: bool
) -> None:
    reason = rows_rejection(row_sums(load("x", P, Q), rows, steps), {})
    expected = f"computing it in {rows} rows would leave most of the device idle"
    assert reason == ("" if pays else expected)


@pytest.mark.parametrize(("size", "pays"), [(15, False), (16, True)])
def test_how_many_rows_there_are_is_asked_at_the_examples_sizes(size: int, pays: bool) -> None:
    op = row_sums(load("x", P, Q), symbol("s0"), 8192)
    assert (rows_rejection(op, {"s0": size}) == "") is pays


# what every reader may compute itself

EXTERN = Extern("op_out", "mylib.f", "unknown op", "n0", {}, ("out",), ("n0",))
READER = pointwise(adds(load("made", P), 1), axes(8), "read")


@pytest.mark.parametrize(
    ("value", "is_free"),
    [
        (load("x", P), True),
        (load("x", 7 - P), True),
        (Cast(load("x", P, dtype=F16), F32), True),
        (Cast(Cast(load("x", P, dtype=F16), F32), F64), True),
        (Call("neg", (load("x", P),), F32), False),  # one operation, and each reader would do it
        (Cast(Call("neg", (load("x", P),), F32), F16), False),
        (IndexValue(P, I64), True),
        (adds(Cast(IndexValue(P, I64), F32), 8), True),
        (adds(Cast(IndexValue(P, I64), F32), 9), False),
        (Load("x", (R,), F32, (Indirect(R, load("at", P, dtype=I64), as_expr(8)),)), False),
    ],
)
def test_a_conversion_or_index_arithmetic_is_as_cheap_as_a_view(
    value: Value, is_free: bool
) -> None:
    assert is_view_like(pointwise(value, axes(8)), [READER]) is is_free


def test_a_view_is_one_for_all_readers_or_none() -> None:
    view = pointwise(load("x", 7 - P), axes(8))
    as_operand = product(load("made", P, R))
    behind_it = product(load("x", P, R), stored=Call("add", (ACC, load("made", P)), F32))
    assert is_view_like(view, [READER, behind_it])
    assert not is_view_like(view, [])
    assert not is_view_like(view, [READER, as_operand])
    assert not is_view_like(view, [EXTERN])


# what one reader may compute where it reads it


def reading(times: int, count: int = 1) -> Group:
    """A kernel that reads what was made at so many points, ``count`` times at each."""
    value: Value = load("made", P)
    for _ in range(count - 1):
        value = Call("mul", (value, load("made", P)), F32)
    return alone(pointwise(value, axes(times), "read"))


KNOWN = buffers(x=F32, y=F32, half=F16, made=F32, read=F32)
DEAR = alone(pointwise(Call("exp", (load("x", P),), F32), axes(6)))
SIX = "each of its elements would be computed 2 times"


@pytest.mark.parametrize(
    ("times", "reason"), [(6, ""), (11, ""), (12, ""), (13, SIX), (15, SIX), (16, "3 times")]
)
def test_a_dear_value_is_computed_at_no_more_than_twice_its_points(times: int, reason: str) -> None:
    got = inline_rejection(DEAR, "made", reading(times), KNOWN, {})
    assert reason in got
    assert bool(got) is bool(reason)


def test_each_read_of_a_point_counts() -> None:
    assert inline_rejection(DEAR, "made", reading(6, count=2), KNOWN, {}) == ""
    assert inline_rejection(DEAR, "made", reading(6, count=3), KNOWN, {}).endswith(
        "would be computed 3 times"
    )


def test_reads_of_all_members_and_all_steps_of_a_reader_count() -> None:
    two = together(
        pointwise(load("made", P), axes(6), "read"), pointwise(load("made", P), axes(6), "again")
    )
    assert inline_rejection(DEAR, "made", two, KNOWN, {}) == ""
    two.members.append(pointwise(load("made", P), axes(6), "third"))
    assert inline_rejection(DEAR, "made", two, KNOWN, {}) != ""
    for steps, pays in ((4, True), (5, False)):
        rows = alone(row_sums(load("made", P), 3, steps))
        assert (inline_rejection(DEAR, "made", rows, KNOWN, {}) == "") is pays


def test_how_often_is_asked_at_the_examples_sizes() -> None:
    reader = alone(pointwise(load("made", P), axes(symbol("s0")), "read"))
    assert inline_rejection(DEAR, "made", reader, KNOWN, {"s0": 12}) == ""
    assert inline_rejection(DEAR, "made", reader, KNOWN, {"s0": 13}) == SIX


@pytest.mark.parametrize(
    ("value", "pays"),
    [
        (adds(load("x", P), 8), True),
        (adds(load("x", P), 9), False),
        (Call("truediv", (load("x", P), Const(3.0, F32)), F32), True),
        (Call("add", (load("x", P), load("y", P)), F32), False),  # 8 bytes read for 4
        (Call("add", (load("x", P), load("x", P)), F32), True),  # the same element
        (Call("add", (load("half", P, dtype=F16), load("x", 0)), F32), True),
        (Cast(load("half", P, dtype=F16), F32), True),
    ],
)
def test_a_cheap_value_that_reads_no_more_bytes_is_computed_however_often(
    value: Value, pays: bool
) -> None:
    group = alone(pointwise(value, axes(6)))
    got = inline_rejection(group, "made", reading(60), KNOWN, {})
    assert got == ("" if pays else "each of its elements would be computed 10 times")


def test_the_work_of_all_members_counts_and_what_they_hand_on_is_no_read() -> None:
    first = pointwise(adds(load("x", P), 4), axes(6), "between")
    known = {**KNOWN, "between": KNOWN["x"]}
    for more, pays in ((4, True), (5, False)):
        group = together(first, pointwise(adds(load("between", P), more), axes(6)))
        got = inline_rejection(group, "made", reading(60), known, {})
        assert (got == "") is pays


def test_what_is_wider_than_the_value_is_not_read_again_each_time() -> None:
    narrowing = alone(pointwise(Cast(load("x", P), F16), axes(6)))
    made_half = {**KNOWN, "made": KNOWN["half"]}
    assert inline_rejection(narrowing, "made", reading(12), made_half, {}) == ""
    assert inline_rejection(narrowing, "made", reading(13), made_half, {}) == SIX


def scattered(starts: int, sources: int, *, begins_with_it: bool) -> Group:
    """A sum into ``starts`` elements of values at ``sources`` places."""
    value = Const(1.0, F32) if begins_with_it else load("made", Q)
    store = Store("out", (P,), load("made", P) if begins_with_it else Const(0.0, F32))
    return alone(
        Scatter(
            name="op_out",
            axes=axes(starts),
            sources=axes(sources, at=(Q,)),
            kind=ReductionKind.SUM,
            value=value,
            condition=TRUE,
            indirect=(),
            index=(as_expr(0),),
            store=store,
            nodes=(),
        )
    )


def test_a_scatter_reads_at_its_sources_or_where_it_begins() -> None:
    for other in (1, 1000):
        starts, sources = (
            scattered(12, other, begins_with_it=True),
            scattered(other, 12, begins_with_it=False),
        )
        assert inline_rejection(DEAR, "made", starts, KNOWN, {}) == ""
        assert inline_rejection(DEAR, "made", sources, KNOWN, {}) == ""
    assert inline_rejection(DEAR, "made", scattered(13, 1, begins_with_it=True), KNOWN, {}) == SIX
    assert inline_rejection(DEAR, "made", scattered(1, 13, begins_with_it=False), KNOWN, {}) == SIX


def test_an_extern_reads_from_memory() -> None:
    got = inline_rejection(DEAR, "made", alone(EXTERN), KNOWN, {})
    assert got == "its reader is computed by the reference, which reads it from memory"


# operands of templates

MANY = "every block of the template would recompute it"
BYTES = "every block of the template would read more bytes"


def prologue(value: Value) -> str:
    """Why a multiplication should not compute that as its left operand, of five rows by four."""
    known = buffers(
        *(shaped(name, 5, 64) for name in ("x", "y")), shaped("half", 5, 64, dtype=F16),
        shaped("wide", 5, 64, dtype=F64), shaped("bytes", 5, 64, dtype=DType.I8),
        shaped("made", 5, 4), weights=F32, row=F32, column=F32,
    )  # fmt: skip
    group = alone(pointwise(value, axes(5, 4)))
    return inline_rejection(group, "made", alone(product(load("made", P, R))), known, {})


X = load("x", P, Q)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (X, ""),
        (adds(X, 8), ""),
        (adds(X, 9), MANY),
        (Call("exp", (X,), F32), MANY),
        (Call("truediv", (X, load("row", Q)), F32), ""),  # a row's and a column's are in a cache
        (Call("truediv", (X, load("column", P)), F32), ""),
        (Call("add", (X, load("y", P, Q)), F32), BYTES),
        (Call("add", (X, X), F32), ""),
        (Call("add", (X, load("x", P, Q + 1)), F32), BYTES),  # another element
        (Cast(load("half", P, Q, dtype=F16), F32), ""),
        (Cast(load("wide", P, Q, dtype=F64), F32), BYTES),
        (Call("add", (load("half", P, Q, dtype=F16), load("half", Q, P, dtype=F16)), F32), ""),
    ],
)
def test_a_template_computes_an_operand_that_is_cheap_and_of_no_more_bytes(
    value: Value, reason: str
) -> None:
    assert prologue(value) == reason


@pytest.mark.parametrize(("block", "reason"), [(15, BYTES), (16, ""), (32, ""), (2, BYTES)])
def test_a_scale_of_sixteen_neighbours_is_in_a_cache(block: int, reason: str) -> None:
    """As a quantized weight's is: four bytes of it beside one of each element."""
    scale = load("x", P, FloorDiv(Q, as_expr(block)))
    value = Call("mul", (Cast(load("bytes", P, Q, dtype=DType.I8), F32), scale), F32)
    assert prologue(value) == reason


def test_what_data_say_where_to_read_is_read_each_time() -> None:
    gathered = Load("x", (R, Q), F32, (Indirect(R, load("row", P, dtype=I64), as_expr(5)),))
    assert prologue(gathered) == ""
    assert prologue(Call("add", (gathered, X), F32)) == BYTES
    row = Load("x", (R, as_expr(0)), F32, gathered.indirect)
    assert prologue(Call("add", (row, X), F32)) == BYTES


def test_what_is_beside_the_operands_of_a_template_is_counted_by_its_points() -> None:
    """Five rows by six columns: thirty reads."""
    behind = product(load("x", P, R), stored=Call("add", (ACC, load("made", P)), F32))
    for points, pays in ((15, True), (14, False)):
        group = alone(pointwise(Call("exp", (load("x", P),), F32), axes(points)))
        assert (inline_rejection(group, "made", alone(behind), KNOWN, {}) == "") is pays


def attention(**made: Value) -> Group:
    """Six rows and six columns, of depth six."""
    trees = {name: load(name, P, Q) for name in ("q", "k", "v", "mask")} | made
    row, column, depth, value_depth = axes(6, 6, 6, 6, at=[variable("a", k) for k in range(4)])
    store = Store("out", (row.var, value_depth.var), ACC)
    return alone(
        Attention(
            name="op_out",
            batch=(),
            row=row,
            column=column,
            depth=depth,
            value_depth=value_depth,
            **trees,
            causal=False,
            scale=1.0,
            stores=(store,),
            nodes=(),
        )
    )


@pytest.mark.parametrize("name", ["k", "v", "mask"])
def test_attention_reads_its_keys_values_and_mask_from_memory(name: str) -> None:
    cheap = alone(pointwise(load("x", P), axes(36)))
    got = inline_rejection(cheap, "made", attention(**{name: load("made", P)}), KNOWN, {})
    assert got == "every block of rows would recompute it"


def test_attention_computes_its_queries() -> None:
    dear = alone(pointwise(Call("exp", (load("x", P),), F32), axes(36)))
    assert inline_rejection(dear, "made", attention(q=load("made", P)), KNOWN, {}) == ""


# windows of convolutions

SIZE = (2, 3, 4, 5)
FIRST = (60, 20, 5, 1)  # channels apart, rows and columns innermost
LAST = (60, 1, 15, 3)  # channels side by side
N, C, H, W = (variable("w", number) for number in range(4))
AS_IT_LIES = "its reader loads windows in vectors, once per tap, so it must be in memory"


def window(
    template: str, value: Value, *, read: Sequence[int] = LAST, made: Sequence[int] = LAST,
    dtype: DType = F32, index: Sequence[Expr] = (N, C, H, W),
) -> str:  # fmt: skip
    """Why a convolution should not compute its image as this value of another."""
    known = buffers(
        shaped("image", *SIZE, stride=read, dtype=dtype),
        shaped("made", *SIZE, stride=made),
        weights=F32,
        out=F32,
    )
    loops = axes(*SIZE, at=(N, C, H, W))
    group = alone(pointwise(value, loops, index=index))
    reader = alone(product(load("made", 0, R, P, Q), template))
    return inline_rejection(group, "made", reader, known, {})


def image(dtype: DType = F32) -> Load:
    return load("image", N, C, H, W, dtype=dtype)


@pytest.mark.parametrize("read", [FIRST, LAST])
@pytest.mark.parametrize("made", [FIRST, LAST])
def test_a_convolution_reads_a_moved_image_unless_its_channels_lay_apart(
    read: Sequence[int], made: Sequence[int]
) -> None:
    gathers = read is FIRST and made is LAST
    assert window("convolution", image(), read=read, made=made) == (AS_IT_LIES if gathers else "")


def test_a_convolution_computes_nothing_in_its_window() -> None:
    assert window("convolution", Call("neg", (image(),), F32)) == AS_IT_LIES
    assert window("convolution", Cast(image(F16), F32), dtype=F16) == AS_IT_LIES
    assert window("convolution", image(F16), dtype=F16) == AS_IT_LIES  # read as another type
    at = (Indirect(R, load("out", H, dtype=I64), as_expr(4)),)
    assert window("convolution", Load("image", (N, C, R, W), F32, at)) == AS_IT_LIES


def test_a_depthwise_convolution_reads_its_image_as_it_lies() -> None:
    assert window("depthwise", image()) == AS_IT_LIES


def test_a_multiplication_reads_a_moved_image() -> None:
    assert window("gemm", image(), read=FIRST) == ""


def test_an_image_of_one_dimension_less_has_no_channels_to_gather() -> None:
    known = buffers(shaped("x", 5, 4, stride=(1, 5)), shaped("made", 5, 4), weights=F32)
    group = alone(pointwise(load("x", P, Q), axes(5, 4)))
    reader = alone(product(load("made", P, R), "convolution"))
    assert inline_rejection(group, "made", reader, known, {}) == ""


def turned(template: str, made: Sequence[int], moved: Sequence[int], size: Sequence[int]) -> str:
    """Why that template should not store its results in another order."""
    known = buffers(
        shaped("out", *size, stride=made), shaped("moved", *size, stride=moved), weights=F32
    )
    main = product(load("x", P, R), template, index=(N, C, H, W)[: len(size)])
    return transpose_rejection(pointwise(image(), axes(*SIZE), "moved"), alone(main), known)


APART = "its channels are not adjacent in memory, but those of the tiles are"


@pytest.mark.parametrize(
    ("template", "made", "moved", "reason"),
    [
        ("convolution", LAST, FIRST, APART),
        ("convolution", LAST, LAST, ""),
        ("convolution", FIRST, FIRST, ""),  # apart as it is
        ("convolution", FIRST, LAST, ""),
        ("gemm", LAST, FIRST, ""),
        ("depthwise", LAST, FIRST, ""),
    ],
)
def test_a_convolution_stores_no_channels_that_lie_apart(
    template: str, made: Sequence[int], moved: Sequence[int], reason: str
) -> None:
    assert turned(template, made, moved, SIZE) == reason


def test_one_channel_lies_beside_itself() -> None:
    size, first, last = (2, 1, 4, 5), (20, 20, 5, 1), (20, 1, 5, 1)
    assert turned("convolution", last, first, size) == ""
    assert turned("convolution", (40, 1, 10, 2), (40, 20, 5, 1), (2, 2, 4, 5)) == APART


def test_what_has_two_dimensions_has_no_channels() -> None:
    """Then no tile of it has them side by side."""
    assert turned("convolution", (1, 2), (3, 1), (2, 3)) == ""
