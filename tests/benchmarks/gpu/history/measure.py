"""Kernels of many commits, checked and timed by today's Kiln, in rounds against drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import gettempdir

from scheduler import pipeline
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measure import Limits, default_plan, summarise, wrong_result
from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.protocol import Sampler, Samples
from scheduler.bundle.manifest import Manifest
from scheduler.bundle.reader import read
from scheduler.bundle.requests import request_of
from scheduler.codegen.benchmark_request import BenchmarkRequest, TensorArg
from scheduler.codegen.kernel import KernelCall
from scheduler.fusion.nodes import Schedule
from scheduler.ir.bindings import hints
from scheduler.outcome import Rejected, UserError
from scheduler.results import file as results_file
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import open_device
from scheduler.runtime.lock import exclusive
from scheduler.targets import find
from scheduler.tuning.evaluator import BenchEvaluator
from scheduler.tuning.problems import TuningProblem, find_problems
from tests.benchmarks.gpu.history.export import Setting, results_of
from tests.benchmarks.gpu.history.folder import Commit, History, load
from tests.benchmarks.printing import say

LIMITS = Limits(load_s=120.0, check_s=120.0)


@dataclass
class Contender:
    """A commit's kernel for a problem; ``runs`` are what was measured of it, one each run."""

    commit: Commit
    manifest: Manifest
    call: KernelCall
    candidate: BuiltCandidate
    check: Check | None = None
    runs: list[tuple[datetime, datetime, Measurement]] = field(default_factory=list)


def measure(folder: Path, out: Path, device_id: str, runs: int, count: int) -> int:
    """Write a file for each commit into ``out``; 1 where a kernel was wrong or none is there."""
    history = load(folder)
    device = _info(device_id, history.target)
    plan = pipeline.schedule(pipeline.lower(pipeline.load(history.model)))
    target = find(history.target)
    bindings = hints(plan.lowered.graph.symbols)
    problems = find_problems(plan, pipeline.scheduling(plan, (target,)), target, bindings)
    lock = exclusive(device.id, Path(gettempdir()) / "kiln-locks")
    with nullcontext() if device.emulated else lock:
        found, bad = _all(folder, history, plan, problems, device, (runs, count))
    setting = Setting(folder, history, plan.lowered.graph, device, bindings)
    out.mkdir(parents=True, exist_ok=True)
    for place, commit in enumerate(history.measured):
        of_commit = [(p, c) for p, c in found if c.commit is commit and c.runs]
        if of_commit:
            path = out / f"{place:03}-{commit.commit[:12]}.json.gz"
            results_file.write(path, results_of(commit, of_commit, setting))
            say(f"{path.name}: {len(of_commit)} problems, {runs} runs")
    return 1 if bad else 0


def _info(device_id: str, target: str) -> DeviceInfo:
    device = open_device(device_id)
    try:
        info = device.info
    finally:
        device.close()
    if info.target != target:
        raise UserError(f"{device_id} is {info.target}, the kernels are for {target}")
    return info


def _all(
    folder: Path,
    history: History,
    plan: Schedule,
    problems: tuple[TuningProblem, ...],
    device: DeviceInfo,
    amounts: tuple[int, int],
) -> tuple[list[tuple[TuningProblem, Contender]], int]:
    manifests = {
        one.commit: read(folder / "commits" / one.commit).manifest for one in history.measured
    }
    found: list[tuple[TuningProblem, Contender]] = []
    bad = 0
    target = find(history.target)
    with BenchEvaluator(device.id, target, plan.lowered, LIMITS, board=device.board) as bench:
        for problem in problems:
            contenders = list(_contenders(folder, history, manifests, problem))
            if (gone := bench.use(problem)) is not None:
                say(f"{problem.title}: {gone.reason}")
                bad += 1
                continue
            right = [one for one in contenders if _checked(bench, one)]
            bad += len(contenders) - len(right)
            say(f"{problem.title}: {len(right)} of {len(history.measured)} commits")
            _timed(bench, right, device, amounts)
            found += [(problem, one) for one in right]
    return found, bad + (not found)


def _contenders(
    folder: Path, history: History, manifests: Mapping[str, Manifest], problem: TuningProblem
) -> Iterator[Contender]:
    """One of each commit that computes the same of the same buffers in one kernel."""
    for commit in history.measured:
        manifest = manifests[commit.commit]
        for call in manifest.calls:
            request = request_of(manifest, call, history.target, problem.bindings)
            if _tensors(request) != _tensors(problem.request):
                continue
            kernel = commit.kernels[request.kernel]
            library = (folder / "code" / kernel.code / kernel.library).resolve()
            key = f"{commit.commit} {request.kernel}"
            here = call.at(problem.bindings)
            yield Contender(commit, manifest, here, BuiltCandidate(key, str(library), request))
            break


def _tensors(request: BenchmarkRequest) -> set[tuple[object, ...]]:
    tensors = (arg for arg in request.args if isinstance(arg, TensorArg))
    return {(one.buffer, one.dtype, one.size, one.stride, one.is_output) for one in tensors}


def _checked(bench: BenchEvaluator, one: Contender) -> bool:
    checked = bench.check(one.candidate, LIMITS.check_s)
    why = checked if isinstance(checked, Rejected) else None
    if isinstance(checked, Check):
        one.check = checked
        why = None if checked.passed else wrong_result(checked)
    if why is not None:
        say(f"  {one.commit.commit[:9]} {one.call.kernel}: {why.reason}")
    return why is None


def _timed(
    bench: BenchEvaluator, contenders: list[Contender], device: DeviceInfo, amounts: tuple[int, int]
) -> None:
    """Run after run; in each, a sample of every commit in turn, every other round from the last
    commit on, so that what changes with time changes all alike."""
    runs, count = amounts
    sample = bench.sampler({one.candidate.key: one.candidate for one in contenders}, LIMITS.run_s)
    batches = {one.candidate.key: _batch(sample, one, device) for one in contenders}
    for _ in range(runs):
        seen = {key: Samples(batch) for key, batch in batches.items() if batch}
        times: dict[str, list[datetime]] = {key: [] for key in seen}
        for place in range(count):
            for key in seen if place % 2 == 0 else reversed(list(seen)):
                times[key].append(datetime.now(UTC))
                timing = sample(key, seen[key].batch)
                times[key].append(datetime.now(UTC))
                if isinstance(timing, Rejected):
                    say(f"  {key}: {timing.reason}")
                else:
                    seen[key].add(timing, 0.0)
        for one in contenders:
            key = one.candidate.key
            if key in seen and one.check is not None:
                bound = one.candidate.request.bindings
                made = summarise(
                    one.call.kernel, device.id, bound, seen[key], one.check, device.emulated
                )
                if isinstance(made, Measurement):
                    one.runs.append((times[key][0], times[key][-1], made))


def _batch(sample: Sampler, one: Contender, device: DeviceInfo) -> int:
    """Launches behind a sample; 0 where it cannot be run."""
    for _ in range(3):  # warm
        timing = sample(one.candidate.key, 1)
        if isinstance(timing, Rejected):
            say(f"  {one.candidate.key}: {timing.reason}")
            return 0
    return default_plan(device.emulated).batch_for(timing.total_ns)
