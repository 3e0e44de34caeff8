"""Matrix kernels as the compiler makes them: the instructions meant, and nothing spilled."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.rocm.attention.template import AttentionTemplate
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.errors import Rejected
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.targets import find, generations, names
from scheduler.targets.model import hip_hardware
from tests.support.families import linear, product
from tests.unit.codegen.test_attention_kernels import attention_node
from tests.unit.matrix.contractions import convolution, matmul, shared_input
from tests.unit.matrix.convolution_graphs import Convolution
from tests.unit.matrix.running import in_listings

ALL = tuple(find(name) for name in names())
GPUS = [gpu.name for gpu in generations.AMD_TARGETS]
# Where the hardware has no instruction for a type's products.
FMA = {
    "f16": "v_fma_mix_f32|v_fmac_f32|v_fma_f32",
    "bf16": "v_fmac_f32|v_dual_fmac_f32",
    "f32": "v_fmac_f32|v_dual_fmac_f32",
    "f64": "v_fma_f64|v_fmac_f64",
}


def expected(target: str, dtype: str) -> str:
    one = hip_hardware(find(target)).matrix_instruction(dtype)
    return FMA[dtype] if one is None else in_listings(one)


def built(schedule: Schedule, target: str, toolchain: Toolchain, cache: CodeCache) -> Build:
    backend = ROCmCPPScheduling(schedule, ALL)
    caller = backend.default(schedule.nodes[0])
    return spilling_nothing(
        build(caller.kernel.source, caller.name, find(target), toolchain, cache)
    )


def spilling_nothing(result: Build | Rejected) -> Build:
    assert isinstance(result, Build), f"{result.reason}\n{result.detail}"
    for function, resources in result.resources.items():
        assert (resources["vgpr_spills"], resources["scratch_bytes"]) == (0, 0), function
    return result


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_the_default_uses_the_targets_instructions_and_spills_nothing(
    target: str, dtype: str, toolchain: Toolchain, cache: CodeCache
) -> None:
    result = built(matmul(2240, 2048, 256, DType.from_label(dtype)), target, toolchain, cache)
    listing = (result.directory / "kernel.s").read_text()
    assert re.search(rf"^\s+({expected(target, dtype)})", listing, re.MULTILINE)
    assert re.search(r"^\s+(global|buffer)_load_(dwordx4|b128)\b", listing, re.MULTILINE)


DEPTHWISE = Convolution((8, 64, 28, 28), (64, 1, 7, 7), padding=3, groups=64, bias=True, relu=True)
CASES = {
    "large, gelu": lambda: linear(4096, 4096, 4096, gelu=True),
    "large, row-major": lambda: product(4096, 4096, 4096),
    "strided": lambda: matmul(2240, 768, 2240, DType.F16, a_stride=(1, 50304)),
    "bias_mn": lambda: matmul(4096, 2048, 224, DType.F16, bias=[4096, 2048]),
    "bias_m1": lambda: matmul(4096, 2048, 224, DType.F16, bias=[4096, 1]),
    "bmm": lambda: matmul(2240, 2048, 256, DType.F16, batch=16, b_transposed=True),
    "m0": lambda: matmul(0, 2048, 256, DType.F16),
    "k0": lambda: matmul(2240, 2048, 0, DType.F16),
    "f64": lambda: matmul(512, 512, 512, DType.F64),
    "qkv": lambda: shared_input(256, (512, 128, 128), 512, DType.BF16),
    "conv2d": lambda: convolution((1, 8, 224, 224), (64, 8, 7, 7), DType.F16, padding=3),
    "channels_last": lambda: convolution(
        (1, 8, 224, 224), (64, 8, 7, 7), DType.F16, padding=3, channels_last=True
    ),
    "depthwise": DEPTHWISE.schedule,
    "depthwise, channels last": lambda: replace(DEPTHWISE, channels_last=True).schedule(),
}


@pytest.mark.parametrize(
    "problem",
    [
        Convolution((8, 64, 14, 14), (64, 64, 3, 3), padding=1, channels_last=True),
        replace(DEPTHWISE, channels_last=True),
    ],
    ids=["3x3", "depthwise"],
)
def test_channels_last_moves_sixteen_bytes_at_once(
    problem: Convolution, toolchain: Toolchain, cache: CodeCache
) -> None:
    """Padding is no branch: what is outside of the image is outside of the buffer's descriptor."""
    result = built(problem.schedule(), "gfx942", toolchain, cache)
    listing = (result.directory / "kernel.s").read_text()
    assert re.search(r"^\s+buffer_load_dwordx4\b", listing, re.MULTILINE)
    assert not re.search(r"^\s+buffer_load_(u?short|d16)", listing, re.MULTILINE)
    assert re.search(r"^\s+global_store_dwordx[24]\b", listing, re.MULTILINE)


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("case", CASES)
def test_every_form_compiles_for_both_families(
    case: str, target: str, toolchain: Toolchain, cache: CodeCache
) -> None:
    built(CASES[case](), target, toolchain, cache)


@pytest.mark.full
@pytest.mark.parametrize("depth", [208, 256])
@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201"])
def test_attention_of_deep_heads_spills_nothing(
    target: str, depth: int, toolchain: Toolchain, cache: CodeCache
) -> None:
    """A row of tiles is as wide as the head is deep: its operands beside it fill the registers."""
    tokens = SymbolInfo("s27", 1024, 1, 5000)
    size = symbol("s27")
    node, lowered = attention_node(DType.F16, size, size, depth, depth, causal=True, info=tokens)
    made = AttentionTemplate(node, lowered, ALL)
    caller = made.generate(made.default_config())
    spilling_nothing(build(caller.kernel.source, caller.name, find(target), toolchain, cache))
