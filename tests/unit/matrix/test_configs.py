"""Which configurations serve which problem: counts are pinned, reasons are given."""

from __future__ import annotations

import math
import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.contraction.indices import IndexGroup
from scheduler.codegen.contraction.operand import Operand, analyse_operand
from scheduler.codegen.rocm.gemm.config import waves_along_m
from scheduler.codegen.rocm.gemm.problem import step_k
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.errors import Stage, UserError
from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref
from scheduler.ir.operations import GroupKind
from scheduler.ir.values import Call, Const, IndexValue, Load, Masked
from scheduler.lowering import lower
from scheduler.targets import find, names
from scheduler.targets.model import hip_hardware
from tests.support.strata import MATRICES
from tests.unit.lowering.graphs import graph, meta, node
from tests.unit.matrix.contractions import axis, buffer, matmul

# Configurations that serve a problem on one target (matrix products in any layout, a convolution
# of NCHW, one with channels last): a change of the rules or of the table shows here.
CDNA = {
    "f16": (160, 112, 160),
    "bf16": (160, 112, 160),
    "f32": (146, 122, 146),
    "f64": (78, 74, 76),
}
GFX950 = {  # more LDS
    "f16": (160, 112, 160),
    "bf16": (160, 112, 160),
    "f32": (180, 136, 180),
    "f64": (136, 112, 120),
}
RDNA = {
    "f16": (156, 92, 140),
    "bf16": (156, 92, 140),
    "f32": (118, 64, 114),
    "f64": (32, 16, 16),
}
CUDA = {
    "f16": (124, 60, 108),
    "bf16": (124, 60, 108),
    "f32": (128, 64, 120),
    "f64": (48, 16, 16),
}
SMALL_CUDA = {**CUDA, "f64": (44, 16, 16)}  # less shared memory
COUNTS = {"cdna": CDNA, "rdna": RDNA, "cuda": CUDA}
UNLIKE_OTHERS = {"gfx950": GFX950, "sm_86": SMALL_CUDA, "sm_89": SMALL_CUDA, "sm_120": SMALL_CUDA}
# As many again with the instructions whose result is 32x32.
CDNA_LARGE = {"f16": (84, 66, 82), "bf16": (84, 66, 82), "f32": (67, 57, 64)}
LARGE_COUNTS = {
    "gfx90a": CDNA_LARGE,
    "gfx942": CDNA_LARGE,
    "gfx950": {"f16": (86, 66, 82), "bf16": (86, 66, 82), "f32": (82, 62, 76)},
}

_APART = {"ASYNC_COPIES", "STREAM_K", "DIRECT_TO_LDS"}


def serving(problem: Schedule, *targets: str) -> tuple[int, int]:
    """How many configurations serve, with the ordinary and with the larger instructions; those
    that are ``_APART`` have tests of their own (``test_async_copies.py`` counts them,
    ``test_stream_k.py``, ``test_direct_loads.py``)."""
    backend = ROCmCPPScheduling(problem, tuple(find(name) for name in targets))
    template = backend.template(problem.nodes[0])
    plain = (one for one in template.configs() if not _APART & one.keys())
    found = [config for config in plain if template.reject(config) is None]
    large = sum("MATRIX_INSTR_NONKDIM" in config for config in found)
    return len(found) - large, large


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("target", names())
@pytest.mark.parametrize(
    "dtype", [DType.F16, DType.BF16, DType.F32, DType.F64], ids=lambda d: d.label
)
def test_no_stratum_is_empty(dtype: DType, target: str) -> None:
    """A filter that drops every candidate of a type, layout or target must not be silent."""
    processor = find(target).emulates or target
    usual = COUNTS[hip_hardware(find(target)).architecture]
    ordinary = UNLIKE_OTHERS.get(processor, usual)[dtype.label]
    large = LARGE_COUNTS.get(processor, {}).get(dtype.label, (0, 0, 0))
    plain, nchw, channels_last = zip(ordinary, large, strict=True)
    counts = {name: serving(make(dtype), target) for name, make in MATRICES.items()}
    special = {"conv2d": nchw, "conv2d_channels_last": channels_last}
    assert counts == {**dict.fromkeys(MATRICES, plain), **special}


def test_every_configuration_is_a_candidate_or_has_a_reason() -> None:
    problem = matmul(2240, 2048, 255, DType.F16)
    backend = ROCmCPPScheduling(problem, tuple(find(name) for name in names()))
    found = backend.candidates(problem.nodes[0])
    total = len(backend.template(problem.nodes[0]).configs())
    assert len(found.callers) + len(found.rejected) == total
    assert all(item.rejected.stage is Stage.RULE for item in found.rejected)
    reasons = {item.rejected.reason for item in found.rejected}
    wide = "the contiguous axis of A has 255 elements, which is not a multiple of 8"
    assert f"loads of 16 bytes of A: {wide}" in reasons
    assert any("bytes of LDS exceed the limit of 65536 on gfx90a" in reason for reason in reasons)
    assert any(reason.startswith("split-K 8 leaves fewer than two steps") for reason in reasons)
    assert any("registers per lane" in reason and "gfx1030" in reason for reason in reasons)
    assert any("BLOCK_K 16 is not a multiple of 32 on gfx90a" in reason for reason in reasons)


@pytest.mark.parametrize("name", ["sm_89", "sm_90"])
def test_rejections_for_nvidia_are_in_its_own_words(name: str) -> None:
    problem = matmul(2240, 2048, 256, DType.F32)
    made = ROCmCPPScheduling(problem, (find(name),)).template(problem.nodes[0])
    rejected = filter(None, (made.reject(config) for config in made.configs()))
    reasons = " | ".join({one.reason for one in rejected})
    assert "registers per thread" in reasons
    assert not re.search(r"LDS|\bwaves?\b|\blane\b|VGPR|gfx", reasons)


def test_integers_have_no_candidate_and_say_so() -> None:
    problem = matmul(64, 64, 64, DType.I32)
    backend = ROCmCPPScheduling(problem, (find("gfx942"),))
    found = backend.candidates(problem.nodes[0])
    assert not found.callers
    assert {item.rejected.reason for item in found.rejected} == {
        "matrix kernels with elements of type i32 are not supported"
    }
    with pytest.raises(UserError, match="no configuration of gemm is valid for"):
        backend.default(problem.nodes[0])


@pytest.mark.parametrize(
    ("m", "n", "k", "batch"),
    [(2240, 2048, 256, None), (4096, 50257, 768, None), (1, 4096, 4096, None), (16, 16, 64, 96)],
)
def test_the_default_serves_and_does_not_waste_the_device(
    m: int, n: int, k: int, batch: int | None
) -> None:
    problem = matmul(m, n, k, DType.F16, batch=batch, b_transposed=True)
    backend = ROCmCPPScheduling(problem, tuple(find(name) for name in names()))
    template = backend.template(problem.nodes[0])
    config = template.default_config()
    assert template.reject(config) is None
    computed = math.prod(
        -(-extent // int(config[name])) * int(config[name])
        for extent, name in ((m, "BLOCK_M"), (n, "BLOCK_N"))
    )
    # The least that 16x16 instructions compute, and at most as much again for the edges.
    least = math.prod(-(-extent // 16) * 16 for extent in (m, n))
    assert computed <= 2 * least


@pytest.mark.parametrize("target", names())
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32], ids=lambda d: d.label)
def test_a_product_of_two_computed_operands_has_a_kernel(dtype: DType, target: str) -> None:
    """Each element of both has indices of its own, read from memory: no tile holds as few as is
    good where instructions take 32 elements along k, and the smallest serve."""
    tensors = {"x": meta(dtype, 6, 1), "i": meta(DType.I64, 8), "read": meta(dtype, 8, 1)}
    tensors |= {"turned": meta(dtype, 1, 8), "y": meta(dtype, 8, 8)}
    nodes = [
        node("read", "aten.index.Tensor", Ref("x"), (Ref("i"),)),
        node("turned", "aten.transpose.int", Ref("read"), -2, -1),
        node("y", "aten.matmul.default", Ref("read"), Ref("turned")),
    ]
    inputs = [GraphInput(name, InputKind.USER) for name in ("x", "i")]
    plan = schedule(lower(graph(inputs, nodes, tensors, ("y",))))
    assert [one.kind for one in plan.nodes] == [GroupKind.GEMM]
    backend = ROCmCPPScheduling(plan, (find(target),))
    assert backend.default(plan.nodes[0]).kernel.launches


@given(
    block_m=st.sampled_from([16, 32, 64, 128, 256]),
    block_n=st.sampled_from([16, 32, 64, 128, 256]),
    waves=st.sampled_from([1, 2, 4, 8]),
)
def test_waves_share_the_block_out_whole(block_m: int, block_n: int, waves: int) -> None:
    along_m = waves_along_m(block_m, block_n, waves)
    if along_m == 0:
        assert block_m * block_n // 256 < waves
    else:
        assert block_m % (along_m * 16) == 0
        assert block_n % (waves // along_m * 16) == 0


@pytest.mark.parametrize("size", [16, 32])
def test_kernels_share_a_block_out_as_the_rules_do(
    size: int, toolchain: Toolchain, cache: CodeCache
) -> None:
    """``waves_along_m`` is there twice, since the kernel's text holds no answer of Python's."""
    cases = list(product((16, 32, 48, 64, 128, 256), (16, 32, 64, 128, 256), (1, 2, 4, 8)))
    checks = "".join(
        f"static_assert(kiln::mma::waves_along_m({m}, {n}, {waves}, {size})"
        f" == {waves_along_m(m, n, waves, size)});\n"
        for m, n, waves in cases
    )
    source = f"#include <kiln/mma.h>\n{checks}"
    source += 'extern "C" PT_EXPORT int compared() { return 0; }\n'
    result = build(source, "compared", find("cpu"), toolchain, cache)
    assert isinstance(result, Build), result.detail


@pytest.mark.parametrize(
    ("target", "element", "size", "step"),
    [
        ("gfx942", DType.F16, 16, 32),
        ("gfx942", DType.F16, 32, 16),
        ("gfx942", DType.F32, 16, 16),
        ("gfx942", DType.F32, 32, 8),
        ("gfx942", DType.F64, 16, 8),
        ("gfx950", DType.BF16, 32, 16),
        ("gfx1100", DType.F16, 16, 16),
        ("gfx1201", DType.BF16, 16, 16),
        ("gfx1100", DType.F32, 16, 4),
        ("gfx1030", DType.F16, 16, 4),
        ("sm_80", DType.F16, 16, 32),
        ("sm_90", DType.F32, 16, 4),
    ],
    ids=str,
)
def test_a_step_uses_up_what_a_lane_reads_at_once(
    target: str, element: DType, size: int, step: int
) -> None:
    """16 bytes a lane at least; 4 elements where there is no such instruction."""
    assert step_k(element, hip_hardware(find(target)), size) == step


def rows_of_two(stride: tuple[int, int, int], first: int = 0, limit: int | None = None) -> Operand:
    """Five rows by k of two axes, 2 and 6, in memory with these strides. ``limit``: behind a
    mask, which is of the inner axis where it is above 0."""
    row, outer, inner = axis("i", 5), axis("k0", 2), axis("k1", 6)
    read = Load("x", (row.var, outer.var, inner.var + first), DType.F32)
    tested = row.var if limit == 0 else inner.var
    condition = Call(
        "lt", (IndexValue(tested, DType.I64), Const(limit or 4, DType.I64)), DType.BOOL
    )
    value = read if limit is None else Masked(condition, read, Const(0.0, DType.F32))
    groups = (IndexGroup("batch", ()), IndexGroup("m", (row,)), IndexGroup("k", (outer, inner)))
    held = {"x": buffer("x", DType.F32, (5, 2, 6 + first), stride)}
    return analyse_operand("A", value, DType.F32, groups, held)


@pytest.mark.parametrize(
    ("operand", "widths", "reason"),
    [
        (
            rows_of_two((12, 6, 1)),
            (1, 2, 4),
            "the contiguous axis of A has 12 elements, which is not a multiple of 8",
        ),
        (
            rows_of_two((16, 8, 1)),
            (1, 2),
            "the contiguous axis of A has 6 elements, which is not a multiple of 4",
        ),
        (
            rows_of_two((14, 6, 1)),
            (1, 2),
            "A has a stride or offset of 14, which is not a multiple of 4",
        ),
        (
            rows_of_two((15, 6, 1)),
            (1,),
            "A has a stride or offset of 15, which is not a multiple of 2",
        ),
        (
            rows_of_two((16, 8, 1), first=1),
            (1,),
            "A has a stride or offset of 1, which is not a multiple of 2",
        ),
        (
            rows_of_two((16, 8, 1), first=2),
            (1, 2),
            "the contiguous axis of A has 6 elements, which is not a multiple of 4",
        ),
        (rows_of_two((24, 12, 2)), (1,), "no axis of A is contiguous"),
        (
            rows_of_two((12, 6, 1), limit=0),
            (1, 2),
            "the contiguous axis of A has 6 elements, which is not a multiple of 4",
        ),
        (rows_of_two((12, 6, 1), limit=4), (1,), "the mask of A changes along its contiguous axis"),
    ],
    ids=range(9),
)
def test_a_vector_lies_within_a_row_and_begins_at_a_multiple_of_its_size(
    operand: Operand, widths: tuple[int, ...], reason: str
) -> None:
    obstacles = {width: operand.vector_obstacle(width) for width in (1, 2, 4, 8)}
    assert tuple(width for width, why in obstacles.items() if not why) == widths
    assert obstacles[2 * widths[-1]] == reason
