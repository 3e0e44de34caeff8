"""The small models that files are mutated from: ``python -m tests.attacks.exported`` writes them.

Each is exported with torch and stripped of its weights; together they hold every kind of node,
argument and size that files have.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

GRAPHS = Path(__file__).parent / "graphs"


def main() -> None:
    """Write every model's file."""
    import torch
    from torch import nn
    from torch.nn import functional

    dim = torch.export.Dim

    class Mlp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 4)

        def forward(self, x: Any) -> Any:
            return self.down(functional.gelu(self.up(x))) * 0.5

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(16, 48)
            self.norm = nn.LayerNorm(16)

        def forward(self, x: Any) -> Any:
            b, s, _ = x.shape
            q, k, v = self.qkv(self.norm(x)).view(b, s, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + y.transpose(1, 2).reshape(b, s, 16)

    class Convolution(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, padding=1, stride=2)
            self.norm = nn.BatchNorm2d(4)

        def forward(self, x: Any) -> Any:
            return functional.avg_pool2d(
                functional.max_pool2d(functional.relu(self.norm(self.conv(x))), 2), 2
            ).flatten(1)

    class Views(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            a = torch.cat([x.flip(0), x.roll(1, 1)], dim=1).reshape(-1, 4)
            b = functional.pad(y[:, 1:3], (1, 2)).t().contiguous().unsqueeze(0).expand(2, -1, -1)
            c, d = torch.stack([x, x + 1]).repeat(1, 2, 1).split([3, 3], dim=2)
            z = x.clone()
            z[:, 0].add_(1)
            return a, b, c * d, z

    class Reductions(nn.Module):
        def forward(self, x: Any, i: Any) -> Any:
            s = torch.softmax(x, -1)
            v = torch.var(x, 0) + x.mean(0) + x.amax(0)
            picked = torch.where(x > 0, x, 0.0)[i]
            at = x.gather(1, i.unsqueeze(1) % 6)
            return s, v, x.cumsum(1), x.argmax(1), picked, at, torch.arange(x.shape[0]) + i.sum()

    class Embedded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(11, 8)
            self.register_buffer("mask", torch.ones(8, 8).tril().bool())

        def forward(self, tokens: Any) -> Any:
            e = self.table(tokens)
            w = (e @ e.transpose(-1, -2)).masked_fill(
                ~self.mask[: e.shape[1], : e.shape[1]], float("-inf")
            )
            return (torch.bmm(w.softmax(-1), e).to(torch.float16), tokens.shape[1])

    batch, rows = dim("batch", max=64), dim("rows", min=2, max=512)
    _write("mlp", Mlp(), (torch.randn(3, 8),), ({0: batch},))
    _write("attention", Attention(), (torch.randn(2, 5, 16),), ({0: batch, 1: rows},))
    _write("convolution", Convolution().eval(), (torch.randn(2, 3, 16, 16),), None)
    _write("views", Views(), (torch.randn(5, 6), torch.randn(4, 7)), ({0: rows}, None))
    indices = torch.tensor([0, 2, 1, 3])
    _write("reductions", Reductions(), (torch.randn(4, 6), indices), ({0: rows}, {0: rows}))
    tokens = torch.randint(0, 11, (2, 5))
    length = dim("length", min=2, max=7)
    _write("embedded", Embedded(), (tokens,), ({1: length},))


def _write(name: str, module: Any, args: tuple[Any, ...], shapes: Any) -> None:
    import torch

    program = torch.export.export(module.eval(), args, dynamic_shapes=shapes)
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.pt2"
        torch.export.save(program, path)
        with zipfile.ZipFile(path) as archive:
            member = f"{name}/models/model.json"
            document = json.loads(archive.read(member))
    for node in document["graph_module"]["graph"]["nodes"]:
        node["metadata"].pop("stack_trace", None)  # paths of the machine that wrote the file
    document.pop("verifiers", None)  # unread
    text = json.dumps(document, separators=(",", ":"))
    with zipfile.ZipFile(GRAPHS / f"{name}.pt2", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(member), text, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
