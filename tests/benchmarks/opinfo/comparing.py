"""Whether results are right: beside torch's own, and beside the reference within its bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from scheduler.benchmark.case_builder import node_tolerance
from scheduler.benchmark.tolerance import Tolerance, chain_tolerance
from scheduler.fusion.nodes import Schedule
from tests.benchmarks.opinfo.database import as_array, parts_of

# What torch's own tests hold results of a type to (torch.testing.assert_close): relative, absolute.
_OWN = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
_EIGHT_BITS = (0.13, 1e-3)  # half of the distance between neighbours of e4m3fn, e5m2
_WIDE = (1e-7, 1e-7)
EXACT = Tolerance(0.0, 0.0)  # of what no kernel made


@dataclass(frozen=True)
class Expected:
    """What torch gives for one result: in the sample's own types, and in float64 if it can."""

    own: Any
    wide: Any


def _close(got: Any, want: Any, tolerance: tuple[float, float]) -> Any:
    """Where elements agree; NaN with NaN."""
    if got.dtype.kind != "f" or want.dtype.kind != "f":
        return got == want
    return np.isclose(got, want, *tolerance, equal_nan=True)


def equal_places(got: Any, own: Any, source: Any) -> bool:
    """Whether indices point, along some dimension of what they index, at values equal to those
    that torch's point at: of equal elements an unstable sort may take any."""
    got, own = np.asarray(got), as_array(own)
    if got.dtype != np.int64 or got.shape != own.shape:
        return False
    values = parts_of(source)
    for axis in range(values.ndim):
        keeps = got.ndim == values.ndim
        pair = (got, own) if keeps else (np.expand_dims(got, axis), np.expand_dims(own, axis))
        others = [n for at, n in enumerate(values.shape) if at != axis]
        if [n for at, n in enumerate(pair[0].shape) if at != axis] != others:
            continue
        if any(one.size and not 0 <= one.min() <= one.max() < values.shape[axis] for one in pair):
            continue
        mine, theirs = (np.take_along_axis(values, one, axis) for one in pair)
        if np.array_equal(mine, theirs, equal_nan=values.dtype.kind == "f"):
            return True
    return False


def own_tolerance(dtype: Any) -> tuple[float, float]:
    """Torch's for the type; none for integers."""
    if dtype in _OWN:
        return _OWN[dtype]
    return _EIGHT_BITS if dtype.is_floating_point else (0.0, 0.0)


def beside_torch(got: Any, expected: Expected, *, shapes_alone: bool = False) -> str:
    """What is wrong with a result of the reference; empty where each element is what torch makes
    in float64, or what it makes in the type itself."""
    if not isinstance(expected.own, torch.Tensor):
        same = np.array_equal(got, expected.own, equal_nan=isinstance(expected.own, float))
        return "" if same else f"is {got!r}, torch {expected.own!r}"
    if np.shape(got) != tuple(expected.own.shape):
        return f"shape {list(np.shape(got))}, torch {list(expected.own.shape)}"
    if shapes_alone:
        return ""
    have, own = parts_of(got), parts_of(expected.own)
    right = _close(have, own, own_tolerance(expected.own.dtype))
    if expected.wide is not None and tuple(expected.wide.shape) == tuple(expected.own.shape):
        right = right | _close(have, parts_of(expected.wide), _WIDE)
    return _wrong(have, own, ~right, "torch")


def beside_reference(got: Any, reference: Any, expected: Expected, tolerance: Tolerance) -> str:
    """What is wrong with a kernel's result: each element lies within the engine's own bounds of
    the reference, or is what torch makes in the type itself, or is infinite where the reference is
    beyond that type."""
    if np.shape(got) != np.shape(reference):
        return f"shape {list(np.shape(got))}, the reference {list(np.shape(reference))}"
    have, want = parts_of(got), parts_of(reference)
    if have.dtype.kind != "f":
        right = have == want
        if isinstance(expected.own, torch.Tensor) and have.shape == tuple(expected.own.shape):
            right = right | (have == parts_of(expected.own))
        return _wrong(have, want, ~right, "the reference")
    with np.errstate(invalid="ignore"):
        right = np.abs(have - want) <= tolerance.bound(want.astype(np.float64))
    right = right | (have == want) | (np.isnan(have) & np.isnan(want))
    if isinstance(expected.own, torch.Tensor) and np.shape(got) == tuple(expected.own.shape):
        own = parts_of(expected.own)
        right = right | _close(have, own, own_tolerance(expected.own.dtype))
        if expected.own.dtype in _OWN:
            beyond = np.abs(want) > torch.finfo(expected.own.dtype).max
            right = right | (beyond & np.isinf(have) & (np.sign(have) == np.sign(want)))
    return _wrong(have, want, ~right, "the reference")


def _wrong(have: Any, want: Any, wrong: Any, who: str) -> str:
    if not np.any(wrong):
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = f"[{', '.join(map(str, at))}]"
    count = f"{np.count_nonzero(wrong)} of {np.size(wrong)} wrong"
    return f"{place} is {have[at]:.9g}, {who} {want[at]:.9g}; {count}"


def tolerances(plan: Schedule, bindings: Mapping[str, int]) -> dict[str, Tolerance]:
    """The bound of every buffer after the kernels and externs that it depends on."""
    behind: dict[str, Sequence[str]] = {}
    steps: dict[str, Tolerance] = {}
    for node in plan.nodes:
        known = dict.fromkeys(name for read in node.reads for name in behind.get(read, ()))
        for name in node.writes:
            behind[name] = (*known, name)
            steps[name] = node_tolerance(node, plan.lowered.buffers[name].dtype, bindings)
    return {name: chain_tolerance([steps[one] for one in chain]) for name, chain in behind.items()}
