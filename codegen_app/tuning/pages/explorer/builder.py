"""Build an explorer from trials and their configurations, for any page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from codegen_app.tuning.pages.explorer.model import BestPoint, Explorer, Trial
from scheduler.codegen.kernel import ConfigValue
from scheduler.tuning.trials.importance import Importance, importance
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
    source: ExplorerSource, found: Sequence[Parameter], asked: GridQuery
) -> Explorer:
    """Build everything that the page shows; ``found`` are the source's parameters."""
    shares = _importance(source.trials, found)
    place = {share.name: at for at, share in enumerate(shares.shares)}
    ordered = sorted(found, key=lambda one: (place.get(one.name, len(place)), one.name))
    outcomes = [TrialOutcome(at, one.time_us, one.state) for at, one in enumerate(source.trials)]
    states = Counter(one.state for one in source.trials)
    for state, configs in source.others.items():
        states[state] += len(configs)
    short = [one for one in ordered if len(one.values) <= _MAX_VALUES]
    return Explorer(
        node=source.node,
        problem=source.problem,
        times=source.times,
        where=source.where,
        sizes=source.sizes,
        ordered_by=source.ordered_by,
        states=dict(states.most_common()),
        trials=tuple(source.trials),
        parameters=tuple(ordered),
        best=_best_points(source.trials),
        importance=shares,
        slices=tuple(_slice(one, source, outcomes) for one in short),
        grid=_grid(short, outcomes, asked),
        cell=asked.cell,
        keys={one.name: source.key(one.name) for one in ordered},
        nodes=source.nodes,
        modelled_where=source.modelled_where,
    )


def _importance(trials: Sequence[Trial], found: Sequence[Parameter]) -> Importance:
    timed = [(at, one.time_us) for at, one in enumerate(trials) if one.time_us is not None]
    codes = {one.name: [one.codes[at] for at, _ in timed] for one in found}
    return importance(codes, [time for _, time in timed])


def _best_points(trials: Sequence[Trial]) -> tuple[BestPoint, ...]:
    """Return a point for each trial that was faster than all before it."""
    ordered = [(one.order, one) for one in trials if one.order is not None]
    points: list[BestPoint] = []
    for order, one in sorted(ordered, key=lambda pair: pair[0]):
        if one.time_us is not None and (not points or one.time_us < points[-1].time_us):
            points.append(BestPoint(order, one.at_s, one.time_us))
    return tuple(points)


def _slice(parameter: Parameter, source: ExplorerSource, outcomes: Sequence[TrialOutcome]) -> Slice:
    """Return a parameter's values; the counts include configurations without a trial."""
    found = slice_of(parameter, outcomes)
    counts: dict[str, Counter[str]] = {value.value: Counter() for value in found.values}
    for state, configs in source.others.items():
        for config in configs:
            text = str(config.get(parameter.name))
            if text in counts:
                counts[text][state] += 1
    values = (
        replace(one, group=replace(one.group, others={**one.group.others, **counts[one.value]}))
        if counts[one.value]
        else one
        for one in found.values
    )
    return Slice(found.name, tuple(values))


def _grid(
    found: Sequence[Parameter], outcomes: Sequence[TrialOutcome], asked: GridQuery
) -> Grid | None:
    """Return the grid of the two requested parameters, else of the two most important ones."""
    by_name = {one.name: one for one in found}
    names = [name for name in (asked.across, asked.down) if name in by_name]
    names += [name for name in by_name if name not in names]
    if len(names) < 2:
        return None
    across = asked.across if asked.across in by_name else next(n for n in names if n != asked.down)
    down = (
        asked.down
        if asked.down in by_name and asked.down != across
        else next(name for name in names if name != across)
    )
    return grid_of(by_name[across], by_name[down], outcomes)
