"""Rows of recurrent layers and their cells."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.ir.ops import Op, op
from scheduler.ir.reference import recurrent as ref
from scheduler.lowering import recurrent as rules

_INPUT = "input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first"
_DATA = "data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional"
_CELL = "input, hx, w_ih, w_hh, b_ih=None, b_hh=None"


def _rows() -> Iterator[Op]:
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        yield op(
            f"aten.{name}",
            f"input: {_INPUT}; data: {_DATA}",
            getattr(rules, name),
            getattr(ref, name),
        )
        cell = f"{name}_cell"
        yield op(f"aten.{cell}", _CELL, getattr(rules, cell), getattr(ref, cell))
    yield op(
        "aten.mkldnn_rnn_layer",
        "input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, "
        "hidden_size, num_layers, has_biases, bidirectional, batch_first, train",
        rules.mkldnn_rnn_layer,
        ref.mkldnn_rnn_layer,
    )


ROWS = tuple(_rows())
