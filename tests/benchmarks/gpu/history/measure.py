"""Kernels of many commits, checked and timed by today's Kiln, in rounds against drift."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import gettempdir

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measure import Limits, summarise, wrong_result
from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.timing import Sampler, Samples, default_plan
from scheduler.errors import Rejected, UserError
from scheduler.results import file as results_file
from scheduler.results.origin import kiln_commit
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import open_device
from scheduler.runtime.lock import lock_device
from scheduler.targets import find
from scheduler.tuning.evaluator import BenchEvaluator
from tests.benchmarks.gpu.history.export import Setting, results_of
from tests.benchmarks.gpu.history.folder import History, load
from tests.benchmarks.gpu.history.lines import Contender, Line, Model, changed, models
from tests.benchmarks.printing import say

LIMITS = Limits(load_s=60.0, check_s=60.0)
# Of the time, what the first run with all its checks may take: the rest is for the others.
_FIRST = 0.6


@dataclass(frozen=True)
class Amounts:
    """At most so many runs, of so many samples each, within these seconds; of commits in a row
    that changed nothing the first ``controls``."""

    runs: int
    samples: int
    seconds: float
    controls: int


def check(folder: Path, controls: int) -> int:
    """Say what would be measured, without a device; 1 where a kernel of the folder cannot be."""
    history = load(folder).with_controls(controls)
    found, said = models(folder, history)
    for line in said:
        say(f"left out: {line}")
    for model in found:
        for line in model.lines:
            _describe(model, line)
    kernels = sum(len(line.contenders) for model in found for line in model.lines)
    commits = len(history.measured)
    say(f"{commits} commits, {kernels} kernels of them to measure, {len(said)} left out")
    return 1 if said or not kernels else 0


def _describe(model: Model, line: Line) -> None:
    say(f"{model.sample.key} {line.problem.title}: {line.codes} codes")
    for language in dict.fromkeys(one.language for one in line.contenders):
        count = sum(one.language == language for one in line.contenders)
        names = ", ".join(one.commit[:9] for one in changed(line).get(language, ()))
        say(f"  {language}: {count} commits; changed by {names or 'none'}")


def measure(
    folder: Path, out: Path, device_id: str, amounts: Amounts, measured_by: str = ""
) -> int:
    """Write a file for each sample into ``out``, again after every run of all commits, so that what
    is there has equally many runs of each; 1 where a kernel was wrong or none was measured."""
    begun = time.monotonic()
    if not (measured_by := measured_by or kiln_commit()):
        raise UserError("there is no git here: say with --commit which commit measures")
    history = load(folder).with_controls(amounts.controls)
    device = _info(device_id, history.target)
    found, said = models(folder, history)
    for line in said:
        say(f"left out: {line}")
    lock = lock_device(device.id, Path(gettempdir()) / "kiln-locks")
    with nullcontext() if device.emulated else lock, ExitStack() as stack:
        session = _Session(history, device, stack, amounts, begun)

        def save() -> None:
            _save(out, [Setting(folder, history, one, device, measured_by) for one in found])

        bad = session.measure(found, save)
    say(f"done after {time.monotonic() - begun:.0f} s")
    return 1 if bad or not any(one.contenders for model in found for one in model.lines) else 0


def _info(device_id: str, target: str) -> DeviceInfo:
    device = open_device(device_id)
    try:
        info = device.info
    finally:
        device.close()
    if info.target != target:
        raise UserError(f"{device_id} is {info.target}, the kernels are for {target}")
    return info


def _save(out: Path, settings: Sequence[Setting]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for setting in settings:
        results = results_of(setting)
        if results.runs:
            path = out / f"history-{setting.model.sample.key}.json.xz"
            results_file.write(path, results)


@dataclass
class _Session:
    """One device, and the time there is."""

    history: History
    device: DeviceInfo
    stack: ExitStack
    amounts: Amounts
    begun: float

    @property
    def spent(self) -> float:
        return time.monotonic() - self.begun

    def measure(self, found: Sequence[Model], save: Callable[[], None]) -> int:
        """Run after run over all lines; gives how many kernels could not be measured."""
        benches = [self._bench(model) for model in found]
        places = [(bench, line) for bench, model in zip(benches, found, strict=True)
                  for line in model.lines if line.contenders]  # fmt: skip
        bad, longest = 0, 0.0
        for run in range(self.amounts.runs):
            since = self.spent
            if run and since + longest > self.amounts.seconds:
                break
            for place, (bench, line) in enumerate(places):
                if not run and self.spent > _FIRST * self.amounts.seconds:
                    say(f"no time for {len(places) - place} problems")
                    for _, left in places[place:]:
                        left.contenders = []
                    break
                bad += self._line(bench, line, first=not run)
            save()
            longest = max(longest, (self.spent - since) * (0.6 if not run else 1.1))
            say(f"run {run + 1} of all commits is over after {self.spent:.0f} s")
        return bad

    def _bench(self, model: Model) -> BenchEvaluator:
        bench = BenchEvaluator(
            self.device.id,
            find(self.history.target),
            model.plan.lowered,
            LIMITS,
            board=self.device.board,
        )
        return self.stack.enter_context(bench)

    def _line(self, bench: BenchEvaluator, line: Line, *, first: bool) -> int:
        """One run of a problem; those that are wrong, the first time, are taken out of it."""
        if not line.contenders:
            return 0
        if (gone := bench.use(line.problem)) is not None:
            say(f"{line.problem.title}: {gone.reason}")
            lost, line.contenders = len(line.contenders), []
            return lost
        lost = _check(bench, line) if first else 0
        _timed(bench, line.contenders, self.device, self.amounts.samples)
        if first:
            say(
                f"{self.spent:.0f} s: {line.problem.title}: {len(line.contenders)} kernels,"
                f" {_microseconds(line)}"
            )
        return lost


def _microseconds(line: Line) -> str:
    medians = [one.runs[-1][2].median_ns / 1e3 for one in line.contenders if one.runs]
    return f"{min(medians):.1f} to {max(medians):.1f} us" if medians else "not timed"


def _check(bench: BenchEvaluator, line: Line) -> int:
    """Each code against the reference once; leaves the right ones and counts the others."""
    seen: dict[str, Check | Rejected] = {}
    right: list[Contender] = []
    for one in line.contenders:
        key = one.candidate.key
        if key not in seen:
            seen[key] = bench.check(one.candidate, LIMITS.check_s)
        found = seen[key]
        if isinstance(found, Check) and found.passed:
            one.check = found
            right.append(one)
        else:
            why = wrong_result(found) if isinstance(found, Check) else found
            say(f"  {one.label}: {why.reason}")
    lost = len(line.contenders) - len(right)
    line.contenders = right
    return lost


def _timed(
    bench: BenchEvaluator, contenders: Sequence[Contender], device: DeviceInfo, count: int
) -> None:
    """A sample of every commit in turn, every other round from the last commit on, so that what
    changes with time changes all alike."""
    candidates: dict[str, BuiltCandidate] = {one.candidate.key: one.candidate for one in contenders}
    sample = bench.sampler(candidates, LIMITS.run_s)
    batches = {key: _batch(sample, key, device) for key in candidates}
    ready = [one for one in contenders if batches[one.candidate.key]]
    seen = [Samples(batches[one.candidate.key]) for one in ready]
    times: list[list[datetime]] = [[] for _ in ready]
    places = range(len(ready))
    for turn in range(count):
        for place in places if turn % 2 == 0 else reversed(places):
            times[place].append(datetime.now(UTC))
            timing = sample(ready[place].candidate.key, seen[place].batch)
            times[place].append(datetime.now(UTC))
            if isinstance(timing, Rejected):
                say(f"  {ready[place].label}: {timing.reason}")
            else:
                seen[place].add(timing, 0.0)
    for place, one in enumerate(ready):
        assert one.check is not None
        bound, name = one.candidate.request.bindings, one.call.kernel
        made = summarise(name, device.id, bound, seen[place], one.check, device.emulated)
        if isinstance(made, Measurement):
            one.runs.append((times[place][0], times[place][-1], made))


def _batch(sample: Sampler, key: str, device: DeviceInfo) -> int:
    """Launches behind a sample; 0 where it cannot be run."""
    for _ in range(3):  # warm
        timing = sample(key, 1)
        if isinstance(timing, Rejected):
            say(f"  {key}: {timing.reason}")
            return 0
    return default_plan(device.emulated).batch_for(timing.total_ns)
