"""Results of a tuning run, made up: real problems and kernels of a sample, times out of the air.

Nothing is compiled, and nothing runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from scheduler import pipeline, samples
from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.metrics import MetricInputs, compute_metrics
from scheduler.errors import Stage
from scheduler.fusion.nodes import Schedule
from scheduler.isa.occupancy import rules_of
from scheduler.results.collect import RunContext, collect_results
from scheduler.results.model import Compiler, Origin, Results
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import find
from scheduler.tuning.budget import Budget
from scheduler.tuning.ledger import CandidateState, Entry
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.tuner import ProblemResult, TuningResult

LISTING = "\t.text\n        MOV R1, c[0x0][0x28] ;\n        EXIT ;\n"
MODEL, NODE, TARGET = "llama_2layer", "op4", "sm_90"
SIZES = {"s70": 16}
DEVICE = DeviceInfo(
    id="cuda:0",
    target=TARGET,
    name="NVIDIA H200",
    driver="580.95.05",
    runtime="CUDA 13.0",
    compute_units=132,
    memory_bytes=150_000_000_000,
    emulated=False,
    attributes={"architecture": "sm_90", "wavefront": "32"},
)

AMD = replace(DEVICE, id="rocm:0", target="gfx942", name="AMD Instinct MI300X", driver="6.4")


def resources(target: str) -> dict[str, Any]:
    """What a function takes, by the maker's own names."""
    rules = rules_of(find(target))
    if rules is None or rules.figures is None:
        return {}
    made = {one.name: "" if one.name == "limiter" else 8 for one in fields(rules.figures)}
    return {"device_function": made}


@cache
def schedule() -> Schedule:
    return pipeline.schedule(pipeline.lower(pipeline.load(samples.path(MODEL))))


@cache
def problem(target: str = TARGET) -> TuningProblem:
    plan = schedule()
    backend = pipeline.scheduling(plan, (find(target),))
    return find_problems(plan, backend, find(target), SIZES, [NODE])[0]


def recorded(
    device: DeviceInfo = DEVICE,
    commit: str = "c" * 40,
    others: Mapping[str, Compiler] = {},
    instead: Mapping[int, Entry] = {},
) -> Results:
    """One run of one problem: a winner, one that crashed, the rest untried, and what rules
    rejected. With ``others``, the compilers of further languages, a kernel in each of those was
    measured too. ``instead`` has other lines, by their places."""
    of = problem(device.target)
    entries = [_entry(of, place, device) for place in range(len(of.callers))]
    for file in others:
        place = [caller.kernel.source_file for caller in of.callers].index(file)
        measured = _measured(of, of.callers[place].name, device)
        entries[place] = replace(
            entries[place], state=CandidateState.MEASURED, order=3, measurement=measured
        )
    for place, entry in instead.items():
        entries[place] = entry
    rejected = [
        replace(
            entries[0],
            kernel="",
            config=dict(one.config),
            state=CandidateState.REJECTED,
            stage=str(one.rejected.stage),
            reason=one.rejected.reason,
            is_default=False,
            measurement=None,
            order=0,
        )
        for one in of.rejected
    ]
    result = ProblemResult(of, (*entries, *rejected), 1.25)
    facts = RunContext(
        origin=Origin("0.1.0", commit, "2026-11-20T12:00:00+00:00", "Linux x86_64"),
        graph=schedule().lowered.graph,
        device=device,
        compiler=Compiler("bundled", "22", "b" * 64, ("-O3",)),
        seed=7,
        strategy="model",
        budget=Budget(60.0, None, 3),
        started=datetime(2026, 11, 20, 11, 0, tzinfo=UTC),
        other_compilers=others,
    )
    listings = {entries[0].code_digest: LISTING}
    return collect_results(TuningResult((result,), 1.5, 3, 2, ""), facts, {NODE}, listings)


def untried(of: TuningProblem, place: int) -> Entry:
    """The line of a candidate that the budget did not reach."""
    caller = of.callers[place]
    return Entry(
        problem=of.title,
        node=of.node.name,
        bindings=of.bindings,
        kernel=caller.name,
        template=caller.kernel.template,
        config=dict(caller.kernel.config),
        description=caller.description,
        state=CandidateState.UNTRIED,
        is_default=place == 0,
        reason="the budget of 3 measurements was spent",
        shape=of.shape,
    )


def _entry(of: TuningProblem, place: int, device: DeviceInfo) -> Entry:
    caller, entry = of.callers[place], untried(of, place)
    if place == 0:
        return replace(
            entry,
            state=CandidateState.CHOSEN,
            reason="",
            order=1,
            at_s=0.5,
            code_digest="d" * 64,
            compile_s=0.25,
            resources=resources(device.target),
            measurement=_measured(of, caller.name, device),
        )
    if place == 1:
        detail = "CUDA_ERROR_ILLEGAL_ADDRESS"
        crash = {"stage": str(Stage.CRASH), "reason": "an illegal address", "detail": detail}
        return replace(entry, state=CandidateState.CRASH, order=2, at_s=0.75, **crash)
    return entry


def _measured(of: TuningProblem, kernel: str, device: DeviceInfo) -> Measurement:
    samples_ns = (1500.0, 1400.5, 1450.25)
    readings = {"sm_clock_mhz": (1980.0, 1980.0, 1965.0)}
    return Measurement(
        kernel=kernel,
        device=device.id,
        bindings=of.bindings,
        samples_ns=samples_ns,
        batch=100,
        metrics=compute_metrics(MetricInputs(samples_ns, of.work.bytes, readings)),
        rejected=((0.0, "no time passed"),),
        check=Check(True, 1e-4, 1e-3, 0.1, guard_intact=True),
        emulated=device.emulated,
        readings=readings,
    )
