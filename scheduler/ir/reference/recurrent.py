"""Reference of recurrent layers: cells are run sequentially."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.ir.numerics import sigmoid
from scheduler.ir.reference.rule import Args, Array, Rule, UnsupportedUseError

#: Maps input, state and layer to the new state, its output first.
_Cell = Callable[[Array, tuple[Array, ...], "_Layer"], tuple[Array, ...]]


class _Layer:
    """Weights of one layer in one direction."""

    def __init__(self, params: Any, has_biases: bool) -> None:
        self.input, self.hidden = params[0], params[1]
        biases: tuple[Any, Any] = tuple(params[2:4]) if has_biases else (None, None)
        self.input_bias, self.hidden_bias = biases
        rest = params[4:] if has_biases else params[2:]
        self.projection = rest[0] if rest else None

    def input_gates(self, x: Array) -> Array:
        return np.asarray(x @ self.input.T + (0.0 if self.input_bias is None else self.input_bias))

    def hidden_gates(self, h: Array) -> Array:
        bias = 0.0 if self.hidden_bias is None else self.hidden_bias
        return np.asarray(h @ self.hidden.T + bias)


def _lstm(x: Array, state: tuple[Array, ...], layer: _Layer) -> tuple[Array, ...]:
    hidden, cell = state
    gates = np.split(layer.input_gates(x) + layer.hidden_gates(hidden), 4, axis=-1)
    into, forget, out = (sigmoid(gates[k]) for k in (0, 1, 3))
    new = forget * cell + into * np.tanh(gates[2])
    result = out * np.tanh(new)
    return result if layer.projection is None else result @ layer.projection.T, new


def _gru(x: Array, state: tuple[Array, ...], layer: _Layer) -> tuple[Array, ...]:
    (hidden,) = state
    of_input = np.split(layer.input_gates(x), 3, axis=-1)
    of_hidden = np.split(layer.hidden_gates(hidden), 3, axis=-1)
    reset, update = (sigmoid(of_input[k] + of_hidden[k]) for k in (0, 1))
    candidate = np.tanh(of_input[2] + reset * of_hidden[2])
    return (candidate + update * (hidden - candidate),)


def _rnn_cell(function: Callable[[Array], Array]) -> _Cell:
    return lambda x, state, layer: (function(layer.input_gates(x) + layer.hidden_gates(state[0])),)


def _relu(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0))


_tanh: Callable[[Array], Array] = np.tanh


def _run_steps(
    steps: list[Array], state: tuple[Array, ...], layer: _Layer, cell: _Cell, reverse: bool
) -> tuple[list[Array], tuple[Array, ...]]:
    """Return each step's outputs and the last states; later steps may have fewer rows (packed)."""
    state = tuple(np.array(s) for s in state)
    result: list[Any] = [None] * len(steps)
    for t in reversed(range(len(steps))) if reverse else range(len(steps)):
        rows = len(steps[t])
        new = cell(steps[t], tuple(s[:rows] for s in state), layer)
        for old, values in zip(state, new, strict=True):
            old[:rows] = values
        result[t] = new[0]
    return result, state


def recurrent(cell: _Cell, states: int) -> Rule:
    def rule(a: Args) -> tuple[Array, ...]:
        if a["train"] and a["dropout"] and a["num_layers"] > 1:
            raise UnsupportedUseError("dropout is not supported: it is random")
        if "data" in a:
            ends = np.cumsum(a["batch_sizes"])
            steps = np.split(a["data"], ends[:-1])
        else:
            steps = list(np.moveaxis(a["input"], 1, 0) if a["batch_first"] else a["input"])
        initial = a["hx"] if states > 1 else (a["hx"],)
        directions = 2 if a["bidirectional"] else 1
        params_per_layer = len(a["params"]) // (a["num_layers"] * directions)
        last: list[tuple[Array, ...]] = []
        for number in range(a["num_layers"]):
            outputs = []
            for direction in range(directions):
                index = number * directions + direction
                layer = _Layer(
                    a["params"][index * params_per_layer : (index + 1) * params_per_layer],
                    a["has_biases"],
                )
                first = tuple(s[index] for s in initial)
                result, state = _run_steps(steps, first, layer, cell, bool(direction))
                outputs.append(result)
                last.append(state)
            steps = [np.concatenate(parts, axis=-1) for parts in zip(*outputs, strict=True)]
        out = np.concatenate(steps) if "data" in a else np.stack(steps)
        out = np.moveaxis(out, 0, 1) if a.get("batch_first") else out
        return out, *(np.stack([s[k] for s in last]) for k in range(states))

    return rule


lstm, gru = recurrent(_lstm, 2), recurrent(_gru, 1)
rnn_tanh, rnn_relu = recurrent(_rnn_cell(_tanh), 1), recurrent(_rnn_cell(_relu), 1)


def mkldnn_rnn_layer(a: Args) -> tuple[Any, ...]:
    if a["mode"] != 2 or a["batch_sizes"] or a["num_layers"] != 1 or a["bidirectional"]:
        raise UnsupportedUseError(
            "a oneDNN layer other than an LSTM of one layer and direction is not supported"
        )
    layer = _Layer([a[f"weight{k}"] for k in range(4)], a["has_biases"])
    shape = a["hx_"].shape[-2:]
    first = (a["hx_"].reshape(shape), a["cx_"].reshape(shape))
    result, last = _run_steps(list(a["input"]), first, layer, _lstm, bool(a["reverse"]))
    ends = (s.reshape(a["hx_"].shape) for s in last)
    return np.stack(result), *ends, np.zeros(0, np.uint8)


def _cell_rule(cell: _Cell) -> Rule:
    def rule(a: Args) -> Any:
        layer = _Layer((a["w_ih"], a["w_hh"], a["b_ih"], a["b_hh"]), True)
        state = a["hx"] if isinstance(a["hx"], tuple) else (a["hx"],)
        result = cell(a["input"], state, layer)
        return result if len(result) > 1 else result[0]

    return rule


lstm_cell, gru_cell = _cell_rule(_lstm), _cell_rule(_gru)
rnn_tanh_cell, rnn_relu_cell = _cell_rule(_rnn_cell(_tanh)), _cell_rule(_rnn_cell(_relu))
