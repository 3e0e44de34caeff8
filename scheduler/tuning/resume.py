"""A resumed run: earlier measurements are reused, not taken again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.timing import Sampler
from scheduler.codegen.caller import TemplateCaller
from scheduler.errors import Rejected
from scheduler.runtime.device import Timing
from scheduler.tuning.evaluator import Evaluator
from scheduler.tuning.problems import TuningProblem


class ResumedEvaluator:
    """Answers from earlier measurements until the last rounds. Those compare, so all their
    candidates are timed together. ``measured`` is keyed by the kernel's name."""

    def __init__(
        self, evaluator: Evaluator, measured: Mapping[str, Measurement | Rejected]
    ) -> None:
        self._evaluator = evaluator
        self._measured = measured

    def use(self, problem: TuningProblem) -> Rejected | None:
        return self._evaluator.use(problem)

    def check(self, candidate: BuiltCandidate, max_s: float) -> Check | Rejected:
        """Return the earlier result, else check now."""
        known = self._measured.get(candidate.request.kernel)
        if known is None:
            return self._evaluator.check(candidate, max_s)
        return known if isinstance(known, Rejected) else known.check

    def check_edges(
        self, problem: TuningProblem, caller: TemplateCaller, library: str
    ) -> Rejected | None:
        return self._evaluator.check_edges(problem, caller, library)

    def sampler(self, candidates: Mapping[str, BuiltCandidate], max_s: float) -> Sampler:
        """Return the earlier samples for a single candidate; several are timed."""
        if len(candidates) == 1:
            (candidate,) = candidates.values()
            known = self._measured.get(candidate.request.kernel)
            if isinstance(known, Measurement):
                return _replay(known)
        return self._evaluator.sampler(candidates, max_s)


def _replay(measurement: Measurement) -> Sampler:
    """Return a sampler that repeats the samples of a measurement, which are of one launch each."""
    readings = measurement.readings
    launches = cycle(
        Timing(ns, {name: values[i] for name, values in readings.items() if i < len(values)})
        for i, ns in enumerate(measurement.samples_ns)
    )

    def sample(_: str, batch: int) -> Timing:
        launch = next(launches)
        return replace(launch, total_ns=launch.total_ns * batch)

    return sample
