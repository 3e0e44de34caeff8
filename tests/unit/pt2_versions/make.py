"""Writes the files of this folder: two small models, as the torch that runs this exports them.

``python make.py FOLDER`` with torch 2.4 or later (``pip install torch==2.4.1 numpy``) writes
``<torch version>_<model>.pt2`` without the weights, which are a formula of their names.
"""

from __future__ import annotations

import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch
from torch import nn

SIZE, HEADS, VOCABULARY = 8, 2, 11


class Block(nn.Module):
    """A decoder's layer with a symbolic batch and length, counting its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, SIZE)
        self.places = nn.Embedding(16, SIZE)
        self.norm = nn.LayerNorm(SIZE)
        self.qkv = nn.Linear(SIZE, 3 * SIZE)
        self.out = nn.Linear(SIZE, VOCABULARY, bias=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, ids: Any, mask: Any, options: dict[str, Any]) -> Any:
        self.calls.add_(1)
        batch, length = ids.shape
        x = self.tokens(ids) + self.places(torch.arange(length))
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (t.view(batch, length, HEADS, -1).transpose(1, 2) for t in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        y = y.transpose(1, 2).reshape(batch, length, SIZE)
        with torch.no_grad():
            scale = options["scale"].softmax(-1)
        x = x + y * scale
        return {"logits": self.out(x)[:, -1], "all": [x, x.mean((1, 2)) * (length + 1)]}


class Pictures(nn.Module):
    """A convolution with batch norm, pooling and a head, with fixed sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        y = nn.functional.max_pool2d(nn.functional.relu(self.norm(self.conv(x))), 3, 2, 1)
        y = nn.functional.adaptive_avg_pool2d(y, (1, 1)).flatten(1)
        return nn.functional.log_softmax(self.head(y), dim=1)


def filled(name: str, tensor: Any) -> Any:
    """Values that depend on a name and a shape alone, the same in every version."""
    if not tensor.is_floating_point():
        return torch.zeros_like(tensor)
    place = torch.arange(tensor.numel(), dtype=torch.float64) + zlib.crc32(name.encode()) % 97
    return ((place * 0.7).sin() + (1.5 if "var" in name else 0)).reshape(tensor.shape).float()


def block() -> tuple[nn.Module, tuple[Any, ...], Any]:
    """The model, its arguments and its dynamic sizes."""
    ids = (torch.arange(12) * 5 % VOCABULARY).reshape(2, 6)
    mask = torch.arange(12).reshape(2, 6) % 5 != 4
    args = (ids, mask, {"scale": filled("scale", torch.empty(SIZE))})
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", max=16)
    sizes = ({0: batch, 1: length}, {0: batch, 1: length}, {"scale": None})
    return _with_weights(Block()), args, sizes


def pictures() -> tuple[nn.Module, tuple[Any, ...], Any]:
    """The model, its argument; no size is dynamic."""
    return _with_weights(Pictures()), (filled("picture", torch.empty(2, 3, 16, 16)),), None


def _with_weights(model: nn.Module) -> nn.Module:
    model.load_state_dict({name: filled(name, value) for name, value in model.state_dict().items()})
    return model.eval()


MODELS = {"block": (block, False), "pictures": (pictures, False), "pictures_core": (pictures, True)}


def main(folder: Path) -> None:
    """Write every model's file as this torch has it."""
    for name, (make, core) in MODELS.items():
        model, args, sizes = make()
        program = torch.export.export(model, args, dynamic_shapes=sizes)
        if core:
            program = program.run_decompositions()
        path = folder / f"{torch.__version__.split('+')[0]}_{name}.pt2"
        torch.export.save(program, path)
        _without_weights(path)


def _without_weights(path: Path) -> None:
    """Leave the model's description alone in the archive."""
    with zipfile.ZipFile(path) as archive:
        kept = {
            info.filename: archive.read(info)
            for info in archive.infolist()
            if info.filename.endswith(("model.json", "serialized_exported_program.json", "version"))
        }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in kept.items():
            archive.writestr(zipfile.ZipInfo(member), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
