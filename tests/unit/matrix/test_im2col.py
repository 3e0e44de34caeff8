"""Windows as TMA's descriptor has them: each element is the one that the convolution reads."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.codegen.cutedsl.convolution import ConvolutionTemplate
from scheduler.codegen.cutedsl.gemm.im2col import Im2col, im2col_of
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from tests.unit.matrix.contractions import convolution

_CHANNELS = 64


@st.composite
def _convolutions(draw: st.DrawFn) -> tuple[tuple[int, ...], dict[str, int]]:
    """(images, height, width, window's height and width) with a window that fits somewhere."""
    of = st.integers
    tall, wide = draw(of(1, 4)), draw(of(1, 4))
    given = {"stride": draw(of(1, 3)), "padding": draw(of(0, 3)), "dilation": draw(of(1, 3))}
    least = [max(1, (n - 1) * given["dilation"] + 1 - 2 * given["padding"]) for n in (tall, wide)]
    height, width = (draw(of(n, n + 6)) for n in least)
    return (draw(of(1, 3)), height, width, tall, wide), given


@given(_convolutions())
def test_a_descriptor_loads_what_a_convolution_reads(
    problem: tuple[tuple[int, ...], dict[str, int]],
) -> None:
    (images, height, width, tall, wide), options = problem
    schedule = convolution(
        (images, _CHANNELS, height, width),
        (8, _CHANNELS, tall, wide),
        DType.F16,
        channels_last=True,
        **options,  # type: ignore[arg-type]
    )
    (node,) = schedule.nodes
    interface = ConvolutionTemplate(node, schedule.lowered, (find("sm_90"),)).interface
    found = im2col_of(interface.a, interface.buffers, 8)
    if not isinstance(found, Im2col):
        # An image of one pixel is no window, and a window of one pixel may be a matrix.
        assert "windows of 0 dimensions" in found, found
        return
    named = {side.size: side for side in found.sides}
    for size, count in ((height, tall), (width, wide)):
        if size not in named or height == width:
            continue
        side = named[size]
        reach = (count - 1) * options["dilation"]
        expected = np.arange(
            -options["padding"], size + options["padding"] - reach, options["stride"]
        )
        lower, upper = -side.padding, side.padding_after - side.reach
        assert list(np.arange(lower, size + upper, side.stride)) == list(expected)
        assert list(np.arange(side.window_size) * side.dilation) == list(
            np.arange(count) * options["dilation"] if count > 1 else [0]
        )
    assert found.channels == _CHANNELS
    assert found.image_step == height * width * _CHANNELS or images == 1
