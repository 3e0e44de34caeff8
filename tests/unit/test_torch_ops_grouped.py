"""Products of groups of rows beside torch, and beside a loop over the groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.fusion import schedule
from scheduler.lowering import lower
from scheduler.reference import run
from tests.unit.lowering.running import run_schedule
from tests.unit.torch_export import agree, as_module, export, inputs_of

torch = pytest.importorskip("torch")


def _looped(x: Any, y: Any, ends: Any) -> Any:
    made = torch.zeros(x.size(0), y.size(2), dtype=x.dtype)
    start = 0
    for group, end in enumerate(ends.tolist()):
        made[start:end] = x[start:end] @ y[group]
        start = end
    return made


@contextmanager
def fallback() -> Iterator[None]:
    """The op that transformers registers for its mixtures of experts."""
    library = torch.library.Library("transformers", "FRAGMENT")
    library.define("grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor")
    library.impl("grouped_mm_fallback", _looped, "CPU")
    library.impl("grouped_mm_fallback", lambda x, y, _: x.new_empty(x.size(0), y.size(2)), "Meta")
    try:
        yield
    finally:
        library._destroy()


def test_groups_of_rows(tmp_path: Path) -> None:
    numbers = torch.Generator().manual_seed(1)
    x, y, other = (
        torch.randn(*size, dtype=torch.float64, generator=numbers)
        for size in ((9, 4), (5, 4, 3), (5, 9, 4))
    )
    # The second group has no row, and the last row is of none.
    ends = torch.tensor([2, 2, 5, 7, 8])

    def every(x: Any, y: Any, ends: Any, other: Any) -> Any:
        call = torch.ops.transformers.grouped_mm_fallback
        return call(x, y, ends), call(x * 2, y + 1, ends.int()).relu()

    with fallback():
        agree(as_module(every), (x, y, ends, other), tmp_path)


def test_every_form_of_torchs_own(tmp_path: Path) -> None:
    numbers = torch.Generator().manual_seed(2)
    x, y = (torch.randn(*s, generator=numbers).bfloat16() for s in ((16, 32), (2, 32, 16)))
    ends = torch.tensor([8, 16], dtype=torch.int32)

    def every(x: Any, y: Any, ends: Any) -> Any:
        form = torch._grouped_mm
        return (
            form(x, y, offs=ends),
            form(y.mT, x.T, offs=ends),
            form(x, x.T, offs=ends),
            form(y, y.mT),
        )

    module = as_module(every)
    program, graph = export(module, (x, y, ends), tmp_path)
    values = inputs_of(program, graph, (x, y, ends))
    made = run(graph, values, {})
    computed = run_schedule(schedule(lower(graph)), values, {})
    for name, expected in zip(graph.outputs, module(x, y, ends), strict=True):
        np.testing.assert_allclose(made[name], expected.double(), rtol=2**-8, atol=2**-4)
        np.testing.assert_allclose(computed[name], made[name], rtol=1e-9, atol=1e-9)
