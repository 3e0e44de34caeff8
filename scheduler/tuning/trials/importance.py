"""Computes which parameters the times of a problem's trials depend on.

A parameter's share is the share of the variance of log time between its values: R squared of the
means by value, corrected for what as many values explain by chance (adjusted R squared, which is
Kelley's epsilon squared; Kelley, An Unbiased Correlation Ratio Measure, PNAS 1935). Log time is
used because ratios of times matter. The interaction of two parameters is what their combinations
explain beyond the best sum of one effect per parameter (adjusted likewise, on the same trials).

Shuffling the times shows how large either gets by chance (a permutation test with the largest of
each shuffle: Westfall and Young, Resampling-Based Multiple Testing, 1993); the shuffles are always
the same. For interactions, the residuals of the single effects are shuffled (Freedman and Lane, A
Nonstochastic Interpretation of Reported Significance Levels, 1983), so that single effects are not
taken for interactions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

METHOD = (
    "share of the variance of log time that lies between a parameter's values"
    " (adjusted R², epsilon squared)"
)
MIN_TRIALS = 12  # trials with a time; with fewer, nothing is computed
_MIN_SPARE_TRIALS = 5  # trials beyond the number of values, for a share to be estimated
_SHUFFLES = 99
_SEED = 20  # the same shuffles for every user
_CHANCE_QUANTILE = 0.95
_MAX_PAIRS = 5
_MIN_INTERACTION = 0.005  # of the variance: smaller interactions are ignored
_TIE_THRESHOLD = 0.7  # Cramer's V from which two parameters can hardly be told apart


@dataclass(frozen=True)
class Share:
    """A parameter: its share (0 to 1) of the variance, and its number of ``values`` in the trials
    with a time; None if there are too few trials for so many values."""

    name: str
    share: float | None
    values: int
    beyond_chance: bool


@dataclass(frozen=True)
class Interaction:
    """What two parameters' combinations explain beyond their single effects, as a share."""

    names: tuple[str, str]
    share: float


@dataclass(frozen=True)
class Tie:
    """Two parameters that hardly vary independently (Cramer's V, 0 to 1): their effects cannot be
    told apart. At 1, one determines the other."""

    names: tuple[str, str]
    association: float


@dataclass(frozen=True)
class Importance:
    """The analysis of ``n`` trials with a time. ``shares`` has the largest first; fewer than 5 of
    100 shuffles of the times give any parameter a share above ``chance``. ``together`` is what the
    single effects of all parameters explain together; the rest is interactions, other influences,
    and noise. ``missing`` says why nothing was computed, "" if it was."""

    n: int
    method: str = METHOD
    shares: tuple[Share, ...] = ()
    chance: float | None = None
    together: float | None = None
    interactions: tuple[Interaction, ...] = ()
    ties: tuple[Tie, ...] = ()
    missing: str = ""


def importance(codes: Mapping[str, Sequence[int]], times: Sequence[float]) -> Importance:
    """Compute the importance from each trial's time (any unit, above 0) and, for each parameter,
    the index of its value."""
    n = len(times)
    if n < MIN_TRIALS:
        return Importance(n, missing=f"{n} trials have a time; at least {MIN_TRIALS} are needed")
    levels: dict[str, Ints] = {}
    for name, values in codes.items():  # renumber the values that occur
        compact = np.unique(np.asarray(values, dtype=np.int64), return_inverse=True)[1]
        if compact.max() > 0:
            levels[name] = compact
    y = np.log(np.asarray(times, dtype=np.float64))
    y -= y.mean()
    if not levels:
        return Importance(n, missing="no parameter varies among the timed trials")
    if float(y @ y) < 1e-18:
        return Importance(n, missing="all trials took the same time")
    shuffled = _permutations(y)
    total = float(y @ y)
    usable = {
        name: level for name, level in levels.items() if n - (level.max() + 1) >= _MIN_SPARE_TRIALS
    }
    explained = {}
    for name, level in usable.items():
        sums, counts = _group_sums(level, shuffled)
        explained[name] = _adjusted_r2((sums**2 / counts).sum(axis=1), total, n, len(counts))
    chance = _chance_level([shares[1:] for shares in explained.values()])
    shares = []
    for name, level in levels.items():
        count = int(level.max()) + 1
        if name in explained and chance is not None:
            share = max(0.0, float(explained[name][0]))
            shares.append(Share(name, share, count, beyond_chance=share > chance))
        else:
            shares.append(Share(name, None, count, beyond_chance=False))
    shares.sort(key=lambda share: (share.share is None, -(share.share or 0.0), share.name))
    residuals, rank, together = y, 0, None
    if usable:  # the best sum of one effect per parameter
        matrix = _dummies(list(usable.values()))
        fitted, _, matrix_rank, _ = np.linalg.lstsq(matrix, y, rcond=None)
        residuals, rank = y - matrix @ fitted, int(matrix_rank)
        if n - rank >= _MIN_SPARE_TRIALS:
            fit = np.asarray([total - float(residuals @ residuals)])
            together = max(0.0, float(_adjusted_r2(fit, total, n, rank)[0]))
    return Importance(
        n=n,
        shares=tuple(shares),
        chance=chance,
        together=together,
        interactions=_interactions(usable, residuals, rank, y),
        ties=_ties(levels),
    )


def _permutations(y: Floats) -> Floats:
    """Return the values, then their shuffles, one per row."""
    rng = np.random.default_rng(_SEED)
    return np.vstack([y, rng.permuted(np.tile(y, (_SHUFFLES, 1)), axis=1)])


def _group_sums(groups: Ints, rows: Floats) -> tuple[Floats, Floats]:
    """Return sums of each row by group (rows x groups), and the size of each group."""
    member = (groups[:, None] == np.arange(groups.max() + 1)).astype(np.float64)
    sums: Floats = rows @ member
    return sums, member.sum(axis=0)


def _adjusted_r2(explained: Floats, total: float, n: int, groups: int) -> Floats:
    """Return adjusted R squared from the sums of squares that ``groups`` means explain."""
    unexplained: Floats = 1.0 - explained / total
    result: Floats = 1.0 - unexplained * (n - 1) / max(1, n - groups)
    return result


def _chance_level(rows: Sequence[Floats]) -> float | None:
    """Return the level that the largest of each shuffle stays below in 95 of 100."""
    if not rows:
        return None
    return max(0.0, float(np.quantile(np.max(rows, axis=0), _CHANCE_QUANTILE)))


def _dummies(levels: Sequence[Ints]) -> Floats:
    """Return a column of ones, and one for each value but the first of each parameter (n x p)."""
    columns = [np.ones((len(levels[0]), 1))]
    columns += [
        (level[:, None] == np.arange(1, level.max() + 1)).astype(np.float64) for level in levels
    ]
    return np.hstack(columns)


def _interactions(
    levels: Mapping[str, Ints], residuals: Floats, rank: int, y: Floats
) -> tuple[Interaction, ...]:
    """Return the pairs whose combinations explain more than any pair does of shuffled values, the
    largest first; ``residuals`` are those of the single effects."""
    if len(levels) < 2 or len(y) - rank < _MIN_SPARE_TRIALS:
        return ()
    rows, total = _permutations(residuals), float(y @ y)
    pair_gains: list[tuple[tuple[str, str], Floats]] = []
    for name, other in combinations(levels, 2):
        gains = _interaction_gain(levels[name], levels[other], rows, total)
        if gains is not None:
            pair_gains.append(((name, other), gains))
    chance = _chance_level([gains[1:] for _, gains in pair_gains])
    if chance is None:
        return ()
    threshold = max(chance, _MIN_INTERACTION)
    significant = [
        Interaction(names, float(gains[0])) for names, gains in pair_gains if gains[0] > threshold
    ]
    significant.sort(key=lambda name: -name.share)
    return tuple(significant[:_MAX_PAIRS])


def _interaction_gain(first: Ints, second: Ints, rows: Floats, total: float) -> Floats | None:
    """Return, for each row, what the combinations explain beyond the single effects, less what as
    many explain by chance, as a share of the ``total``. None if too few trials exceed the number of
    combinations, or the combinations add nothing to the single effects."""
    width = int(second.max()) + 1
    cells, inverse = np.unique(first * width + second, return_inverse=True)
    n = rows.shape[1]
    if n - len(cells) < _MIN_SPARE_TRIALS:
        return None
    sums, counts = _group_sums(inverse, rows)
    matrix = _dummies([cells // width, cells % width]) * np.sqrt(counts)[:, None]
    basis, weights, _ = np.linalg.svd(matrix, full_matrices=False)
    basis = basis[:, weights > weights[0] * 1e-9]
    extra_rank = len(cells) - basis.shape[1]
    if extra_rank <= 0:
        return None
    single_effects = (((sums / np.sqrt(counts)) @ basis) ** 2).sum(axis=1)
    explained = (sums**2 / counts).sum(axis=1)
    noise = ((rows**2).sum(axis=1) - explained) / (n - len(cells))
    gain: Floats = (explained - single_effects - extra_rank * noise) / total
    return gain


def _ties(levels: Mapping[str, Ints]) -> tuple[Tie, ...]:
    ties = []
    for (name, codes), (other_name, other_codes) in combinations(levels.items(), 2):
        counts = np.zeros((int(codes.max()) + 1, int(other_codes.max()) + 1))
        np.add.at(counts, (codes, other_codes), 1)
        n = counts.sum()
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
        chi2 = float(((counts - expected) ** 2 / expected).sum())
        cramers_v = float(min(1.0, np.sqrt(chi2 / (n * (min(counts.shape) - 1)))))
        if cramers_v >= _TIE_THRESHOLD:
            ties.append(Tie((name, other_name), cramers_v))
    return tuple(sorted(ties, key=lambda tie: -tie.association))
