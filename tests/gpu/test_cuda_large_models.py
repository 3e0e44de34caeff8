"""The two large samples on a real GPU, kernel by kernel. What they take is the reference: float64
on the host's cores, and weights of half a thousand million elements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scheduler.benchmark.measure import Limits
from scheduler.benchmark.verification import verify
from scheduler.build.cuda.toolchains import CudaToolchain
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.dtypes import DType
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import Target
from tests.gpu.running import DTYPES, LARGE, assert_all_passed, bundle_of, sample, summary

pytestmark = pytest.mark.gpu

LIMITS = Limits(load_s=300.0, check_s=300.0)
# At the least size, a prime and the usual one (None) in the sample's own type; kernels are the same
# at each. In the other types at the least: drawing weights of 525 million elements takes the time.
CASES = [
    ("llama3_8b_1layer", DType.BF16, None),
    *(("gpt2_124m", dtype, None) for dtype in DTYPES),
    ("llama3_8b_1layer", DType.BF16, 37),
    *(("llama3_8b_1layer", dtype, 2) for dtype in DTYPES),
]


@pytest.mark.parametrize(
    ("name", "dtype", "size"), CASES, ids=[f"{n}-{d.label}-{s or 'usual'}" for n, d, s in CASES]
)
def test_every_distinct_kernel_is_right(
    name: str,
    dtype: DType,
    size: int | None,
    nvidia: DeviceInfo,
    target: Target,
    compiler: CudaToolchain,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    bundle = bundle_of(sample(name, dtype), target, compiler, tmp_path / "bundle")
    symbols = bundle.manifest.symbols
    bindings = hint_bindings(symbols, dict.fromkeys(symbols, size) if size else None)
    whole = name == "gpt2_124m" and dtype is LARGE[name]
    findings = verify(bundle, nvidia.id, bindings, whole_graph=whole, limits=LIMITS)
    say(summary(findings, bindings))
    assert_all_passed(findings)
