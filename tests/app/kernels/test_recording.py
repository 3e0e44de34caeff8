"""Recording a prepared graph: in few queries, whatever its length, and each problem tried once."""

from __future__ import annotations

import re

import pytest

from codegen_app.graphs.models import Problem, TemplateNode
from codegen_app.kernels.models import KernelUse, ProblemWork
from codegen_app.kernels.services import engine, recording
from codegen_app.platform.served_targets import served_targets
from scheduler import pipeline, targets
from scheduler.codegen.scheduling import BaseScheduling
from scheduler.ir.graph import Graph
from tests.app import factories
from tests.support import long_models
from tests.support.queries import queries_of

pytestmark = pytest.mark.django_db


def scheduled(graph: Graph) -> engine.Scheduled:
    plan = pipeline.schedule(pipeline.lower(graph))
    return engine.Scheduled(plan, pipeline.scheduling(plan, served_targets()))


def recorded(length: int) -> int:
    made = scheduled(long_models.wide(length))
    prepared = recording.prepare(made, ["gfx942", "gfx1100"])
    row = factories.graph()
    found = queries_of(recording.record_schedule, row, made, prepared)
    assert TemplateNode.objects.filter(graph=row).count() == length
    return found


def test_more_nodes_take_no_more_queries() -> None:
    assert recorded(5) == recorded(45)


def test_nodes_of_one_problem_are_offered_the_same_kernels_and_tried_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []
    candidates = BaseScheduling.candidates
    monkeypatch.setattr(
        BaseScheduling,
        "candidates",
        lambda self, node: tried.append(node.name) or candidates(self, node),
    )
    made = scheduled(long_models.products(4))
    row = factories.graph()
    recording.record_schedule(row, made, recording.prepare(made, ["gfx942", "gfx1100"]))
    assert len(tried) == Problem.objects.count() == ProblemWork.objects.count() == 1
    first, *others = TemplateNode.objects.filter(graph=row)
    names = [list(node.uses.values_list("kernel__name", flat=True)) for node in (first, *others)]
    assert len(names[0]) == recording.MAX_RECORDED
    assert all(each == names[0] for each in names)
    assert {node.offered for node in others} == {first.offered}
    assert [node.rejected for node in others] == [first.rejected] * 3
    assert KernelUse.objects.filter(is_default=True).count() == 4
    assert all(use.call != first.uses.first().call for use in others[0].uses.all())


def test_what_is_not_legal_is_recorded_of_each_target_by_itself() -> None:
    """No line speaks of a target that it is not about."""
    made, row = scheduled(long_models.products(1)), factories.graph()
    recording.record_schedule(row, made, recording.prepare(made, ["gfx942", "gfx1100"]))
    (node,) = TemplateNode.objects.filter(graph=row)
    cdna, rdna = node.rejected_for("gfx942"), node.rejected_for("gfx1100")
    backend = made.scheduling_for("gfx942")
    (scheduled_node,) = (one for one in made.schedule.nodes if one.name == node.name)
    alone = backend.candidates(scheduled_node)
    assert [line["config"] for line in cdna] == [dict(one.config) for one in alone.rejected]
    assert node.legal["gfx942"] == len(alone.callers) > node.legal["gfx1100"] > 0
    assert len(cdna) < len(rdna), "gfx1100 has no 32x32 instruction"
    others = set(targets.names()) - {"gfx942"}
    assert not any(re.search(rf"\b{name}\b", line["reason"]) for line in cdna for name in others)
