"""Makes the files beside it: small models quantized by torchao, exported, with what torch gives.

    pip install torchao==0.18.0
    python -m tests.unit.quantized.make

torchao is no dependency of the tests. Its licence is BSD-3-Clause; nothing of it is in the files
but the names of its operators, in graphs that torch.export made of the model below. ``NAME.pt2`` is
the graph alone (its weights are not read), ``NAME.npz`` has inputs and weights by the graph's
names, and the output as ``expected``.
"""

from __future__ import annotations

import importlib
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scheduler.frontends.pt2 import read
from scheduler.ir.graph import InputKind

HERE = Path(__file__).parent


class Model(torch.nn.Module):
    """Two linear layers with a function between them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(64, 32)
        self.second = torch.nn.Linear(32, 16)

    def forward(self, x: Any) -> Any:
        return self.second(torch.nn.functional.silu(self.first(x)))


def configurations() -> dict[str, Any]:
    """torchao's, by the names of the files."""
    q = importlib.import_module("torchao.quantization")
    return {
        "int8_weight_only": q.Int8WeightOnlyConfig(),
        "int8_dynamic_activations": q.Int8DynamicActivationInt8WeightConfig(),
        "int4_weight_only": q.IntxWeightOnlyConfig(
            weight_dtype=torch.int4, granularity=q.PerGroup(32)
        ),
        "int4_weight_int8_dynamic_activations": q.Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4
        ),
        "float8_weight_only": q.Float8WeightOnlyConfig(),
    }


def make(name: str, configuration: Any) -> None:
    """One model's files, as exported and as decomposed to the core ops."""
    model = Model().eval()
    importlib.import_module("torchao.quantization").quantize_(model, configuration)
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    program = torch.export.export(model, (x,))
    with torch.no_grad():
        expected = model(x)
    for suffix, exported in (("", program), ("_core", program.run_decompositions())):
        _write(HERE / f"{name}{suffix}", exported, x, expected)


def _write(path: Path, program: Any, x: Any, expected: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "model.pt2"
        torch.export.save(program, whole)
        with (
            zipfile.ZipFile(whole) as source,
            zipfile.ZipFile(path.with_suffix(".pt2"), "w", zipfile.ZIP_DEFLATED) as kept,
        ):
            for member in source.namelist():
                if member.endswith((".json", "version", "archive_format", "byteorder")):
                    content = source.read(member)
                    if member.endswith("model.json"):
                        content = json.dumps(_without_places(json.loads(content))).encode()
                    kept.writestr(member, content)
    values = {"expected": expected.numpy()}
    for given in read(path.with_suffix(".pt2")).inputs:
        user = given.kind is InputKind.USER
        values[given.name] = _array(x if user else _weight(program.state_dict, given.source_name))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **values)
    path.with_suffix(".npz").write_bytes(buffer.getvalue())


def _without_places(part: Any) -> Any:
    """The graph without the files and lines of the machine that made it."""
    if isinstance(part, dict):
        gone = ("stack_trace", "from_node")
        return {k: "" if k in gone else _without_places(v) for k, v in part.items()}
    return [_without_places(one) for one in part] if isinstance(part, list) else part


def _weight(state: Any, name: str) -> Any:
    """A tensor of the state by its name, inside a tensor of a class of its own too."""
    if name in state:
        return state[name]
    outer, _, attribute = name.rpartition(".")
    return getattr(_weight(state, outer), attribute)


def _array(tensor: Any) -> Any:
    tensor = tensor.detach()
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


if __name__ == "__main__":
    for each, chosen in configurations().items():
        make(each, chosen)
