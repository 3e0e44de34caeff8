"""Transposed convolutions that read only the windows that touch each output position.

A stride of s inserts s - 1 zeros between neighbouring input elements. These zeros are neither
stored nor multiplied: output positions with the same remainder modulo the stride meet the same
kernel taps, so each remainder is a batch of matrix products with complete windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.matmul import Operand, contract
from scheduler.lowering.reductions import accumulator_dtype
from scheduler.lowering.tensor import Epilogue, Index, Tensor
from scheduler.lowering.views import slice_dim
from scheduler.lowering.windows import InverseWindow, expand_to_rank

_ZERO = sympy.Integer(0)


def transposed_convolution(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    steps: tuple[Any, Any, Any],
    groups: int,
    size: tuple[Expr, ...],
    dtype: DType,
) -> Tensor:
    """out[n, o, w * stride - padding + t * dilation] = sum over c, t of x[n, c, w] * w[c, o, t].

    ``input`` is [N, C, ...], ``weight`` [C, O / groups, ...], ``size`` the result's [N, O, ...];
    ``steps`` are stride, padding and dilation.
    """
    rank = weight.rank - 2
    stride, padding, dilation = (expand_to_rank(step, rank) for step in steps)
    view = InverseWindow(input.size[2:], weight.size[2:], stride, padding, dilation)
    group_inputs = simplify(FloorDiv(weight.size[0], sympy.Integer(groups)))
    if not dtype.is_float or (groups > 1 and group_inputs == 1):
        return _summed(b, input, weight, bias, view, group_inputs, size, dtype)
    return _phase_convolution(b, input, weight, bias, view, groups, size, dtype)


def plus_bias(bias: Tensor | None) -> Epilogue | None:
    """Add the channel's bias; None without a bias."""
    if bias is None:
        return None
    return lambda acc, index: acc + upcast(bias.at(index[1:2]), acc.dtype)


def _summed(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    view: InverseWindow,
    group_inputs: Expr,
    size: tuple[Expr, ...],
    dtype: DType,
) -> Tensor:
    """The sum for cases without matrix instructions: one input channel per group, or integers."""
    accumulate = accumulator_dtype(dtype)
    group_outputs = weight.size[1]

    def read(index: Index, reduction_index: Index) -> Value:
        windows, taps, touches = view.at(index[2:], reduction_index[1:])
        channel = FloorDiv(index[1], group_outputs) * group_inputs + reduction_index[0]
        x = upcast(input.at((index[0], channel, *windows)), accumulate)
        w = upcast(weight.at((channel, Mod(index[1], group_outputs), *taps)), accumulate)
        return trees.masked_value(touches, x * w, const(0, accumulate))

    return b.reduction(
        size,
        (group_inputs, *view.taps),
        ReductionKind.SUM,
        read,
        dtype=dtype,
        accumulate=accumulate,
        after=plus_bias(bias),
    )


@dataclass(frozen=True)
class _Phase:
    """One dimension of a result with positions ``p = step * block + phase - shift``.

    ``step`` 1 means one phase. ``size`` is the computed extent: ``shift`` positions before the
    result's first, and some after its last if the stride does not divide them.
    """

    step: int
    shift: int
    blocks: Expr

    @property
    def size(self) -> Expr:
        return simplify(self.blocks * self.step)


def _phase_convolution(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    view: InverseWindow,
    groups: int,
    size: tuple[Expr, ...],
    dtype: DType,
) -> Tensor:
    phases = []
    for d, extent in enumerate(size[2:]):
        step, shift = view.stride[d], view.padding[d] % view.stride[d]
        if step == 1 or view.dilation[d] != 1:
            phases.append(_Phase(1, 0, extent))
        else:
            blocks = simplify(FloorDiv(extent + shift + step - 1, sympy.Integer(step)))
            phases.append(_Phase(step, shift, blocks))
    split_dims = [d for d, phase in enumerate(phases) if phase.step > 1]
    batch = (
        *((sympy.Integer(groups),) if groups > 1 else ()),
        *(sympy.Integer(phases[d].step) for d in split_dims),
    )
    group_inputs = simplify(FloorDiv(weight.size[0], sympy.Integer(groups)))
    group_outputs = weight.size[1]
    computed_size = (*size[:2], *(phase.size for phase in phases))
    zero = const(0, input.dtype)

    def split(g: Index) -> tuple[Expr, dict[int, Expr]]:
        phase_index = g[1:] if groups > 1 else g
        return (g[0] if groups > 1 else _ZERO), dict(zip(split_dims, phase_index, strict=True))

    def candidate_along(
        d: int, phase_of_dim: dict[int, Expr], position: Expr | None, tap: Expr
    ) -> _Candidate:
        return _candidate(view, d, phase_of_dim.get(d), position, tap)

    def left(g: Index, m: Index, k: Index) -> Value:
        group, phase_of_dim = split(g)
        candidates = [
            candidate_along(d, phase_of_dim, p, t)
            for d, (p, t) in enumerate(zip(m[1:], k[1:], strict=True))
        ]
        conditions = [c for candidate in candidates for c in (*candidate.inside, *candidate.tapped)]
        windows = tuple(candidate.window for candidate in candidates)
        value = input.at((m[0], group * group_inputs + k[0], *windows))
        return trees.masked_value(trees.all_of(*conditions), value, zero)

    def right(g: Index, n: Index, k: Index) -> Value:
        group, phase_of_dim = split(g)
        candidates = [candidate_along(d, phase_of_dim, None, t) for d, t in enumerate(k[1:])]
        value = weight.at(
            (group * group_inputs + k[0], n[0], *(candidate.tap for candidate in candidates))
        )
        return trees.masked_value(
            trees.all_of(*(c for candidate in candidates for c in candidate.tapped)),
            value,
            const(0, weight.dtype),
        )

    def result_index(g: Index, m: Index, n: Index) -> Index:
        group, phase_of_dim = split(g)
        positions = (
            p * phases[d].step + phase_of_dim[d] if d in phase_of_dim else p
            for d, p in enumerate(m[1:])
        )
        return (m[0], group * group_outputs + n[0], *positions)

    result = contract(
        b,
        problem=f"conv_transpose{len(phases)}d",
        template="convolution",
        batch=batch,
        k=(group_inputs, *view.taps),
        left=Operand((size[0], *(phase.blocks for phase in phases)), left),
        right=Operand((group_outputs,), right),
        size=computed_size,
        result_index=result_index,
        dtype=dtype,
        epilogue=plus_bias(bias),
    )
    for d, phase in enumerate(phases):
        if phase.shift or result.size[d + 2] != size[d + 2]:
            result = slice_dim(result, d + 2, sympy.Integer(phase.shift), size[d + 2])
    return result


@dataclass(frozen=True)
class _Candidate:
    """A candidate along one dimension: its window, its tap, and the conditions on each."""

    window: Expr
    tap: Expr
    inside: list[Value]
    tapped: list[Value]


def _candidate(
    view: InverseWindow, d: int, phase: Expr | None, block: Expr | None, tap: Expr
) -> _Candidate:
    """``phase`` None: the positions are not split. ``block`` None: the window is not needed."""
    step = sympy.Integer(view.stride[d])
    tap_conditions: list[Value] = []
    if phase is not None:
        touching_tap = tap * step + phase
        if Mod(view.kernel[d], step) != 0:
            tap_conditions.append(trees.less_than(touching_tap, view.kernel[d]))
        if block is None:
            return _Candidate(_ZERO, touching_tap, [], tap_conditions)
        window = block + view.padding[d] // view.stride[d] - tap
        return _Candidate(window, touching_tap, view.inside(d, window), tap_conditions)
    if block is None:
        return _Candidate(_ZERO, tap, [], [])
    distance = block + view.padding[d] - tap * view.dilation[d]
    window_conditions = []
    if step != 1:
        remainder = index_value(Mod(distance, step))
        window_conditions.append(call("eq", remainder, index_value(0)))
    window = FloorDiv(distance, step)
    return _Candidate(window, tap, [*window_conditions, *view.inside(d, window)], [])
