"""Attention in CuteDSL without a GPU: which problems it serves, with which tiles, what it prepares,
and that NVIDIA's compiler takes its text without spilling."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from sympy import Symbol

from scheduler import targets
from scheduler.codegen.cutedsl.attention.template import AttentionTemplate
from scheduler.codegen.cutedsl.scheduling import CuteDSLScheduling
from scheduler.codegen.template import Config
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from tests.unit.codegen.cutedsl import built, cutedsl_attention
from tests.unit.codegen.test_attention_kernels import S, attention_node

F16, BF16, F32, BOOL = DType.F16, DType.BF16, DType.F32, DType.BOOL
SMALL: Config = {"block_m": 64, "block_n": 64, "stages": 2, "pingpong": False, "splits": 1}
LARGE: Config = {"block_m": 128, "block_n": 128, "stages": 2, "pingpong": True, "splits": 1}
SPLIT: Config = {"block_m": 64, "block_n": 64, "stages": 2, "pingpong": False, "splits": 4}


def serving(made: AttentionTemplate) -> list[Config]:
    return [config for config in made.configs() if made.reject(config) is None]


def reason(made: AttentionTemplate, config: Config) -> str:
    rejected = made.reject(config)
    assert rejected is not None
    return rejected.reason


@pytest.mark.parametrize(
    ("depth", "count"), [(32, 24), (64, 24), (96, 20), (128, 20), (192, 8), (256, 6)]
)
def test_how_many_configurations_serve_a_depth(depth: int, count: int) -> None:
    for dtype in (F16, BF16):
        assert len(serving(cutedsl_attention(dtype, S, 512, depth, depth))) == count


def test_what_it_cannot_serve_is_rejected_with_the_reason() -> None:
    assert "not for f32" in reason(cutedsl_attention(F32, S, 512, 64, 64), SMALL)
    deep = cutedsl_attention(F16, S, 512, 264, 64)
    assert "a head dimension of 272 exceeds the limit of 256" in reason(deep, SMALL)
    for depths in ((0, 64), (64, 0)):
        flat = cutedsl_attention(F16, S, 512, *depths, scale=1.0)
        assert reason(flat, SMALL) == "a head dimension of 0 is not supported"
    wide = cutedsl_attention(F16, S, 512, 256, 256)
    assert "bytes of shared memory exceed the limit of 232448 per block" in reason(wide, LARGE)
    assert "need 176 registers per thread, which exceeds the limit of 128" in reason(
        cutedsl_attention(F16, S, 512, 96, 160), {**LARGE, "block_m": 192}
    )
    node, lowered = attention_node(F16, S, 512, 64, 64)
    both = tuple(targets.find(name) for name in ("sm_80", "sm_90"))
    made = AttentionTemplate(node, lowered, both)
    assert "supported only on sm_90, but the targets include sm_80" in reason(made, SMALL)


@pytest.mark.parametrize(
    ("rows", "depth", "block_m", "pingpong"),
    [
        (1, 128, 64, False),
        (100, 128, 128, True),
        (1024, 64, 128, True),  # higher blocks would leave SMs idle at the end
        (32768, 64, 192, True),
        (4096, 128, 128, True),
    ],
)
def test_the_default_is_as_tall_as_the_problem(
    rows: int, depth: int, block_m: int, pingpong: bool
) -> None:
    made = cutedsl_attention(BF16, rows, 512, depth, depth)
    config = made.default_config()
    assert made.reject(config) is None
    assert (config["block_m"], config["pingpong"]) == (block_m, pingpong)


def test_blocks_of_few_columns_are_as_tall_as_they_come() -> None:
    """Each is brief, so fewer of them count for more than an even last round."""
    assert cutedsl_attention(F16, 4096, 77, 40, 40).default_config()["block_m"] == 192


def test_every_configuration_is_a_candidate_or_rejected() -> None:
    node, lowered = attention_node(F16, S, 512, 128, 128, causal=True)
    backend = CuteDSLScheduling(Schedule(lowered, (node,), (), {}, {}), (targets.find("sm_90"),))
    found = backend.candidates(node)
    names = {caller.kernel.name for caller in found.callers}
    assert len(names) == len(found.callers) == 20
    assert len(found.callers) + len(found.rejected) == 24
    assert backend.is_cutedsl_template(node)


def test_operands_that_tma_reads_need_no_workspace() -> None:
    for made in (
        cutedsl_attention(F16, S, 512, 64, 64, key_heads=2),
        cutedsl_attention(F16, 1, S, 72, 8, mask=BOOL),
    ):
        kernel = made.generate(SMALL).kernel
        assert kernel.workspace_bytes == 0
        assert [launch.function for launch in kernel.launches] == [f"{kernel.name}_kernel_0"]


def test_operands_that_it_cannot_read_are_prepared_once_for_heads_that_share_them() -> None:
    kernel = cutedsl_attention(F16, S, S, 64, 64, computed=True, key_heads=2).generate(SMALL).kernel
    first, second = kernel.launches
    assert first.function == f"{kernel.name}_prepare_k_0"
    assert second.function == f"{kernel.name}_kernel_1"
    sizes = dict.fromkeys(kernel.workspace_bytes.free_symbols, 40)
    assert kernel.workspace_bytes.xreplace(sizes).doit() == 2 * 2 * 40 * 64 * F16.itemsize
    # Rows of 100 elements begin at no multiple of 16 bytes; in the workspace they have 104.
    odd = cutedsl_attention(F16, 40, 40, 100, 100).generate(SMALL).kernel
    assert [launch.function.split("_")[-2] for launch in odd.launches] == ["q", "k", "v", "kernel"]
    assert odd.workspace_bytes == 3 * 2 * 4 * 40 * 104 * F16.itemsize


def test_the_text_says_why_an_operand_is_prepared() -> None:
    computed = cutedsl_attention(F16, S, S, 64, 64, computed=True).generate(SMALL).kernel
    assert "k in rows: it is computed, which TMA cannot read" in computed.source
    odd = cutedsl_attention(F16, S, S, 100, 64).generate(SMALL).kernel
    starts = "do not begin at multiples of 16 bytes, which TMA cannot read"
    assert f"q in rows: its batch entries {starts}" in odd.source
    assert f"k in rows: its rows {starts}" in odd.source


def test_shared_memory_of_the_record_is_that_of_the_text() -> None:
    kernel = cutedsl_attention(F16, S, 512, 128, 128).generate(LARGE).kernel
    (launch,) = kernel.launches
    assert launch.lds_bytes == 1024 + (128 + 2 * 2 * 128) * 128 * 2
    assert launch.dynamic_lds
    assert launch.block == (384, 1, 1)


def test_blocks_that_share_columns_leave_their_parts_in_the_workspace() -> None:
    made = cutedsl_attention(F16, 3, 4096, 64, 40, plain=True)
    kernel = made.generate(SPLIT).kernel
    assert [launch.function.split("_")[-2] for launch in kernel.launches] == ["kernel", "combine"]
    rows = 2 * 4 * 3
    assert kernel.launches[0].grid[0] == 2 * 4 * SPLIT["splits"]
    assert kernel.workspace_bytes == rows * 4 * 48 * 4 + rows * 4 * 2 * 4
    assert made.default_config()["splits"] == 16, "few blocks, many columns"


def test_a_scale_that_is_not_positive_comes_before_the_maximum() -> None:
    assert (
        "SCALE = -2.0"
        in cutedsl_attention(F16, 8, 8, 64, 64, scale=-2.0).generate(SMALL).kernel.source
    )
    assert (
        "SCALE" not in cutedsl_attention(F16, 8, 8, 64, 64, scale=2.0).generate(SMALL).kernel.source
    )


def test_offsets_beyond_32_bits_are_counted_in_64() -> None:
    long = SymbolInfo("s27", 40, 1, None)
    kernel = cutedsl_attention(F16, S, S, 64, 64, mask=BOOL, info=long).generate(SMALL).kernel
    assert "Index = cutlass.Int64" in kernel.source
    assert '("s27", "i64", "")' in kernel.source


LONG = SymbolInfo("s27", 40, 1, None)
CASES: dict[str, tuple[Callable[[], AttentionTemplate], Config]] = {
    "causal, with turns": (
        lambda: cutedsl_attention(BF16, S, S, 128, 128, causal=True, key_heads=2, plain=True),
        LARGE,
    ),
    "masked, prepared, with an epilogue, in 64 bits": (
        lambda: cutedsl_attention(F16, S, S, 72, 40, mask=F16, computed=True, info=LONG),
        SMALL,
    ),
    "capped, as Gemma 2": (
        lambda: cutedsl_attention(
            BF16, S, S, 256, 256, causal=True, key_heads=2, plain=True, cap=50.0
        ),
        {**LARGE, "block_n": 64},
    ),
    "capped, additive mask, three in turns": (
        lambda: cutedsl_attention(F16, S, S, 64, 64, mask=F16, cap=30.0, safe=False),
        {**LARGE, "block_m": 192, "block_n": 64},
    ),
    "capped far off": (lambda: cutedsl_attention(F16, S, S, 128, 128, cap=3e3), LARGE),
    "one query, split": (lambda: cutedsl_attention(F16, 1, S, 64, 64, mask=BOOL), SPLIT),
}


@pytest.mark.long(but=4)
@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_nvidias_compiler_takes_it_without_spilling(name: str) -> None:
    make, config = CASES[name]
    caller = make().generate(config)
    made = built(caller)
    launches = caller.kernel.launches
    assert set(made.resources) == {launch.function for launch in launches}
    for launch in launches:
        facts = made.resources[launch.function]
        assert (facts["spill_store_bytes"], facts["stack_bytes"]) == (0, 0)
        assert facts["shared_bytes"] == launch.lds_bytes
        assert facts["threads"] == launch.block[0]
    text = (made.directory / "kernel.ptx").read_text()
    for instruction in ("wgmma.mma_async", "cp.async.bulk.tensor", "setmaxnreg.inc"):
        assert instruction in text


@pytest.mark.parametrize("name", ["own", "T", "class", "q_rows", "KERNEL_NAME"])
def test_a_size_may_be_called_anything(name: str) -> None:
    size = Symbol(name, integer=True, nonnegative=True)
    info = SymbolInfo(name, 40, 1, 500)
    made = cutedsl_attention(F16, size, size, 100, 64, mask=BOOL, computed=True, info=info)
    for config in (SMALL, SPLIT):
        kernel = made.generate(config).kernel
        code = ast.parse(kernel.source)
        functions = {one.name: one for one in code.body if isinstance(one, ast.FunctionDef)}
        parameters = [one.arg for one in functions[kernel.name].args.args]
        assert parameters[-3:] == [
            f"n_{name}".replace("KERNEL_NAME", "kernel_name"),
            "workspace",
            "stream",
        ]
