"""The sample models: no extern, and every schedule computes what the reference does."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler import samples
from scheduler.frontends import pt2
from scheduler.fusion import schedule
from scheduler.ir.operations import Extern
from scheduler.lowering import lower
from scheduler.reference import random_inputs, run
from tests.support.missed_fusions import missed_fusions
from tests.unit.lowering.running import run_lowered, run_schedule

# Kernels of each model, unfused and fused.
KERNELS = {
    "bert_2layer": (37, 15),
    "gpt2_124m": (258, 86),
    "gpt2_2layer": (48, 16),
    "llama3_8b_1layer": (55, 12),
    "llama_2layer": (93, 21),
    "resnet_small": (44, 19),
    "vit_2layer": (38, 16),
}


@pytest.mark.parametrize("name", samples.names())
def test_every_op_has_a_kernel_and_no_legal_fusion_is_missed(name: str) -> None:
    lowered = lower(pt2.read(samples.path(name)))
    assert not [op for op in lowered.operations if isinstance(op, Extern)]
    unfused, fused = schedule(lowered, fuse=False), schedule(lowered)
    assert (len(unfused.nodes), len(fused.nodes)) == KERNELS[name]
    assert missed_fusions(fused) == []
    assert missed_fusions(unfused) != []  # the check sees what fusion does


@pytest.mark.parametrize(("name", "sizes"), [("llama_2layer", 5)])
def test_fused_and_unfused_agree_with_the_reference(name: str, sizes: int) -> None:
    graph = pt2.read(samples.path(name))
    bindings = dict.fromkeys(graph.symbols, sizes)
    inputs = random_inputs(graph, bindings, np.random.default_rng(sizes))
    expected = run(graph, inputs, bindings)
    lowered = lower(graph)
    for got in (
        run_lowered(lowered, inputs, bindings),
        run_schedule(schedule(lowered, fuse=False), inputs, bindings),
        run_schedule(schedule(lowered), inputs, bindings),
    ):
        for output, value in expected.items():
            np.testing.assert_allclose(got[output], value, rtol=1e-9, atol=1e-9)


@pytest.mark.full
def test_a_convolutional_network_agrees_with_the_reference() -> None:
    graph = pt2.read(samples.path("resnet_small"))
    inputs = random_inputs(graph, {}, np.random.default_rng(1))
    expected = run(graph, inputs, {})
    got = run_schedule(schedule(lower(graph)), inputs, {})
    for output, value in expected.items():
        np.testing.assert_allclose(got[output], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["gpt2_2layer", "llama_2layer"])
def test_lowering_twice_says_the_same(name: str) -> None:
    first, second = (lower(pt2.read(samples.path(name))) for _ in range(2))
    assert first.operations == second.operations
    assert schedule(first).nodes == schedule(second).nodes


def test_memory_is_reused_and_never_shared_by_two_that_live() -> None:
    """``run_schedule`` above checks the sharing; here that there is some."""
    plan = schedule(lower(pt2.read(samples.path("gpt2_124m"))))
    assert len(plan.pools) <= 6
    assert len(plan.storage) > 80
