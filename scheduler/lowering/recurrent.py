# ruff: noqa: ARG001 - rules have the signature of their op
"""Recurrent layers as cells: the products of all inputs at once, then one product and one cell per
step. A few steps are unrolled; many, or a number that is not fixed, become a loop
(``loop_builder.py``). All steps share their kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.values import Value, call, const, upcast
from scheduler.limits import MAX_RECURRENT_STEPS
from scheduler.lowering import trees
from scheduler.lowering.activations import relu
from scheduler.lowering.builder import Builder
from scheduler.lowering.concat import concatenate
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.loop_builder import Loop, row_major_copy
from scheduler.lowering.matmul import product
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast, reshape, transpose

_ONE = sympy.Integer(1)
#: A step maps input products [T, N, G] at a step number, the state and a layer's weights to the new
#: state. The first tensor of a state is the output.
_State = tuple[Tensor, ...]
_Step = Callable[[Builder, Tensor, int, _State, "_Weights"], _State]


class _Weights:
    """The weights of one layer in one direction."""

    def __init__(self, params: Sequence[Tensor], has_biases: bool) -> None:
        self.input, self.hidden = params[:2]
        optional = list(params[2:])
        self.biases: tuple[Tensor | None, Tensor | None] = (None, None)
        if has_biases:
            self.biases = (optional.pop(0), optional.pop(0))
        self.projection = optional[0] if optional else None


def _upcast_element(tensor: Tensor, index: Index, dtype: DType) -> Value:
    return upcast(tensor.at(index), dtype)


def _linear(
    b: Builder,
    x: Tensor,
    weight: Tensor,
    dtype: DType,
    *addend_readers: Callable[[Index], Value | None],
) -> Tensor:
    """``x @ weight.T`` plus ``addend_readers``."""
    compute_dtype = dtype.compute_dtype

    def epilogue(acc: Value, index: Index) -> Value:
        for addend_reader in addend_readers:
            addend = addend_reader(index)
            acc = acc if addend is None else acc + upcast(addend, compute_dtype)
        return acc

    size = (*x.size[:-1], weight.size[0])
    return product(b, "recurrent", x, transpose(weight, 0, 1), size, dtype, epilogue)


def _bias(bias: Tensor | None) -> Callable[[Index], Value | None]:
    return lambda index: None if bias is None else bias.at(index[-1:])


def _lstm_step(b: Builder, inputs: Tensor, t: int, state: _State, weights: _Weights) -> _State:
    hidden, cell = state
    dtype, width = inputs.dtype, cell.size[-1]
    step_inputs = lambda i: inputs.at((sympy.Integer(t), *i))  # noqa: E731
    gates = _linear(b, hidden, weights.hidden, dtype, step_inputs)

    def gate(i: Index, gate_number: int) -> Value:
        return _upcast_element(gates, (i[0], i[1] + gate_number * width), dtype)

    def new_cell(i: Index) -> Value:
        remembered = call("sigmoid", gate(i, 1)) * _upcast_element(cell, i, dtype)
        update = call("sigmoid", gate(i, 0)) * call("tanh", gate(i, 2))
        return remembered + update

    cell_state = b.pointwise(cell.size, cell.dtype, new_cell)

    def new_hidden(i: Index) -> Value:
        return call("sigmoid", gate(i, 3)) * call("tanh", _upcast_element(cell_state, i, dtype))

    output = b.pointwise(cell.size, hidden.dtype, new_hidden)
    if weights.projection is not None:
        output = _linear(b, output, weights.projection, hidden.dtype)
    return output, cell_state


def _gru_step(b: Builder, inputs: Tensor, t: int, state: _State, weights: _Weights) -> _State:
    (hidden,) = state
    dtype, width = inputs.dtype, hidden.size[-1]
    gates = _linear(b, hidden, weights.hidden, dtype, _bias(weights.biases[1]))

    def pair(i: Index, gate_number: int) -> tuple[Value, Value]:
        gate_index = (i[0], i[1] + gate_number * width)
        return _upcast_element(inputs, (sympy.Integer(t), *gate_index), dtype), _upcast_element(
            gates, gate_index, dtype
        )

    def new_hidden(i: Index) -> Value:
        reset = call("sigmoid", call("add", *pair(i, 0)))
        update = call("sigmoid", call("add", *pair(i, 1)))
        x, h = pair(i, 2)
        candidate = call("tanh", x + h * reset)
        difference = _upcast_element(hidden, i, dtype) - candidate
        return difference * update + candidate

    return (b.pointwise(hidden.size, hidden.dtype, new_hidden),)


def _rnn_step(function: Callable[[Value], Value]) -> _Step:
    def step(b: Builder, inputs: Tensor, t: int, state: _State, weights: _Weights) -> _State:
        (hidden,) = state
        dtype = inputs.dtype
        step_inputs = lambda i: inputs.at((sympy.Integer(t), *i))  # noqa: E731
        sums = _linear(b, hidden, weights.hidden, dtype, step_inputs)
        result = b.pointwise(
            hidden.size, hidden.dtype, lambda i: function(_upcast_element(sums, i, dtype))
        )
        return (result,)

    return step


def _tanh(x: Value) -> Value:
    return call("tanh", x)


def _inputs(b: Builder, x: Tensor, weights: _Weights, adds_both_biases: bool) -> Tensor:
    """Products of the inputs of all steps [T, N, G], plus the first bias or both."""
    added = [_bias(bias) for bias in (weights.biases if adds_both_biases else weights.biases[:1])]
    return _linear(b, x, weights.input, x.dtype.compute_dtype, *added)


def _stacked(steps: Sequence[Tensor]) -> Tensor:
    """[T, N, H] from the steps; the step is selected by binary search."""
    first = steps[0]

    def select_step(index: Index, low: int, high: int) -> Value:
        if high - low == 1:
            return steps[low].at(index[1:])
        middle = (low + high) // 2
        is_in_lower_half = trees.less_than(index[0], sympy.Integer(middle))
        return trees.masked_value(
            is_in_lower_half, select_step(index, low, middle), select_step(index, middle, high)
        )

    size = (sympy.Integer(len(steps)), *first.size)
    return Tensor(size, first.dtype, lambda i: select_step(i, 0, len(steps)))


def _run_loop(
    b: Builder, inputs: Tensor, state: _State, weights: _Weights, step: _Step, reverse: bool
) -> tuple[Tensor, _State]:
    """``_direction`` as a loop over the steps."""
    ordered_inputs = _reverse_steps(inputs) if reverse else inputs
    loop = Loop(b, [row_major_copy(b, x) for x in state], [ordered_inputs], steps=inputs.size[0])
    (step_input,) = loop.sliced
    row = step_input.view((_ONE, *step_input.size), lambda i: i[1:])
    result = step(b, row, 0, loop.carried, weights)
    loop_result = loop.end([loop.copy_unshared(x) for x in result], [loop.copy_unshared(result[0])])
    (output,) = loop_result.stacked
    return _reverse_steps(output) if reverse else output, loop_result.carried


def _reverse_steps(x: Tensor) -> Tensor:
    """The steps in reverse order."""
    return x.view(x.size, lambda i: (x.size[0] - 1 - i[0], *i[1:]))


def _direction(
    b: Builder,
    x: Tensor,
    state: _State,
    weights: _Weights,
    step: _Step,
    adds_both_biases: bool,
    reverse: bool,
    unrolled: bool,
) -> tuple[Tensor, _State]:
    inputs = _inputs(b, x, weights, adds_both_biases)
    if not unrolled:
        return _run_loop(b, inputs, state, weights, step, reverse)
    results: list[Tensor] = []
    count = int(x.size[0])
    for t in reversed(range(count)) if reverse else range(count):
        state = step(b, inputs, t, state, weights)
        results.append(state[0])
    return _stacked(results[::-1] if reverse else results), state


def _layers(
    b: Builder,
    x: Tensor,
    states: Sequence[Tensor],
    params: tuple[Tensor, ...],
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    step: _Step,
    adds_both_biases: bool,
) -> tuple[Tensor, list[_State]]:
    """The last layer's output [T, N, H * directions], and the final states of all layers."""
    directions = 2 if bidirectional else 1
    unrolled = _should_unroll(x, num_layers * directions)
    params_per_direction = len(params) // (num_layers * directions)
    weights: Iterator[_Weights] = (
        _Weights(params[k : k + params_per_direction], has_biases)
        for k in range(0, len(params), params_per_direction)
    )
    final_states: list[_State] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            initial = tuple(_row(state, layer * directions + direction) for state in states)
            direction_result = _direction(
                b, x, initial, next(weights), step, adds_both_biases, bool(direction), unrolled
            )
            result, state = direction_result
            outputs.append(result)
            final_states.append(state)
        layer_output = outputs[0] if directions == 1 else concatenate(outputs, 2, x.dtype)
        x = b.pointwise(layer_output.size, x.dtype, layer_output.at)
    return x, final_states


def _should_unroll(x: Tensor, layers: int) -> bool:
    """Whether the steps of this many layers and directions are few enough to unroll."""
    steps = x.size[0]
    if not x.dtype.is_float:
        raise Unsupported("a recurrent layer of integers is not supported")
    if steps == 0:
        raise Unsupported("a recurrent layer of no steps is not supported")
    return bool(steps.is_Integer) and int(steps) * layers <= MAX_RECURRENT_STEPS


def _row(tensor: Tensor, row: int) -> Tensor:
    return tensor.view(tensor.size[1:], lambda i: (sympy.Integer(row), *i))


def _layer_rule(
    step: _Step, adds_both_biases: bool, state_count: int
) -> Callable[..., tuple[Tensor, ...]]:
    def rule(
        b: Builder,
        hx: Any,
        params: tuple[Tensor, ...],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        input: Tensor | None = None,
        batch_first: bool = False,
        data: Tensor | None = None,
        batch_sizes: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        if input is None:
            raise Unsupported(
                "a packed sequence is not supported: its number of steps depends on data"
            )
        if train and dropout and num_layers > 1:
            raise Unsupported("dropout in training is not supported: it needs random numbers")
        initial_states = hx if state_count > 1 else (hx,)
        x = transpose(input, 0, 1) if batch_first else input
        layer_options = (bool(has_biases), int(num_layers), bool(bidirectional))
        result, final_states = _layers(
            b, x, initial_states, params, *layer_options, step, adds_both_biases
        )
        output = transpose(result, 0, 1) if batch_first else result
        metas = [b.output_meta(1 + k) for k in range(state_count)]
        stacked_states = [
            _stacked([state[k] for state in final_states]) for k in range(state_count)
        ]
        stored = (
            b.pointwise(meta.size, meta.dtype, stacked.at)
            for meta, stacked in zip(metas, stacked_states, strict=True)
        )
        return output, *stored

    return rule


lstm = _layer_rule(_lstm_step, adds_both_biases=True, state_count=2)
gru = _layer_rule(_gru_step, adds_both_biases=False, state_count=1)
rnn_tanh = _layer_rule(_rnn_step(_tanh), adds_both_biases=True, state_count=1)
rnn_relu = _layer_rule(_rnn_step(relu), adds_both_biases=True, state_count=1)


def mkldnn_rnn_layer(
    b: Builder,
    input: Tensor,
    weight0: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    weight3: Tensor,
    hx_: Tensor,
    cx_: Tensor,
    reverse: bool,
    batch_sizes: tuple[int, ...],
    mode: int,
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
    **_: Any,
) -> tuple[Tensor | None, ...]:
    """One LSTM layer in one direction, as torch decomposes it on a CPU."""
    if mode != 2 or batch_sizes or num_layers != 1 or bidirectional or batch_first:
        raise Unsupported(
            "a oneDNN layer other than an LSTM of one layer and direction is not supported"
        )
    unrolled = _should_unroll(input, 1)
    weights = _Weights((weight0, weight1, weight2, weight3), bool(has_biases))
    shape = hx_.size[-2:]
    state = tuple(reshape(b, s, shape) for s in (hx_, cx_))
    result, end_state = _direction(
        b, input, state, weights, _lstm_step, True, bool(reverse), unrolled
    )
    meta = b.output_meta()
    output = b.pointwise(meta.size, meta.dtype, result.at)
    final_states = (reshape(b, s, b.output_meta(1 + k).size) for k, s in enumerate(end_state))
    assert b.node is not None
    if b.node.outputs[3] not in b.graph.tensors:
        return output, *final_states, None
    meta = b.output_meta(3)  # the workspace for the gradient, which is empty
    return output, *final_states, Tensor(meta.size, meta.dtype, lambda _: const(0, meta.dtype))


def _cell(step: _Step, adds_both_biases: bool) -> Callable[..., Any]:
    def rule(
        b: Builder,
        input: Tensor,
        hx: Any,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Any:
        weights = _Weights((w_ih, w_hh), has_biases=False)
        weights.biases = (b_ih, b_hh)
        states = hx if isinstance(hx, tuple) else (hx,)
        meta = b.output_meta()
        state = tuple(_batched(s) for s in states)
        x = _batched(input)
        inputs = _inputs(b, x.view((_ONE, *x.size), lambda i: i[1:]), weights, adds_both_biases)
        full_state = tuple(broadcast(s, (x.size[0], s.size[-1])) for s in state)
        result = tuple(
            reshape(b, tensor, meta.size) for tensor in step(b, inputs, 0, full_state, weights)
        )
        return result if len(result) > 1 else result[0]

    return rule


def _batched(tensor: Tensor) -> Tensor:
    return tensor if tensor.rank > 1 else tensor.view((_ONE, *tensor.size), lambda i: i[1:])


lstm_cell = _cell(_lstm_step, adds_both_biases=True)
gru_cell = _cell(_gru_step, adds_both_biases=False)
rnn_tanh_cell = _cell(_rnn_step(_tanh), adds_both_biases=True)
rnn_relu_cell = _cell(_rnn_step(relu), adds_both_biases=True)
