"""Pointwise kernels of random models in CuteDSL, run by the stand-in, pass the correctness gate."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from scheduler import pipeline
from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.gate import check_outputs
from scheduler.codegen.cutedsl.scheduling import CuteDSLScheduling
from scheduler.ir.operations import GroupKind
from tests.support import cutedsl
from tests.support.random_models import BINDINGS, random_model
from tests.unit.codegen.cutedsl import SM_90

_MOST_POINTS = 1000  # one thread after another


def pointwise_kernels(seed: int) -> int:
    """Check every pointwise kernel of a random model at its smallest size; how many there were."""
    plan = pipeline.schedule(pipeline.lower(random_model(Random(seed), 6).graph()))
    scheduling, checked = CuteDSLScheduling(plan, SM_90), 0
    for node in plan.nodes:
        if node.kind is not GroupKind.POINTWISE:
            continue
        case = make_case(node, plan.lowered, BINDINGS[0], np.random.default_rng(seed))
        if max(one.size for one in case.expected.values()) > _MOST_POINTS:
            continue
        found = scheduling.candidates(node)
        reasons = {one.rejected.reason for one in found.rejected}
        assert found.callers or reasons == {"erfinv of f32 is not supported by CuteDSL"}, reasons
        for caller in {one.kernel.config["vector"]: one for one in found.callers}.values():
            storages = cutedsl.run(caller, case.inputs, BINDINGS[0])
            check = check_outputs(case, storages, ())
            assert check.passed, (check, caller.kernel.source)
            checked += 1
    return checked


@pytest.mark.full
def test_random_models_pass_the_gate() -> None:
    assert sum(map(pointwise_kernels, range(12))) > 10
