"""A sample model as torch loads it: the file of the package with weights put in, on the GPU."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.export.passes import move_to_device_pass

# torch.export's codes of the dtypes that the samples' weights have (torch/_export/serde/schema.py).
_ITEM_BYTES = {5: 8, 6: 2, 7: 4, 8: 8, 12: 1, 13: 2}
_STARTS = {"weights": "weight_", "constants": "tensor_"}


def program_of(file: Path, inputs: tuple[torch.Tensor, ...], device: str) -> Any:
    """``torch.export.load`` of a sample, its weights drawn as GPT-2's are before training."""
    program = torch.export.load(with_weights(file, inputs))
    program = move_to_device_pass(program, device)
    with torch.no_grad():
        for name, value in program.state_dict.items():
            if not value.is_floating_point():
                continue
            around = 1.0 if value.ndim == 1 and name.endswith(("weight", "var")) else 0.0
            value.normal_(around, 0.02)
    return program


def with_weights(file: Path, inputs: tuple[torch.Tensor, ...]) -> io.BytesIO:
    """The file as it was before its weights were taken out, all of them 0."""
    made = io.BytesIO()
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as to:
        root = source.namelist()[0].partition("/")[0]
        for name in source.namelist():
            kind = next((one for one in _STARTS if name.endswith(f"_{one}_config.json")), None)
            if kind is None:
                to.writestr(name, source.read(name))
                continue
            config = json.loads(source.read(name))
            for place, entry in enumerate(config["config"].values()):
                # Removed weights share a name, since they shared storage: none.
                entry["path_name"] = f"{_STARTS[kind]}{place}"
                entry["tensor_meta"]["device"] = {"type": "cpu", "index": None}
                to.writestr(f"{root}/data/{kind}/{entry['path_name']}", bytes(_nbytes(entry)))
            to.writestr(name, json.dumps(config))
        example = io.BytesIO()
        torch.save((tuple(one.cpu() for one in inputs), {}), example)
        to.writestr(f"{root}/data/sample_inputs/model.pt", example.getvalue())
    made.seek(0)
    return made


def _nbytes(entry: Mapping[str, Any]) -> int:
    meta = entry["tensor_meta"]
    count = _ITEM_BYTES[meta["dtype"]]
    for size in meta["sizes"]:
        count *= size["as_int"]
    return count
