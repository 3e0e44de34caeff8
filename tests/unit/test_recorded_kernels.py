"""The demo's recorded runs name kernels that this version generates, so that their pages are those
of kernels that one can tune, build and compare."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler import pipeline, samples
from scheduler.codegen.problem import problem_of
from scheduler.results import file as results_file
from scheduler.results.model import RunRecord
from scheduler.targets import find

RECORDED = [path for path in samples.results() if not path.name.startswith("history-")]


def unknown_kernels(run: RunRecord) -> list[str]:
    """Return the measured kernels of a run that no backend of its target generates from their
    configuration."""
    schedule = pipeline.schedule(pipeline.lower(pipeline.load(samples.path(run.graph.name))))
    backend = pipeline.scheduling(schedule, (find(run.target),))
    nodes = {
        problem_of(node, schedule.lowered).digest: node
        for node in reversed(schedule.nodes)
        if node.kind.has_kernel
    }
    unknown = []
    for task in run.tasks:
        templates = [
            member.template(nodes[task.problem])
            for member in backend.members
            if member.serves(nodes[task.problem])
        ]
        for record in task.candidates:
            if not record.kernel:
                continue
            config = dict(record.config)
            fitting = (one for one in templates if config in map(dict, one.configs()))
            if not any(one.generate(config).name == record.kernel for one in fitting):
                unknown.append(record.kernel)
    return unknown


@pytest.mark.full
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_kernels_are_generated_by_this_version(path: Path) -> None:
    results = results_file.read(path)
    unknown = [name for run in results.runs for name in unknown_kernels(run)]
    assert unknown == [], "record the samples again: docs/gpu/README.md, Recorded samples"


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_selected_and_default_kernels_have_their_instructions(path: Path) -> None:
    results = results_file.read(path)
    for run in results.runs:
        for task in run.tasks:
            for record in task.candidates:
                if record.chosen or record.description.startswith("the default"):
                    assert record.build is not None
                    assert record.build.code_digest in results.listings, record.kernel
