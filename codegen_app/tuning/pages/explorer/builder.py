"""Build an explorer from trials and their configurations, for any page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from codegen_app.tuning.pages.explorer.model import BestPoint, Explorer, Trial
from codegen_app.web.row import build_row
from scheduler.codegen.kernel import ConfigValue
from scheduler.tuning.trials.importance import importance
from scheduler.tuning.trials.parameters import Parameter, varying_parameters
from scheduler.tuning.trials.slices import Grid, Slice, TrialOutcome, grid_of, slice_of

BEST, MEDIAN = "best", "median"
CELLS = (BEST, MEDIAN)
LANGUAGE = "language"
_MAX_VALUES = 60  # values of a parameter that is shown value by value
Config = Mapping[str, ConfigValue]


@dataclass(frozen=True)
class ExplorerSource:
    """A page's data: trials with their configurations, configurations without a trial by state, and
    what the figures describe. ``key`` returns the table column of a parameter."""

    trials: Sequence[Trial]
    configs: Sequence[Config]
    node: str
    problem: str
    times: str
    where: str
    sizes: Mapping[str, int]
    ordered_by: str
    key: Callable[[str], str]
    others: Mapping[str, Sequence[Config]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    modelled_where: str = ""


@dataclass(frozen=True)
class GridQuery:
    """The address's request for the two-parameter table: the parameters ("" for the two most
    important) and what a cell shows."""

    across: str = ""
    down: str = ""
    cell: str = BEST


def parameters_of(source: ExplorerSource) -> tuple[Parameter, ...]:
    """Return the parameters in which the trials differ."""
    others = [config for configs in source.others.values() for config in configs]
    return varying_parameters(source.configs, others)


def build_explorer(
    source: ExplorerSource, parameters: Sequence[Parameter], query: GridQuery
) -> Explorer:
    """Build everything that the page shows; ``parameters`` are those of the source."""
    trials = source.trials
    timed = [(at, trial.time_us) for at, trial in enumerate(trials) if trial.time_us is not None]
    codes = {row.name: [row.codes[at] for at, _ in timed] for row in parameters}
    shares = importance(codes, [time for _, time in timed])
    rank = {share.name: at for at, share in enumerate(shares.shares)}
    ordered = sorted(parameters, key=lambda row: (rank.get(row.name, len(rank)), row.name))
    outcomes = [TrialOutcome(at, trial.time_us, trial.state) for at, trial in enumerate(trials)]
    states = Counter(trial.state for trial in trials)
    for state, configs in source.others.items():
        states[state] += len(configs)
    best: list[BestPoint] = []  # a point for each trial that was faster than all before it
    in_order = [(trial.order, trial) for trial in trials if trial.order is not None]
    for order, trial in sorted(in_order, key=itemgetter(0)):
        if trial.time_us is not None and (not best or trial.time_us < best[-1].time_us):
            best.append(BestPoint(order, trial.at_s, trial.time_us))
    short = [row for row in ordered if len(row.values) <= _MAX_VALUES]
    return build_row(
        Explorer,
        source,
        states=dict(states.most_common()),
        trials=tuple(trials),
        parameters=tuple(ordered),
        best=tuple(best),
        importance=shares,
        slices=tuple(_slice(row, source, outcomes) for row in short),
        grid=_grid(short, outcomes, query),
        cell=query.cell,
        keys={row.name: source.key(row.name) for row in ordered},
    )


def _slice(parameter: Parameter, source: ExplorerSource, outcomes: Sequence[TrialOutcome]) -> Slice:
    """Return a parameter's values; the counts include configurations without a trial."""
    timed = slice_of(parameter, outcomes)
    counts: dict[str, Counter[str]] = {value.value: Counter() for value in timed.values}
    for state, configs in source.others.items():
        for config in configs:
            text = str(config.get(parameter.name))
            if text in counts:
                counts[text][state] += 1
    values = (
        replace(
            value, group=replace(value.group, others={**value.group.others, **counts[value.value]})
        )
        if counts[value.value]
        else value
        for value in timed.values
    )
    return Slice(timed.name, tuple(values))


def _grid(
    parameters: Sequence[Parameter], outcomes: Sequence[TrialOutcome], query: GridQuery
) -> Grid | None:
    """Return the grid of the two requested parameters, else of the two most important ones."""
    by_name = {row.name: row for row in parameters}
    if len(by_name) < 2:
        return None
    across = query.across
    if across not in by_name:
        across = next(name for name in by_name if name != query.down)
    down = query.down
    if down not in by_name or down == across:
        down = next(name for name in by_name if name != across)
    return grid_of(by_name[across], by_name[down], outcomes)
