"""The two large samples on a real GPU, kernel by kernel. What they take is the reference: float64
on the host's cores, and weights of half a thousand million elements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scheduler.benchmark.measure import Limits
from scheduler.benchmark.verification import verify
from scheduler.build.cuda.toolchains import CudaToolchain
from scheduler.ir.bindings import trial_bindings
from scheduler.ir.dtypes import DType
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import Target
from tests.gpu.running import DTYPES, LARGE, assert_all_passed, bundle_of, sample, summary

pytestmark = pytest.mark.gpu

LIMITS = Limits(load_s=300.0, check_s=300.0)
# Sizes of llama3_8b_1layer, by their place in ``trial_bindings``: the least, a prime, the hint. Its
# kernels are the same at each; at 2,048 rows the reference of one is 4 * 10^12 operations.
CASES = [
    *(("gpt2_124m", dtype, 0) for dtype in DTYPES),
    *(("llama3_8b_1layer", dtype, 0) for dtype in DTYPES),
    *(("llama3_8b_1layer", DType.BF16, place) for place in (1, 2)),
]


@pytest.mark.parametrize(
    ("name", "dtype", "place"), CASES, ids=[f"{n}-{d.label}-{p}" for n, d, p in CASES]
)
def test_every_distinct_kernel_is_right(
    name: str,
    dtype: DType,
    place: int,
    nvidia: DeviceInfo,
    target: Target,
    compiler: CudaToolchain,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    bundle = bundle_of(sample(name, dtype), target, compiler, tmp_path / "bundle")
    bindings = trial_bindings(bundle.manifest.symbols)[place]
    whole = name == "gpt2_124m" and dtype is LARGE[name]
    findings = verify(bundle, nvidia.id, bindings, whole_graph=whole, limits=LIMITS)
    say(summary(findings, bindings))
    assert_all_passed(findings)
