"""Figures of compared builds: occupancy, resources, and the instruction mix of all sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from codegen_app.kernels.models import Build
from codegen_app.kernels.pages.compare.listings import Listing, largest_function
from codegen_app.kernels.queries.compared_figures import FigureGroup, FigureRow
from codegen_app.kernels.queries.resource_use import resource_use
from scheduler import targets
from scheduler.isa.instructions import Kind, kind_titles
from scheduler.isa.listing import count_kinds
from scheduler.isa.occupancy import rules_of
from scheduler.targets.terms import GENERAL

OCCUPANCY, LIMITER = "Occupancy", "Limited by"
INNER_LOOP = "Instruction mix of the inner loop"
_LARGEST = "of the device function with the most registers"


def figure_groups(
    builds: Sequence[Build], listings: Sequence[Listing | None]
) -> tuple[FigureGroup, ...]:
    """Return the groups that any side has figures of."""
    groups = (
        FigureGroup(
            "Occupancy and resources", (*_occupancy(builds), *_resources(builds)), _LARGEST
        ),
        *_instructions(listings),
    )
    return tuple(group for group in groups if group.rows)


def _occupancy(builds: Sequence[Build]) -> list[FigureRow]:
    uses = [resource_use(build.resources, build.target) for build in builds]
    if not any(uses):
        return []
    texts = []
    for use, build in zip(uses, builds, strict=True):
        rules = rules_of(targets.find(build.target))
        waves, by = rules.waves_heading if rules else ("", "")
        texts.append(f"{use.words} {waves.lower()} {by}" if use else "")
    limiters = tuple(use.limiter if use else "" for use in uses)
    percents = tuple(use.occupancy_percent if use else None for use in uses)
    return [
        FigureRow(OCCUPANCY, "%", percents, tuple(texts), "resident waves of the possible ones"),
        FigureRow(LIMITER, "", (None,) * len(uses), limiters, "what limits occupancy"),
    ]


def _resources(builds: Sequence[Build]) -> list[FigureRow]:
    """Return the compiler's figures; for different vendors only those that all have."""
    vendor_rules = [rules_of(targets.find(build.target)) for build in builds]
    figures = [largest_function(build) for build in builds]
    if len(set(vendor_rules) - {None}) > 1:
        figures = [
            rules.comparable(figure, targets.find(build.target)) if rules and figure else {}
            for rules, figure, build in zip(vendor_rules, figures, builds, strict=True)
        ]
        names = dict.fromkeys(name for figure in figures for name in figure)
    else:
        names = dict.fromkeys(name for rules in vendor_rules if rules for name in rules.numbers)
    rows = [
        FigureRow(name, "", tuple(figure.get(name) for figure in figures))
        for name in names
        if not name.startswith("occupancy")  # a row of its own
    ]
    return [row for row in rows if any(row.values)]


def _instructions(listings: Sequence[Listing | None]) -> list[FigureGroup]:
    """Return counts of all instructions, and the mix of the inner loop and of the whole function.

    Ratios are of counts within one instruction set, and of shares between several: one instruction
    of a GPU may do the work of many of another.
    """
    sides = [listing if listing and listing.main else None for listing in listings]
    present = [side for side in sides if side is not None]
    if not present:
        return []
    is_one_set = all(side.has_instructions_of(present[0]) for side in present)
    whole: list[Mapping[Kind, int] | None] = []
    inner: list[Mapping[Kind, int] | None] = []
    live: list[int | None] = []
    for side in sides:
        function = side.main if side else None
        loop = function.inner_loop() if function else None
        peak = side.reader.live_registers(function) if side and function else None
        whole.append(count_kinds(function.instructions) if function else None)
        inner.append(count_kinds(function.loop_instructions(loop)) if function and loop else None)
        live.append(peak.peak if peak else None)
    terms = {side.target.words for side in present}
    titles = kind_titles(terms.pop() if len(terms) == 1 else GENERAL)
    rows = [
        FigureRow("Live registers", "", tuple(live), note="peak number of live vector registers"),
        FigureRow("Instructions", "", tuple(_total(counts) for counts in whole)),
        FigureRow("Instructions of the inner loop", "", tuple(_total(counts) for counts in inner)),
    ]
    counted = FigureGroup("Instructions", tuple(row for row in rows if any(row.values)), _LARGEST)
    note = "ratios of counts" if is_one_set else "ratios of shares: the instruction sets differ"
    return [
        counted,
        *(
            FigureGroup(title, mix, note)
            for title, counts in ((INNER_LOOP, inner), ("Instruction mix of the function", whole))
            if (mix := _mix(counts, titles, is_one_set))
        ),
    ]


def _total(counts: Mapping[Kind, int] | None) -> int | None:
    return None if counts is None else sum(counts.values())


def _mix(
    sides: Sequence[Mapping[Kind, int] | None], titles: Mapping[Kind, str], is_one_set: bool
) -> tuple[FigureRow, ...]:
    total = sum((Counter(counts) for counts in sides if counts), Counter[Kind]())
    rows = []
    for kind, title in titles.items():
        if not total[kind]:
            continue
        values: list[float | None] = []
        texts = []
        for counts in sides:
            count = counts.get(kind, 0) if counts else None
            share = 100 * count / sum(counts.values()) if counts and count is not None else None
            values.append(count if is_one_set else share)
            texts.append("" if share is None else f"{count} ({share:.0f}%)")
        rows.append(FigureRow(title, "" if is_one_set else "%", tuple(values), tuple(texts)))
    return tuple(rows)
