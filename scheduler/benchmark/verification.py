"""Verifies a bundle: each kernel, then the whole graph, against the float64 reference."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scheduler import reference
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case_builder import make_case, node_tolerance
from scheduler.benchmark.graph_run import GraphOutputs, run_sandboxed
from scheduler.benchmark.measure import Bench, Limits, check_candidate, is_inaccurate
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.reference_outputs import ReferenceOutputs
from scheduler.benchmark.tolerance import Tolerance, chain_tolerance
from scheduler.bundle.emulated import library_for
from scheduler.bundle.execute import BundleRun
from scheduler.bundle.externs import extern_runner
from scheduler.bundle.inputs import by_buffer, written_names
from scheduler.bundle.manifest import request_of
from scheduler.bundle.reader import Bundle
from scheduler.codegen.problem import problem_of
from scheduler.errors import Rejected, Stage, UserError
from scheduler.fusion import schedule
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.fusion.split import split_nodes
from scheduler.ir.bindings import Bindings
from scheduler.ir.graph import Graph
from scheduler.ir.index.functions import evaluate, is_unbacked
from scheduler.ir.operations import GroupKind, LoopBegin
from scheduler.ir.ops import UnsupportedOpError
from scheduler.ir.reference.rule import EndlessLoopError, FailedAssertionError
from scheduler.ir.storage import Array
from scheduler.lowering import lower
from scheduler.runtime.device import Device
from scheduler.runtime.devices import open_device

WHOLE_GRAPH = "whole graph"


@dataclass(frozen=True)
class Finding:
    """The result of comparing one kernel, or one output of the graph.

    For a kernel ``output`` is empty and the values are those of its worst output. ``passed`` is
    None if nothing could be compared; ``detail`` says why.
    """

    name: str
    bindings: Mapping[str, int]
    output: str
    passed: bool | None
    max_error: float
    bound: float
    ratio: float
    detail: str


def verify(
    bundle: Bundle,
    device: str,
    bindings: Bindings,
    *,
    seed: int = 0,
    whole_graph: bool = True,
    limits: Limits = Limits(),
    on_finding: Callable[[Finding], None] = lambda _: None,
) -> list[Finding]:
    """Return all findings at one binding. The whole graph is run if no kernel failed."""
    plan = rebuild_schedule(bundle)
    bindings = with_data_sizes(bundle.graph, bindings, seed)
    findings: list[Finding] = []
    for finding in _check_kernels(bundle, plan, device, bindings, seed, limits):
        findings.append(finding)
        on_finding(finding)
    if whole_graph and all(finding.passed is not False for finding in findings):
        for finding in _check_graph(bundle, plan, device, bindings, seed):
            findings.append(finding)
            on_finding(finding)
    return findings


def with_data_sizes(graph: Graph, bindings: Bindings, seed: int) -> Bindings:
    """Return the bindings with data-dependent sizes set to those of the random inputs, so that they
    are consistent; unchanged if the reference cannot compute them."""
    if not any(map(is_unbacked, bindings)):
        return bindings
    inputs = reference.random_inputs(graph, bindings, np.random.default_rng(seed))
    sizes: Bindings = {}
    try:
        reference.run(graph, inputs, bindings, missing={}, sizes=sizes)
    except (UserError, UnsupportedOpError):
        return bindings  # the check of the whole graph reports the reason
    return {**bindings, **sizes}


def rebuild_schedule(bundle: Bundle) -> Schedule:
    """Rebuild the schedule of a bundle from its graph.

    Raises ``UserError`` if it does not match the bundle's calls: another version wrote the bundle.
    """
    plan = schedule(lower(bundle.graph), fuse=bundle.manifest.fused)
    if bundle.manifest.split:
        plan = split_nodes(plan, bundle.manifest.split)
    scheduled = [node.nodes for node in kernel_nodes(plan)]
    if scheduled != [call.nodes for call in bundle.manifest.calls]:
        raise UserError(
            f"{bundle.folder}: written by a version of Kiln with another schedule: compile the"
            " model again"
        )
    # Compare by repr: NaN != NaN, and 1 == True.
    if repr(bundle.graph.constant_outputs) != repr(bundle.manifest.constant_outputs):
        raise UserError(f"{bundle.folder}: the manifest has other constants than the graph")
    return plan


def kernel_nodes(plan: Schedule) -> list[SchedulerNode]:
    """Return the scheduler nodes that have a kernel, in the order of the bundle's calls."""
    return [node for node in plan.nodes if node.kind.has_kernel]


def _check_kernels(
    bundle: Bundle, plan: Schedule, device: str, bindings: Bindings, seed: int, limits: Limits
) -> Iterator[Finding]:
    target = device_target(device)
    seen: set[tuple[str, str]] = set()
    with (
        Bench(device, limits) as bench,
        tempfile.TemporaryDirectory(prefix="kiln-libraries-") as libraries,
    ):
        for node, bundle_call in zip(kernel_nodes(plan), bundle.manifest.calls, strict=True):
            call = bundle_call.select_variant(bindings)
            key = call.kernel, problem_of(node, plan.lowered).key(bindings)
            if key in seen:
                continue  # an identical layer: same kernel, same problem, same sizes
            seen.add(key)
            request = request_of(bundle.manifest, call, target, bindings)
            library = library_for(bundle, call.kernel, target, device, Path(libraries))
            candidate = BuiltCandidate(call.kernel, str(library), request)
            try:
                for with_roundings in (False, True):  # the second only if the first fails
                    rng = np.random.default_rng([seed, len(seen)])
                    case = make_case(
                        node, plan.lowered, bindings, rng, with_roundings=with_roundings
                    )
                    with tempfile.TemporaryDirectory(prefix="kiln-case-") as folder:
                        case.save(Path(folder))
                        del case  # the worker has it now; it may be several GiB
                        bench.use(Path(folder))
                        result = check_candidate(bench, candidate, limits)
                    if not is_inaccurate(result):
                        break
            except UserError as error:
                yield Finding(call.kernel, bindings, "", None, 0.0, 0.0, 0.0, str(error))
                continue
            yield finding_of(call.kernel, bindings, "", result)


def _check_graph(
    bundle: Bundle, plan: Schedule, device: str, bindings: Bindings, seed: int
) -> list[Finding]:
    graph = bundle.graph
    inputs = reference.random_inputs(graph, bindings, np.random.default_rng(seed))
    try:
        expected = ReferenceOutputs(graph, inputs, bindings, graph_tolerance(plan, bindings), seed)
    except UserError as error:
        is_input_error = isinstance(error, EndlessLoopError | FailedAssertionError)
        if not is_input_error and not any(map(is_unbacked, bindings)):
            raise
        return [
            unchecked_finding(
                WHOLE_GRAPH, bindings, "", f"the model rejects random inputs: {error}"
            )
        ]
    outputs = [
        (value, buffer, written_names(bundle).get(index, value))
        for index, (value, buffer) in enumerate(
            zip(graph.outputs, bundle.manifest.outputs, strict=True)
        )
    ]
    findings = [
        unchecked_finding(WHOLE_GRAPH, bindings, name, f"no reference: {expected.missing[value]}")
        for value, _, name in outputs
        if value in expected.missing
    ]
    checked_outputs = [
        (value, buffer, name) for value, buffer, name in outputs if value in expected.values
    ]
    if outputs and not checked_outputs:
        why = next(iter(expected.missing.values()))
        rejected = Rejected(Stage.CHECK, f"no output has a reference: {why}")
        return [finding_of(WHOLE_GRAPH, bindings, "", rejected)]
    got = run_sandboxed(bundle, device, device_target(device), bindings, inputs)
    for value, buffer, name in checked_outputs:
        if buffer in got.missing:
            findings.append(
                unchecked_finding(WHOLE_GRAPH, bindings, name, f"needs {got.missing[buffer]}")
            )
            continue
        check = expected.check(value, got.values[buffer], name)
        findings.append(finding_of(WHOLE_GRAPH, bindings, name, check))
    return findings


def unchecked_finding(name: str, bindings: Bindings, output: str, why: str) -> Finding:
    """Return a finding without a comparison, and why."""
    return Finding(name, bindings, output, None, 0.0, 0.0, 0.0, why)


def run_once(
    bundle: Bundle,
    plan: Schedule,
    device: Device,
    bindings: Bindings,
    inputs: Mapping[str, Array],
) -> GraphOutputs:
    """Run a bundle once with inputs by the graph's input names, and close the device."""
    try:
        with BundleRun(bundle, device, bindings, extern_runner(plan)) as loaded:
            outputs = loaded.run(by_buffer(bundle, inputs))
            return GraphOutputs(outputs, dict(loaded.missing), dict(loaded.bindings))
    finally:
        device.close()


def graph_tolerance(plan: Schedule, bindings: Bindings) -> Tolerance:
    """Return the bound after all kernels of a schedule and all ops without a kernel.

    The bounds in a loop are multiplied by its number of steps, if known beforehand.
    """
    steps: list[Tolerance] = []
    repetitions = [1]
    for node in plan.nodes:
        if node.kind is GroupKind.LOOP:
            marker = node.members[0]
            if isinstance(marker, LoopBegin):
                count = 1 if marker.steps is None else evaluate(marker.steps, bindings)
                repetitions.append(repetitions[-1] * max(count, 1))
            else:
                repetitions.pop()
            continue
        for name in node.writes:
            tolerance = node_tolerance(node, plan.lowered.buffers[name].dtype, bindings)
            steps.append(
                Tolerance(
                    repetitions[-1] * tolerance.relative, repetitions[-1] * tolerance.absolute
                )
            )
    return chain_tolerance(steps)


def device_target(device: str) -> str:
    """Return the target of the device with that id. Raises ``UserError`` or ``DeviceError`` if
    there is no such device."""
    opened = open_device(device)
    try:
        return opened.info.target
    finally:
        opened.close()


def finding_of(name: str, bindings: Bindings, output: str, result: Check | Rejected) -> Finding:
    """Return the finding for the result of a comparison."""
    if isinstance(result, Rejected):
        detail = ": ".join([result.stage, result.reason, *result.detail.strip().splitlines()[-1:]])
        return Finding(name, bindings, output, False, float("inf"), 0.0, float("inf"), detail)
    return Finding(
        name,
        bindings,
        output,
        result.passed,
        result.max_error,
        result.bound,
        result.ratio,
        result.detail,
    )
