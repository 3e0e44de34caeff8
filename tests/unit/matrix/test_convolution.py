"""Convolutions on CPU emulation, against a direct sum over the window in float64."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.ir.dtypes import DType
from scheduler.targets import find, names
from tests.unit.matrix.contractions import convolution
from tests.unit.matrix.convolution_graphs import direct
from tests.unit.matrix.running import Runner, random_values, tolerance

ALL = tuple(find(name) for name in names())


@pytest.mark.long(but=5)
@pytest.mark.full
@pytest.mark.parametrize("channels_last", [False, True], ids=["nchw", "channels_last"])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 3, 1, 1), (1, 1, 2, 2)]
)
def test_a_window_with_stride_padding_dilation_and_groups(
    runner: Runner,
    rng: np.random.Generator,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    channels_last: bool,
) -> None:
    dtype = DType.F16
    x = random_values(rng, (2, 8 * groups, 15, 17), dtype)
    w = random_values(rng, (12, 8, 3, 3), dtype)
    b = random_values(rng, (12,), dtype)
    schedule = convolution(
        x.shape,
        w.shape,
        dtype,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        channels_last=channels_last,
        bias=True,
    )
    caller = ROCmCPPScheduling(schedule, ALL).default(schedule.nodes[0])
    out = runner(caller, {"x": x, "w": w, "bias": b})["y"]
    expected = direct(x, w, stride, padding, dilation) + b[:, None, None]
    assert out.shape == expected.shape
    assert np.abs(out - expected).max() <= tolerance(8 * 9, dtype, magnitude=4.0)


def test_channels_last_reads_eight_channels_at_once() -> None:
    """1x8x224x224 with weight 64x8x7x7: padding masks whole pixels, never part of a load."""
    schedule = convolution(
        (1, 8, 224, 224), (64, 8, 7, 7), DType.F16, stride=2, padding=3, channels_last=True
    )
    config = ROCmCPPScheduling(schedule, ALL).default(schedule.nodes[0]).kernel.config
    assert (config["VECTOR_A"], config["VECTOR_B"]) == (8, 8)


def test_results_contiguous_along_pixels_make_pixels_the_columns() -> None:
    """NCHW: neighbouring lanes hold neighbouring columns, so these must be the pixels."""
    schedule = convolution((2, 8, 15, 17), (12, 8, 3, 3), DType.F16)
    caller = ROCmCPPScheduling(schedule, ALL).default(schedule.nodes[0])
    assert [int(caller.call.args[name]) for name in ("M", "N")] == [12, 2 * 13 * 15]
