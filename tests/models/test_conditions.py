"""``verify`` of models whose results are mostly rounding errors, or leave their type's range."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.build.cache import CodeCache
from tests.models.test_command_line import scheduler


@pytest.mark.long
def test_right_kernels_pass_where_torch_agrees(cache: CodeCache, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, h: Any, i: Any, j: Any) -> Any:
            running = x.cumsum(-1)
            return (
                (x - x.mean(-1, keepdim=True)).sum(-1),  # all of it cancels
                torch.nn.functional.layer_norm(x.view(-1, 2), (2,)),  # rows of no variance
                running[:, 1:] - running[:, :-1] - x[:, 1:],
                torch.exp(h * 8),
                (h * 300 * h * 300).mean(-1),
                i // j,
                i % (j * j),
            )

    args = (
        torch.randn(64, 512),
        torch.randn(64, 256).half(),
        torch.randint(0, 50, (64,)),
        torch.randint(1, 9, (64,)),
    )
    torch.export.save(torch.export.export(Model(), args), tmp_path / "model.pt2")
    status, _, errors = scheduler(
        *("compile", str(tmp_path / "model.pt2"), "--target", "cpu"),
        *("--cache", str(cache.root), "--out", str(tmp_path / "bundle")),
    )
    assert status == 0, errors
    status, output, errors = scheduler("verify", str(tmp_path / "bundle"), "--json")
    failed = [one for one in json.loads(output)["findings"] if not one["passed"]]
    assert failed == [], errors
    assert status == 0
