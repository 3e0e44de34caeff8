"""The judge of architectures says what is right, what is wrong, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tests.benchmarks.architectures import __main__ as command
from tests.benchmarks.architectures import judging
from tests.benchmarks.architectures.judging import Outcome, judge
from tests.benchmarks.architectures.models import ARCHITECTURES, Architecture
from tests.benchmarks.opinfo.judging import Level


class Small(torch.nn.Module):
    """A layer with a weight that it scales in place, as some do when they are evaluated."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        self.layer.weight.div_(2)
        return torch.relu(self.layer(x)), x.sum()


SMALL = Architecture("small", "test", lambda: (Small(), (torch.randn(2, 4),)))


@pytest.mark.long
def test_a_model_is_taken_through_its_kernels(tmp_path: Path) -> None:
    found = judge(SMALL, Level.KERNELS, tmp_path / "cache", flags="-O0")
    assert (found.failed, found.reason, found.externs) == ("", "", ())
    assert found.nodes >= 4
    assert found.kernels >= 2


@pytest.mark.full
def test_a_wrong_number_and_a_model_that_torch_does_not_export_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = judging.reference.run
    monkeypatch.setattr(
        judging.reference, "run", lambda *args: {n: v + 0.01 for n, v in run(*args).items()}
    )
    found = judge(SMALL, Level.REFERENCE, tmp_path)
    assert found.failed == "reference"
    assert "off by 0.01" in found.reason
    found = judge(Architecture("none", "test", lambda: 1 / 0), Level.REFERENCE, tmp_path)
    assert (found.failed, found.reason) == ("export", "ZeroDivisionError: division by zero")


def test_at_least_sixty_are_tried_each_once() -> None:
    names = [one.name for one in ARCHITECTURES]
    assert len(names) == len(set(names)) >= 60


def test_the_table_says_what_is_wrong() -> None:
    found = [Outcome("a", "x", 3, 2, ("aten.y.default",)), Outcome("b", "x", failed="read")]
    page = command._page(found, "1 of 2 right", "torch 9", Level.INTERPRET)
    assert "| x | a | 3 | 2 | aten.y.default | correct |" in page
    assert "| x | b | 0 | 0 | none | read:  |" in page
