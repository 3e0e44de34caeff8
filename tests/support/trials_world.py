"""A node with a run of many trials, of every outcome: rows alone, whose times are made up by a rule
that tests know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import Any

import numpy as np
from django.utils import timezone

from codegen_app.graphs.models import Graph, Problem, TemplateNode
from codegen_app.kernels.models import KernelUse
from codegen_app.tuning.models import Candidate, Environment, TuningRun, TuningTask
from codegen_app.workers.models import State
from tests.app import factories

SPACE: dict[str, tuple[Any, ...]] = {
    "BLOCK_M": (32, 64, 128, 256),
    "BLOCK_N": (32, 64, 128),
    "STAGES": (1, 2),
    "layout": ("row", "column"),
}
STAGES_OF = {
    **dict.fromkeys(
        range(7, 200, 23), ("check", State.REJECTED, "error 3.1e-02 is over the bound")
    ),
    **dict.fromkeys(range(11, 200, 29), ("compile", State.REJECTED, "LDS: 98304 B <of> 65536 B")),
    **dict.fromkeys(range(17, 200, 31), ("crash", State.QUARANTINED, "ended its process twice")),
}


@dataclass(frozen=True)
class TrialsWorld:
    """What was made; ``times`` are microseconds by the position of the candidates that have one."""

    graph: Graph
    node: TemplateNode
    run: TuningRun
    times: dict[int, float]


def time_us(config: dict[str, Any], place: int) -> float:
    """BLOCK_M decides most, BLOCK_N some, with an interaction at 256 x 128; 2% of noise."""
    base = 40.0 / {32: 1.0, 64: 2.0, 128: 4.0, 256: 5.0}[config["BLOCK_M"]]
    base *= {32: 1.3, 64: 1.0, 128: 0.9}[config["BLOCK_N"]]
    if (config["BLOCK_M"], config["BLOCK_N"]) == (256, 128):
        base *= 2.5
    return float(base * np.exp(np.random.default_rng(place).normal(0.0, 0.02)))


def make_trials(rounds: int = 1, nodes: int = 1, state: str = State.DONE) -> TrialsWorld:
    """Each configuration of the space ``rounds`` times; every further node has two trials."""
    graph = factories.graph(name="explored", state=State.DONE, targets=["gfx942"], node_count=0)
    run = TuningRun.objects.create(
        graph=graph,
        device="rocm:0",
        target="gfx942",
        bindings={"s0": 512},
        state=state,
        planned_at=timezone.now(),
        started_at=timezone.now() - timedelta(hours=1),
        finished_at=timezone.now() if state == State.DONE else None,
    )
    environment = factories.environment()
    node, times = _node(graph, run, environment, 0, _configs(rounds))
    for place in range(1, nodes):
        _node(graph, run, environment, place, _configs(1)[:2])
    return TrialsWorld(graph, node, run, times)


def _configs(rounds: int) -> list[dict[str, Any]]:
    one = [dict(zip(SPACE, values, strict=True)) for values in product(*SPACE.values())]
    return [{**config, "unroll": 2**n} for n in range(rounds) for config in one]


def _node(
    graph: Graph,
    run: TuningRun,
    environment: Environment,
    place: int,
    configs: list[dict[str, Any]],
) -> tuple[TemplateNode, dict[int, float]]:
    name = factories.digest()
    problem = Problem.objects.create(
        digest=name,
        kind="gemm",
        op="mm",
        summary="f16 [s0, 64] @ [64, 64]",
        text=name,
        symbols={"s0": {"hint": 512, "min": 2, "max": None}},
    )
    node = TemplateNode.objects.create(
        graph=graph,
        problem=problem,
        position=place,
        name=f"op{place}",
        kind="gemm",
        op="mm",
        legal={"gfx942": len(configs)},
        rejected=[
            {
                "config": {**configs[0], "BLOCK_M": 512},
                "stage": "rule",
                "reason": "tiles: 512 rows are more than 256",
                "targets": ["gfx942"],
            }
        ],
    )
    task = TuningTask.objects.create(
        run=run, problem=problem, template_node=node, state=State.DONE, finished_at=timezone.now()
    )
    times: dict[int, float] = {}
    for position, config in enumerate(configs):
        made = _candidate(task, environment, position, config)
        if made is not None:
            times[position] = made
    Candidate.objects.create(
        task=task,
        position=len(configs),
        config={**configs[0], "BLOCK_M": 512},
        state=State.REJECTED,
        stage="rule",
        reason="tiles: 512 rows are more than 256",
    )
    Candidate.objects.create(
        task=task, position=len(configs) + 1, config=configs[-1], state=State.CANCELLED
    )
    fastest = min(times, key=lambda position: times[position])
    Candidate.objects.filter(task=task, position=fastest).update(chosen=True)
    return node, times


def _candidate(
    task: TuningTask, environment: Environment, position: int, config: dict[str, Any]
) -> float | None:
    kernel = factories.kernel(config=config)
    KernelUse.objects.create(
        kernel=kernel,
        template_node=task.template_node,
        position=position,
        is_default=position == 0,
        description="",
    )
    stage, failed, reason = STAGES_OF.get(position, ("", "", ""))
    done = State.REJECTED if stage == "compile" else State.QUEUED
    build = factories.build(
        kernel=kernel,
        target="gfx942",
        state=done,
        stage=stage if stage == "compile" else "",
        reason=reason if stage == "compile" else "",
    )
    assert task.run.started_at is not None
    plain = {
        "task": task,
        "position": position,
        "kernel": kernel,
        "build": build,
        "config": config,
        "finished_at": task.run.started_at + timedelta(seconds=3 * position + 1),
    }
    if stage:
        Candidate.objects.create(**plain, state=failed, stage=stage, reason=reason)
        return None
    time = time_us(config, position)
    result = factories.result(
        build,
        1000 * time,
        task=task,
        problem=task.problem,
        environment=environment,
        bindings=task.run.bindings,
        low_ns=990 * time,
        high_ns=1012 * time,
    )
    Candidate.objects.create(**plain, state=State.DONE, result=result)
    return time
