"""Rows of resampling to another size, and of its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.ir.ops import Elements, Op, op
from scheduler.ir.reference import resampling as ref
from scheduler.lowering import resampling as rules

_SCALES = {
    1: "scales=None",
    2: "scales_h=None, scales_w=None",
    3: "scales_d=None, scales_h=None, scales_w=None",
}


def _interpolation(name: str, rank: int, rule: Any, filter_taps: Any) -> Op:
    return op(
        f"aten.{name}",
        f"self, output_size, align_corners, {_SCALES[rank]}; "
        "vec: input, output_size, align_corners, scale_factors",
        rule,
        ref.upsample(filter_taps),
    )


def _gradient(name: str, rank: int, rule: Any, filter_taps: Any, corner_params: str) -> Op:
    return op(
        f"aten.{name}_backward",
        f"grad_output, output_size, input_size, {corner_params}{_SCALES[rank]}",
        rule,
        ref.upsample_backward(filter_taps),
    )


def _rows() -> Iterator[Op]:
    for rank in (1, 2, 3):
        for exact, start in ((False, "upsample_nearest"), (True, "_upsample_nearest_exact")):
            yield op(
                f"aten.{start}{rank}d",
                f"self, output_size, {_SCALES[rank]}; vec: input, output_size, scale_factors",
                rules.upsample_nearest(exact),
                ref.upsample(ref.nearest(exact)),
                Elements.COPIED,
            )
            backward = rules.upsample_nearest_backward(exact)
            yield _gradient(f"{start}{rank}d", rank, backward, ref.nearest(exact), "")
    by_name = {1: "upsample_linear1d", 2: "upsample_bilinear2d", 3: "upsample_trilinear3d"}
    corners = "align_corners, "
    for rank, name in by_name.items():
        yield _interpolation(name, rank, rules.UPSAMPLE_LINEAR, ref.linear)
        yield _gradient(name, rank, rules.LINEAR_BACKWARD, ref.linear, corners)
    yield _interpolation("upsample_bicubic2d", 2, rules.UPSAMPLE_CUBIC, ref.cubic)
    yield _gradient("upsample_bicubic2d", 2, rules.CUBIC_BACKWARD, ref.cubic, corners)
    for reach, name in ((1, "_upsample_bilinear2d_aa"), (2, "_upsample_bicubic2d_aa")):
        rule = rules.upsample_antialiased(reach)
        yield _interpolation(name, 2, rule, ref.antialiased(reach))


ROWS = tuple(_rows())
