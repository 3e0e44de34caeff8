"""Reductions whose rows are shared by blocks (few long rows), or lie side by side (columns).

With one block per row there is one launch; otherwise each launch runs up to the next sums, and the
following one begins with the results that its blocks left in the workspace, combined in one order
(docs/adr/0029). If unknown sizes decide whether packs are aligned, rows are cut, and a thread's
columns are strided instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduler.codegen.rocm.launch import KERNEL_FUNCTION
from scheduler.codegen.rocm.loop import Guarded, LoopTemplate, print_versions
from scheduler.codegen.rocm.reduction.configs import THREADS, Split, combine_lds_bytes
from scheduler.codegen.rocm.reduction.functions import DeviceFunction, render_functions
from scheduler.codegen.rocm.reduction.problem import ReductionProblem
from scheduler.codegen.rocm.reduction.split_body import (
    STRIDED_COLUMN,
    SplitBody,
    plan_partials,
)
from scheduler.codegen.rocm.reduction.stages import Stage
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import RenderedTemplate

_GATHERING_LANES, _MAX_GATHERING_LANES = 16, 64
_PARTS_PER_LANE = 8  # that a thread combines


@dataclass(frozen=True)
class LaunchPlan:
    """One launch: ``before`` are the stages whose results it takes from the workspace (the last
    one's rows are not stored yet), ``stages`` those that it runs itself; with ``saves`` their sums
    are left to the next launch. With ``totals`` it only combines parts for the others."""

    before: tuple[Stage, ...]
    stages: tuple[Stage, ...]
    saves: bool = False
    totals: bool = False

    @property
    def loops(self) -> bool:
        """Whether it loops over rows."""
        return any(stage.loop for stage in self.stages)

    @property
    def only_combines(self) -> bool:
        """Whether it reads only the workspace of the launch before."""
        return bool(self.before) and not self.loops

    def describe(self, number: int) -> tuple[str, str]:
        """Return the suffix of its function's name, as the launch of that number, and its
        purpose."""
        if self.saves:
            return f"part{number}", "Each block's part of the sums, to the workspace."
        if self.totals:
            return f"total{number}", "All parts together, always in one order, to the workspace."
        name = "rest" if self.loops else "finish"
        return name, "All parts together, always in one order, and what follows from them."

    def print(self, body: SplitBody) -> None:
        """Print its device function with ``body``."""
        body.outer()
        if self.totals:
            (stage,) = self.before
            body.gather(stage)
            body.save(stage, "kSplit")
            return
        for position, stage in enumerate(self.before, 1):
            last = position == len(self.before)
            if stage.reductions and body.columns and (self.loops or not last):
                body.recall(stage)
            elif stage.reductions:
                body.gather(stage)
            body.finish(stage, stores=last)
        for position, stage in enumerate(self.stages, 1):
            body.reduce(stage)
            if self.saves and position == len(self.stages):
                body.save(stage)
            else:
                body.finish(stage, stores=True)


def _plan_launches(stages: Sequence[Stage], split: Split) -> tuple[LaunchPlan, ...]:
    """Return the launches: one with one block per row, otherwise one up to each set of sums.

    Every block of the next launch combines the parts of its rows. With columns that would be as
    much to read as the columns themselves: their parts are combined by a launch in between.
    """
    if split.split == 1:
        return (LaunchPlan((), tuple(stages)),)
    plans: list[LaunchPlan] = []
    done = 0  # stages
    for end, stage in enumerate(stages, 1):
        if stage.reductions:
            plans.append(LaunchPlan(tuple(stages[:done]), tuple(stages[done:end]), saves=True))
            done = end
            if split.columns and any(later.loop for later in stages[done:]):
                plans.append(LaunchPlan((stage,), (), totals=True))
    plans.append(LaunchPlan(tuple(stages[:done]), tuple(stages[done:])))
    return tuple(plans)


def _gather_split(split: Split) -> Split:
    """Return the split of a launch that only combines parts: a few for each thread."""
    if split.columns:
        lanes = max(min(_GATHERING_LANES, split.split), min(_MAX_GATHERING_LANES, split.split // 8))
        return replace(split, columns=1, lanes=lanes)
    return replace(split, vector=1, lanes=max(1, split.split // _PARTS_PER_LANE))


def render_split(
    template: LoopTemplate, problem: ReductionProblem, split: Split
) -> RenderedTemplate:
    """Return the kernel of a reduction that is divided that way."""
    stages = problem.split_stages
    partials, plans = plan_partials(stages), _plan_launches(stages, split)
    versions = _versions(template, problem, split)
    streamed = {template.memory[name].pointer for name in problem.split_streams}

    def only_follows(number: int) -> bool:
        return 0 < number < len(plans) and plans[number].only_combines

    def plan_function(number: int, plan: LaunchPlan) -> DeviceFunction:
        launch_split = split if plan.loops else _gather_split(split)
        packs = problem.column_packs[launch_split.columns] if launch_split.columns else None
        conditions = packs.conditions(template.index, "kColumns") if packs else []

        def body(version: Split, indent: int) -> str:
            if packs:
                pack = packs.pack(strided=STRIDED_COLUMN if version.strided else "")
            else:
                pack = problem.row_packs[version.vector].pack(cut=version.cut)
            printer = template.printer(pack, indent)
            printer.streamed_pointers = streamed
            plan.print(SplitBody(printer, version, partials))
            return str(printer.lines)

        choices = versions if plan.loops else [([], launch_split)]
        text = body(launch_split, 2) if conditions else print_versions(choices, body)
        suffix, about = plan.describe(number)
        return DeviceFunction(
            name=f"KERNEL_NAME_{suffix}" if len(plans) > 1 else KERNEL_FUNCTION,
            about=about if len(plans) > 1 else "",
            body=text,
            split=launch_split,
            blocks=ceil_div(problem.nest.outer_numel, launch_split.rows_per_block),
            parts=launch_split.split if plan.loops else 1,
            lds_bytes=combine_lds_bytes(problem, launch_split),
            loops=plan.loops,
            unit=launch_split.vector * (1 if launch_split.columns else launch_split.lanes),
            aligned=" && ".join(conditions),
            strided=body(replace(launch_split, strided=True), 2) if conditions else "",
            follows=only_follows(number),
            leads=only_follows(number + 1),
        )

    return render_functions(
        template,
        "split_reduction",
        [plan_function(number, plan) for number, plan in enumerate(plans)],
        THREADS,
        split.split,
        split.slots * partials.row_bytes,
        moments=any(stage.has_moments for stage in stages),
        exponentials=any(stage.exponentials for stage in stages),
        cuts=any(version.cut for _, version in versions),
        powers=False,
    )


def _versions(
    template: LoopTemplate, problem: ReductionProblem, split: Split
) -> Sequence[Guarded[Split]]:
    """Return the versions of the loop over a row; several if sizes select one."""
    packs, cut_split = problem.row_packs[split.vector], replace(split, cut=True)
    conditions = packs.conditions(template.index)
    if split.columns:
        return [([], split)]
    if problem.cuts_always(split.vector):
        return [([], cut_split)]
    if not conditions:
        return [([], split)]
    if packs.lead is None:
        return [(conditions, split), ([], replace(split, vector=1))]
    if all(access in packs.movable_if_cut for access in packs.aligned):
        return [([], cut_split)]
    return [(conditions, split), ([], cut_split)]
