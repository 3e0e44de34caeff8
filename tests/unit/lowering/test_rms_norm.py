"""RMS norm without an epsilon: torch takes that of the type in which it computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scheduler.fusion import schedule
from scheduler.lowering import lower
from scheduler.reference import run
from tests.unit.lowering.running import run_schedule
from tests.unit.torch_export import as_module, export, inputs_of

torch = pytest.importorskip("torch")


@pytest.mark.full(but=["False-float16", "True-float64"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("decompose", [False, True])
def test_small_values_keep_the_norm_that_torch_gives_them(
    dtype: str, decompose: bool, tmp_path: Path
) -> None:
    """At 0.002 the mean of squares is 4e-6: an epsilon of f16 (1e-3) would be all of it."""
    x = (0.002 * torch.randn(4, 64, dtype=torch.float64)).to(getattr(torch, dtype))
    module = as_module(lambda x: torch.nn.functional.rms_norm(x, (64,)))
    program, graph = export(module, (x,), tmp_path, decompose=decompose)
    values = inputs_of(program, graph, (x,))
    (output,) = graph.outputs
    lowered = run_schedule(schedule(lower(graph)), values, {})[output]
    eps = torch.finfo(x.dtype).eps
    for found in (run(graph, values, {})[output], lowered):
        np.testing.assert_allclose(found, module(x).double().numpy(), rtol=4 * eps, atol=eps)
