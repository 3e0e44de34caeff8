"""Pointwise kernels that turn squares in registers, against NumPy on CPU emulation."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.codegen.rocm.pointwise.template import PointwiseTemplate
from scheduler.codegen.template import Config
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import GroupKind, Pointwise, Store
from scheduler.ir.values import Call, Cast, Load, Value
from scheduler.targets import find, names
from tests.support.memory import from_device
from tests.unit.codegen.loopnest import (
    Points,
    axes,
    buffer,
    compiled,
    group,
    random_memory,
    run,
)

ALL = tuple(find(name) for name in names())
F32 = DType.F32


def turning(
    dtype: DType, images: int, rows: int, columns: int, *, more: bool = False
) -> PointwiseTemplate:
    """y[n, c, r] = 2 * x[n, r, c] (+ b[n, c, r] + z[n, r, c] + w[c])."""
    loops = axes(images, columns, rows)
    n, c, r = (axis.var for axis in loops)
    made, given = (images, columns, rows), (images, rows, columns)
    read: Value = Cast(Load("x", (n, r, c), dtype), F32)
    value: Value = Call("add", (read, read), F32)
    buffers = [buffer("x", dtype, given), buffer("y", dtype, made)]
    others = (("b", (n, c, r), made), ("z", (n, r, c), given), ("w", (c,), (columns,)))
    for name, index, size in others if more else ():
        value = Call("add", (value, Cast(Load(name, index, dtype), F32)), F32)
        buffers.append(buffer(name, dtype, size))
    store = Store("y", (n, c, r), value)
    node, lowered = group(GroupKind.POINTWISE, [Pointwise("op0", loops, store, ())], buffers)
    return PointwiseTemplate(node, lowered, ALL)


def squares(template: PointwiseTemplate) -> list[Config]:
    return [c for c in template.configs() if "turned" in c and template.reject(c) is None]


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("more", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32], ids=lambda dtype: dtype.label)
def test_every_square_is_right_where_blocks_are_not_full(dtype: DType, more: bool) -> None:
    template = turning(dtype, 3, 72, 136, more=more)
    widths = {config["vector"]: config for config in squares(template)}
    assert {*widths} >= {2, 4}
    rng = np.random.default_rng(0)
    buffers = template.lowered.buffers
    memory = {b.name: random_memory(rng, b, {}) for b in buffers.values()}
    (member,) = template.node.members
    assert isinstance(member, Pointwise)
    expected = Points(member.axes, memory, buffers, {}).value(member.store.value)
    for config in widths.values():
        found = run(template.generate(config), memory)
        got = from_device(found["y"], dtype).reshape(expected.shape)
        assert np.allclose(got, expected, rtol=2**-7, atol=2**-9), config


def test_a_transposition_is_turned_by_default_in_packs_of_sixteen_bytes() -> None:
    template = turning(DType.F16, 4, 1024, 2048)
    config = template.default_config()
    assert config == {"threads": 256, "vector": 8, "turned": 8}
    source = template.generate(config).kernel.source
    assert "kiln::load_pack<8>(in_ptr0" in source
    assert "kiln::store_pack(out_ptr0" in source
    assert template.generate(config).kernel.launches[0].grid[0] == 4 * 4 * 32


def test_what_is_read_as_it_is_written_or_does_not_fill_packs_is_not_turned() -> None:
    assert not squares(turning(DType.F16, 1, 71, 137))
    loops = axes(64, 64)
    index = tuple(axis.var for axis in loops)
    store = Store("y", index, Cast(Load("x", index, DType.F16), F32))
    buffers = [buffer("x", DType.F16, (64, 64)), buffer("y", DType.F16, (64, 64))]
    node, lowered = group(GroupKind.POINTWISE, [Pointwise("op0", loops, store, ())], buffers)
    assert not squares(PointwiseTemplate(node, lowered, ALL))


@pytest.mark.full(but=["gfx90a"])
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_the_default_compiles_without_spills(target: str) -> None:
    template = turning(DType.BF16, 4, 1024, 2048, more=True)
    build = compiled(template.generate(template.default_config()), target)
    assert {each["scratch_bytes"] for each in build.resources.values()} == {0}
