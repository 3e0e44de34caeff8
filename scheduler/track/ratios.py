"""Ratios of medians with their intervals, for thousands of series at once: pure functions on
numbers.

The interval is Price and Bonett's, of the logarithms' difference (Statistics in Medicine 21, 2002,
"Distribution-free confidence intervals for difference and ratio of medians"): the standard error of
a median follows from two order statistics, with no random draws and no assumption about the
samples' distribution. Student's t with Welch and Satterthwaite's degrees of freedom replaces the
normal distribution, since the error itself is known from few samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.stats import intervals
from scheduler.stats.intervals import Interval

Floats = npt.NDArray[np.float64]

MIN_RATIO_SAMPLES = 5
"""The fewest samples per side: with fewer, no order statistics bound the median."""


@dataclass(frozen=True)
class Medians:
    """Logarithms of medians, their standard errors, and the number of samples of each."""

    logs: Floats
    errors: Floats
    n: npt.NDArray[np.int64]

    def select(self, mask: npt.NDArray[np.bool_]) -> Medians:
        """Return the selected ones."""
        return Medians(self.logs[mask], self.errors[mask], self.n[mask])


@dataclass(frozen=True)
class MedianRatio:
    """The sum of some medians after over the sum before, with its 95% interval; without one if all
    samples of a side are equal. ``n_before`` and ``n_after`` count the samples."""

    ratio: float
    low: float | None
    high: float | None
    n_before: int
    n_after: int

    @property
    def worse(self) -> bool:
        """Whether the ratio is one of longer times."""
        return self.ratio > 1


@dataclass(frozen=True)
class Ratios:
    """Logarithms of ratios after to before, their standard errors, and the degrees of freedom of
    the errors."""

    logs: Floats
    errors: Floats
    freedom: Floats

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the low and high ends, as ratios."""
        from scipy import special  # noqa: PLC0415 - a second of each worker's start

        reach = special.stdtrit(self.freedom, (1 + confidence) / 2) * self.errors
        return np.exp(self.logs - reach), np.exp(self.logs + reach)

    def p_values(self, min_effect: float) -> Floats:
        """Return two-sided p-values of the hypothesis that a ratio is no further from 1 than by the
        fraction ``min_effect``."""
        from scipy import special  # noqa: PLC0415

        distance = np.abs(self.logs) - np.log1p(min_effect)
        p: Floats = np.minimum(1.0, 2 * special.stdtr(self.freedom, -distance / self.errors))
        return p


def medians(samples: Sequence[Floats]) -> Medians:
    """Return the medians of the series' samples: above 0, at least ``MIN_RATIO_SAMPLES`` each."""
    from scipy import special  # noqa: PLC0415

    n = np.fromiter((series.size for series in samples), np.int64, len(samples))
    logs, errors = np.empty(n.size), np.empty(n.size)
    for size in np.unique(n):
        same_size = np.flatnonzero(n == size)
        ordered = np.sort(np.log(np.stack([samples[int(index)] for index in same_size])), axis=1)
        logs[same_size] = np.median(ordered, axis=1)
        rank = max(1, int(np.floor((size + 1) / 2 - np.sqrt(size) + 0.5)))
        tail = special.bdtr(rank - 1, size, 0.5)
        width = ordered[:, size - rank] - ordered[:, rank - 1]
        errors[same_size] = width / (-2 * special.ndtri(tail))
    return Medians(logs, errors, n)


def medians_from_intervals(interval_list: Sequence[Interval]) -> Medians:
    """Return medians from 95% intervals, above 0, whose samples are missing: the width is taken as
    Student's t, the inverse of ``Ratios.interval``. The range of fewer than
    ``intervals.MIN_INTERVAL_SAMPLES`` is two order statistics, as ``medians`` would take them."""
    from scipy import special  # noqa: PLC0415

    n = np.fromiter((interval.n for interval in interval_list), np.int64, len(interval_list))
    median, low, high = (
        np.fromiter(
            (getattr(interval, name) for interval in interval_list), np.float64, len(interval_list)
        )
        for name in ("median", "low", "high")
    )
    reach = np.where(
        n < intervals.MIN_INTERVAL_SAMPLES,
        -special.ndtri(0.5 ** np.maximum(n, 2)),
        special.stdtrit(np.maximum(n - 1, 1), 0.975),
    )
    return Medians(np.log(median), (np.log(high) - np.log(low)) / (2 * reach), n)


def ratios(before: Medians, after: Medians, floor: float) -> Ratios:
    """Return ratios of medians. ``floor`` is how much the median of the same code varies from run
    to run, as a fraction: it remains however many samples a run takes."""
    before_variance, after_variance = before.errors**2 + floor**2, after.errors**2 + floor**2
    freedom = (before_variance + after_variance) ** 2 / (
        before_variance**2 / (before.n - 1) + after_variance**2 / (after.n - 1)
    )
    return Ratios(after.logs - before.logs, np.sqrt(before_variance + after_variance), freedom)


def ratio_of_sums(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]
) -> MedianRatio | None:
    """Return the ratio of the sums of medians, from samples above 0; None if one has too few. Of a
    single pair it is that of ``ratios`` without a floor."""
    counts = [[len(samples) for samples in side] for side in (before, after)]
    if not all(counts) or min(map(min, counts)) < MIN_RATIO_SAMPLES:
        return None
    sums, variances, freedoms, is_exact = [], [], [], False
    for side in (before, after):
        of_side = medians([np.array(samples, dtype=np.float64) for samples in side])
        values = np.exp(of_side.logs)
        sums.append(float(values.sum()))
        variances.append((values / values.sum() * of_side.errors) ** 2)
        freedoms.append(of_side.n - 1)
        is_exact |= bool((of_side.errors == 0).any())  # the clock's resolution would be the error
    ratio, (n_before, n_after) = sums[1] / sums[0], map(sum, counts)
    if is_exact:
        return MedianRatio(ratio, None, None, n_before, n_after)
    variance, freedom = np.concatenate(variances), np.concatenate(freedoms)
    total = Ratios(
        np.log([ratio]),
        np.sqrt(variance.sum(keepdims=True)),
        variance.sum(keepdims=True) ** 2 / (variance**2 / freedom).sum(),
    )
    low, high = total.interval()
    return MedianRatio(ratio, float(low[0]), float(high[0]), n_before, n_after)


def concatenate_ratios(parts: Sequence[Ratios]) -> Ratios:
    """Return the ratios of all parts in order."""
    return Ratios(
        np.concatenate([part.logs for part in parts]),
        np.concatenate([part.errors for part in parts]),
        np.concatenate([part.freedom for part in parts]),
    )


def noise_floor(before: Medians, after: Medians) -> float:
    """Return the noise floor of one side from pairs of the same code in the same environment: their
    spread beyond what their own samples explain."""
    logs = after.logs - before.logs
    spread = 1.4826 * float(np.median(np.abs(logs)))
    explained = float(np.median(before.errors**2 + after.errors**2))
    return float(np.sqrt(max(0.0, spread**2 - explained) / 2))


def adjust_p_values(p: Floats) -> Floats:
    """Return Benjamini and Hochberg's q-values: of the series with a q of at most 5%, 5% are
    expected to be false."""
    order = np.argsort(p)
    ranked = p[order] * p.size / np.arange(1, p.size + 1)
    q = np.empty(p.size)
    q[order] = np.minimum(1.0, np.minimum.accumulate(ranked[::-1])[::-1])
    return q


def geometric_mean(
    series_ratios: Ratios, indices: npt.NDArray[np.intp]
) -> tuple[float, float, float]:
    """Return the geometric mean of some ratios, with its 95% interval. The interval is the
    uncertainty of the mean of these series, not of others."""
    centre = float(series_ratios.logs[indices].mean())
    reach = 1.96 * float(np.sqrt((series_ratios.errors[indices] ** 2).sum())) / indices.size
    return float(np.exp(centre)), float(np.exp(centre - reach)), float(np.exp(centre + reach))
