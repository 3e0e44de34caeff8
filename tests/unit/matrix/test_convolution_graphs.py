"""Convolutions as lowering and fusion make them, on CPU emulation: layouts, types, fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.ir.dtypes import DType
from scheduler.targets import find, names
from tests.unit.matrix.convolution_graphs import Convolution
from tests.unit.matrix.running import Runner, random_values, tolerance

ALL = tuple(find(name) for name in names())
LAYOUTS = pytest.mark.parametrize("channels_last", [False, True], ids=["nchw", "channels_last"])


def default(problem: Convolution, targets: Sequence[str] = ()) -> TemplateCaller:
    """The one kernel that the graph becomes."""
    schedule = problem.schedule()
    (node,) = schedule.nodes
    chosen = tuple(map(find, targets)) or ALL
    return ROCmCPPScheduling(schedule, chosen).default(node)


def check(problem: Convolution, runner: Runner, rng: np.random.Generator) -> None:
    """The kernel's result beside the sum in float64."""
    sizes = {"x": problem.x, "w": problem.w}
    if problem.bias:
        sizes["bias"] = (problem.w[0],)
    if problem.residual:
        sizes["residual"] = problem.y
    values = {name: random_values(rng, size, problem.dtype) for name, size in sizes.items()}
    bindings = {"s0": problem.x[0]} if problem.dynamic else None
    (out,) = runner(default(problem), values, bindings).values()
    expected = problem.expected(values)
    assert out.shape == expected.shape
    products = int(np.prod(problem.w[1:]))
    assert np.abs(out - expected).max() <= tolerance(products, problem.dtype, magnitude=4.0)


BASE = Convolution((2, 16, 9, 11), (24, 16, 3, 3), padding=1, bias=True)


@pytest.mark.long(but=3)
@pytest.mark.full
@LAYOUTS
@pytest.mark.parametrize(
    "dtype", [DType.F16, DType.BF16, DType.F32, DType.F64], ids=lambda dtype: dtype.label
)
def test_every_type(
    runner: Runner, rng: np.random.Generator, dtype: DType, channels_last: bool
) -> None:
    check(replace(BASE, dtype=dtype, channels_last=channels_last), runner, rng)


def test_a_lowered_window_of_channels_is_read_in_vectors() -> None:
    """The mask's zero is held in f32: it is a zero all the same."""
    config = default(replace(BASE, channels_last=True)).kernel.config
    assert (config["VECTOR_A"], config["VECTOR_B"]) == (8, 8)


DEPTHWISE = Convolution(
    (2, 24, 13, 11), (24, 1, 7, 7), padding=3, groups=24, bias=True, channels_last=True
)
DEPTHWISE_CASES = {
    "7x7": DEPTHWISE,
    "7x7 f32": replace(DEPTHWISE, dtype=DType.F32),
    "7x7 f64": replace(DEPTHWISE, dtype=DType.F64),
    "3x3 bf16, stride 2": replace(
        DEPTHWISE, w=(24, 1, 3, 3), stride=2, padding=1, dtype=DType.BF16
    ),
    "odd channels, no padding": replace(
        DEPTHWISE, x=(2, 19, 13, 11), w=(19, 1, 3, 2), padding=0, groups=19
    ),
    "stride 3, dilation 2": replace(DEPTHWISE, w=(24, 1, 3, 5), padding=2, stride=3, dilation=2),
    "stride 2, dilation 2": replace(DEPTHWISE, w=(24, 1, 5, 3), padding=4, stride=2, dilation=2),
    "padding beyond the image": replace(DEPTHWISE, x=(1, 24, 3, 2), padding=5),
    "one row, one tap": replace(
        DEPTHWISE, x=(2, 24, 1, 11), w=(24, 1, 1, 3), padding=1, bias=False
    ),
    "any batch, fused": replace(DEPTHWISE, dynamic=True, residual=True, relu=True),
    "many images": replace(DEPTHWISE, x=(5, 72, 20, 17), w=(72, 1, 5, 5), padding=2, groups=72),
}


@pytest.mark.long(but=3)
@pytest.mark.full
@LAYOUTS
@pytest.mark.parametrize("case", DEPTHWISE_CASES)
def test_each_channel_by_itself(
    runner: Runner, rng: np.random.Generator, case: str, channels_last: bool
) -> None:
    problem = replace(DEPTHWISE_CASES[case], channels_last=channels_last)
    assert default(problem).kernel.template == "depthwise"
    check(problem, runner, rng)


@pytest.mark.full(but=3)
@pytest.mark.parametrize("rows", [1, 2, 8])
def test_whatever_the_rows_of_a_thread(runner: Runner, rng: np.random.Generator, rows: int) -> None:
    schedule = DEPTHWISE.schedule()
    template = ROCmCPPScheduling(schedule, ALL).template(schedule.nodes[0])
    for config in template.configs():
        if config["ROWS"] == rows and template.reject(config) is None:
            break
    caller = template.generate(config)
    sizes = {"x": DEPTHWISE.x, "w": DEPTHWISE.w, "bias": (24,)}
    values = {name: random_values(rng, size, DType.F16) for name, size in sizes.items()}
    (out,) = runner(caller, values).values()
    assert np.abs(out - DEPTHWISE.expected(values)).max() <= tolerance(49, DType.F16, 4.0)


def test_depthwise_channels_are_read_and_stored_in_vectors() -> None:
    caller = default(DEPTHWISE)
    assert (caller.kernel.config["VECTOR"], caller.kernel.config["LANES_C"]) == (8, 8)
    assert "Vec<_Float16, VECTOR>*>(place0" in caller.kernel.source


FUSED = {
    "plain": replace(BASE, residual=True, relu=True),
    "any batch": replace(BASE, residual=True, relu=True, dynamic=True),
    "no padding, stride 2": replace(BASE, padding=0, stride=2, relu=True),
    "groups": replace(BASE, w=(24, 8, 3, 3), groups=2, residual=True, relu=True),
    "1x1": replace(BASE, w=(24, 16, 1, 1), padding=0, residual=True, relu=True),
    "one image": replace(BASE, x=(1, 16, 9, 11), residual=True, relu=True),
}


@pytest.mark.long(but=3)
@pytest.mark.full
@LAYOUTS
@pytest.mark.parametrize("case", FUSED)
def test_what_follows_is_part_of_the_kernel(
    runner: Runner, rng: np.random.Generator, case: str, channels_last: bool
) -> None:
    check(replace(FUSED[case], channels_last=channels_last), runner, rng)
