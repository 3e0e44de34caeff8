"""Successive halving: rounds of samples that rank the best candidates.

All start with a few samples; each rung drops the slower half and doubles the samples of the rest
(Jamieson and Talwalkar, 2016). Samples of a rung are taken in interleaved rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from scheduler.benchmark.timing import Sampler, Samples, TimingPlan
from scheduler.errors import Rejected

_FINALISTS = 2


def screen(key: str, sample: Sampler, plan: TimingPlan, floor_ns: float) -> Samples | Rejected:
    """Take a first impression: one warm-up launch, then ``min_samples``. A launch that used up the
    plan's time is itself the sample."""
    warm_up = sample(key, 1)
    if isinstance(warm_up, Rejected):
        return warm_up
    if warm_up.total_ns >= plan.budget_s * 1e9:
        samples = Samples(batch=1)
        samples.add(warm_up, floor_ns)
        return samples
    samples = Samples(batch=plan.batch_for(warm_up.total_ns))
    while samples.count < plan.min_samples and samples.spent_ns < plan.budget_s * 1e9:
        timing = sample(key, samples.batch)
        if isinstance(timing, Rejected):
            return timing
        samples.add(timing, floor_ns)
    return samples


@dataclass(frozen=True)
class HalvingResult:
    """``samples`` of all candidates that did not fail, including those eliminated early; and the
    rejected."""

    samples: Mapping[str, Samples]
    rejected: Mapping[str, Rejected]


def halve(
    screened: Mapping[str, Samples],
    sample: Sampler,
    plan: TimingPlan,
    floor_ns: float,
    stop: Callable[[str], bool],
    keep: Collection[str] = (),
) -> HalvingResult:
    """Rank the fastest, starting from first impressions. ``stop`` is called before each sample of a
    key; if it returns true, everything ends, and the samples so far count. The
    keys of ``keep`` stay until the end, whatever their times."""
    samples, rejected = dict(screened), dict[str, Rejected]()
    remaining = sorted(samples, key=lambda key: (samples[key].median_ns, key))
    rounds = plan.min_samples
    stopped = False
    while remaining and not stopped:
        for _ in range(rounds):
            for key in [key for key in remaining if not plan.done(samples[key])]:
                stopped = stopped or stop(key)
                if stopped:
                    break
                timing = sample(key, samples[key].batch)
                if isinstance(timing, Rejected):
                    rejected[key] = timing
                    remaining.remove(key)
                    del samples[key]
                else:
                    samples[key].add(timing, floor_ns)
        remaining.sort(key=lambda key: (samples[key].median_ns, key))
        if all(plan.done(samples[key]) for key in remaining):
            break
        best = remaining[: max(_FINALISTS, -(-len(remaining) // 2))]
        remaining = [key for key in remaining if key in best or key in keep]
        rounds *= 2
    return HalvingResult(samples, rejected)
