"""Small torch.export files, as ``.pt2`` has them: one for each kind of kernel, symbols in some.

Documents are plain JSON, to be changed at will before they are written.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
Sizes: TypeAlias = tuple["int | str", ...]

F32, I64 = 7, 5
_HINTS = {"s0": 6, "s1": 9}


def write(path: Path, document: Any) -> Path:
    """The document in a file that is read as torch writes it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/models/model.json", json.dumps(document))
    return path


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """The document with other names wherever these stand alone, as keys or as values."""
    if isinstance(value, dict):
        return {names.get(key, key): renamed(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, names) for part in value]
    return names.get(value, value) if isinstance(value, str) else value


def with_symbols(document: Json, names: Mapping[str, str]) -> Any:
    """The document with other names of its symbols."""
    text = json.dumps(renamed(document, names))
    for old, new in names.items():
        quoted = json.dumps(repr(new))[1:-1]
        text = text.replace(f"Symbol('{old}'", f"Symbol({quoted}")
    return json.loads(text)


class Model:
    """A document that grows node by node; sizes are numbers or symbols' names."""

    def __init__(self, **inputs: Sizes) -> None:
        self.sizes = dict(inputs)
        self.inputs = list(inputs)
        self.nodes: list[Json] = []

    def node(self, op: str, sizes: Sizes, *args: Any, **kwargs: Any) -> str:
        """Append a call of ``op``; text among the arguments is a value's name."""
        name = f"{op.partition('.')[0]}_{len(self.nodes)}"
        inputs = [{"name": f"a{i}", "arg": _argument(arg), "kind": 1} for i, arg in enumerate(args)]
        inputs += [{"name": key, "arg": _argument(arg), "kind": 2} for key, arg in kwargs.items()]
        labels = _LABELS[op]
        for entry, label in zip(inputs, labels, strict=False):
            if entry["kind"] == 1:
                entry["name"] = label
        line = 7 + len(self.nodes)
        metadata = {
            "stack_trace": f'  File "model.py", line {line}, in forward\n    y = x\n',
            "nn_module_stack": "L__self__,,m.Model;L__self___fc,fc,torch.nn.Linear",
            "torch_fn": f"{name}_1;builtin.{name}",
        }
        self.nodes.append(
            {
                "target": f"torch.ops.aten.{op}",
                "inputs": inputs,
                "outputs": [{"as_tensor": {"name": name}}],
                "metadata": metadata,
                "name": name,
            }
        )
        self.sizes[name] = sizes
        return name

    def document(self, *outputs: str) -> Json:
        """The whole file: the first input is the user's, the others are parameters."""
        values = {name: _meta(sizes) for name, sizes in self.sizes.items()}
        used = {size for sizes in self.sizes.values() for size in sizes if isinstance(size, str)}
        first, *others = self.inputs
        specs: list[Json] = [{"user_input": {"arg": {"as_tensor": {"name": first}}}}]
        specs += [
            {"parameter": {"arg": {"name": name}, "parameter_name": f"layer.{name}"}}
            for name in others
        ]
        tensors = [{"as_tensor": {"name": name}} for name in self.inputs]
        ends = [{"as_tensor": {"name": name}} for name in outputs]
        return {
            "schema_version": {"major": 8, "minor": 20},
            "torch_version": "2.13.0",
            "range_constraints": {name: {"min_val": 2, "max_val": 64} for name in sorted(used)},
            "graph_module": {
                "signature": {
                    "input_specs": specs,
                    "output_specs": [{"user_output": {"arg": end}} for end in ends],
                },
                "graph": {
                    "inputs": tensors,
                    "outputs": ends,
                    "nodes": self.nodes,
                    "tensor_values": values,
                    "sym_int_values": {},
                },
            },
        }


_LABELS: Mapping[str, tuple[str, ...]] = {
    "linear.default": ("input", "weight", "bias"),
    "relu.default": ("self",),
    "add.Tensor": ("self", "other", "alpha"),
    "mul.Tensor": ("self", "other"),
    "gelu.default": ("self",),
    "softmax.int": ("self", "dim"),
    "sum.dim_IntList": ("self", "dim"),
    "cumsum.default": ("self", "dim"),
    "conv2d.default": ("input", "weight", "bias", "stride", "padding"),
    "scaled_dot_product_attention.default": ("query", "key", "value"),
}


def _argument(value: Any) -> Json:
    if isinstance(value, str):
        return {"as_tensor": {"name": value}}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": value}
    if isinstance(value, list):
        return {"as_ints": value}
    return {"as_none": True}


def _size(parts: tuple[int | str, ...]) -> Json:
    """The product of numbers and symbols."""
    number, names = 1, [part for part in parts if isinstance(part, str)]
    for part in parts:
        number *= part if isinstance(part, int) else 1
    if not names:
        return {"as_int": number}
    texts = [f"Symbol('{name}', positive=True, integer=True)" for name in names]
    hint = number
    for name in names:
        hint *= _HINTS[name]
    factors = texts if number == 1 else [f"Integer({number})", *texts]
    text = factors[0] if len(factors) == 1 else f"Mul({', '.join(factors)})"
    return {"as_expr": {"expr_str": text, "hint": {"as_int": hint}}}


def _meta(sizes: Sizes) -> Json:
    return {
        "dtype": F32,
        "sizes": [_size((size,)) for size in sizes],
        "strides": [_size(sizes[place + 1 :]) for place in range(len(sizes))],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def gemm() -> Json:
    """relu(linear(x[s0, 16], w[24, 16], b[24]))."""
    model = Model(x=("s0", 16), w=(24, 16), b=(24,))
    product = model.node("linear.default", ("s0", 24), "x", "w", "b")
    return model.document(model.node("relu.default", ("s0", 24), product))


def pointwise() -> Json:
    """gelu(x + y) and (x + y) * x over two symbols."""
    sizes: Sizes = ("s0", "s1", 8)
    model = Model(x=sizes, y=sizes)
    total = model.node("add.Tensor", sizes, "x", "y")
    first = model.node("gelu.default", sizes, total)
    return model.document(first, model.node("mul.Tensor", sizes, total, "x"))


def softmax() -> Json:
    """sum(softmax(x[s0, s1], -1), 0)."""
    model = Model(x=("s0", "s1"))
    soft = model.node("softmax.int", ("s0", "s1"), "x", -1)
    return model.document(model.node("sum.dim_IntList", ("s1",), soft, [0]))


def scan() -> Json:
    """cumsum(x[s0, 40], 1)."""
    model = Model(x=("s0", 40))
    return model.document(model.node("cumsum.default", ("s0", 40), "x", 1))


def convolution() -> Json:
    """relu(conv2d(x[2, 3, 12, 12], w[8, 3, 3, 3]))."""
    model = Model(x=(2, 3, 12, 12), w=(8, 3, 3, 3), b=(8,))
    made = model.node("conv2d.default", (2, 8, 12, 12), "x", "w", "b", [1, 1], [1, 1])
    return model.document(model.node("relu.default", (2, 8, 12, 12), made))


def attention() -> Json:
    """Attention of q[2, 4, s0, 32], k and v[2, 4, s1, 32], then a sum with q."""
    query: Sizes = (2, 4, "s0", 32)
    model = Model(q=query, k=(2, 4, "s1", 32), v=(2, 4, "s1", 32))
    made = model.node("scaled_dot_product_attention.default", query, "q", "k", "v")
    return model.document(model.node("add.Tensor", query, made, "q"))


MODELS: Mapping[str, Callable[[], Json]] = {
    made.__name__: made for made in (gemm, pointwise, softmax, scan, convolution, attention)
}
