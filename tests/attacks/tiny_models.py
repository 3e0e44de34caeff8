"""Small model files, each different from the others, without torch: a linear layer and what
follows it."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from typing import Any

_AFTER = ("relu", "sigmoid", "tanh", "silu", "exp", "abs", "neg", "cos", "sin", "gelu")


def tiny_model(number: int) -> bytes:
    """The ``number``-th model: its name, its widths and its functions follow from it."""
    first, second = _AFTER[number % len(_AFTER)], _AFTER[number // len(_AFTER) % len(_AFTER)]
    inner, outer = 4 + number % 7, 3 + number % 5
    made = _meta(2 + number % 3, outer)
    nodes = [
        _node("linear", {"input": "x", "weight": "p_w"}, f"linear_{number}"),
        _node(first, {"self": f"linear_{number}"}, "first"),
        _node(second, {"self": "first"}, "second"),
    ]
    tensors = {
        "p_w": _meta(outer, inner),
        "x": _meta(2 + number % 3, inner),
        **{name: copy.deepcopy(made) for name in (f"linear_{number}", "first", "second")},
    }
    signature = {
        "input_specs": [
            {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
            {"user_input": {"arg": _tensor("x")}},
        ],
        "output_specs": [{"user_output": {"arg": _tensor("second")}}],
    }
    graph = {
        "inputs": [_tensor("p_w"), _tensor("x")],
        "outputs": [_tensor("second")],
        "nodes": nodes,
        "tensor_values": tensors,
        "sym_int_values": {},
    }
    document = {
        "schema_version": {"major": 8, "minor": 20},
        "torch_version": "2.13.0",
        "range_constraints": {},
        "graph_module": {"signature": signature, "graph": graph},
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"tiny{number}/models/model.json", json.dumps(document))
    return file.getvalue()


def _tensor(name: str) -> dict[str, Any]:
    return {"as_tensor": {"name": name}}


def _node(op: str, inputs: dict[str, str], name: str) -> dict[str, Any]:
    arguments = [{"name": key, "arg": _tensor(value), "kind": 1} for key, value in inputs.items()]
    return {
        "target": f"torch.ops.aten.{op}.default",
        "inputs": arguments,
        "outputs": [_tensor(name)],
        "metadata": {},
        "name": name,
    }


def _meta(rows: int, columns: int) -> dict[str, Any]:
    return {
        "dtype": 7,
        "sizes": [{"as_int": rows}, {"as_int": columns}],
        "strides": [{"as_int": columns}, {"as_int": 1}],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }
