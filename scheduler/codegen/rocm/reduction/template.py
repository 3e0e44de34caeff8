"""Reduction kernels: a row is shared by one thread, part of a wave, several waves, or blocks.

A group's stages run one after the other in the same threads: a loop over the inner axes for each
set of reductions that can share one, their combination across the threads of a row, then the
computations done once per row. With ``keep``, elements that several loops read stay in registers.
If unknown sizes decide whether rows begin at whole packs, or fit into registers, a kernel has each
version and checks first; rows that begin anywhere are cut at aligned packs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from scheduler.codegen.rocm.loop import Guarded, LoopTemplate, print_versions
from scheduler.codegen.rocm.reduction.accumulators import accumulator_bytes
from scheduler.codegen.rocm.reduction.configs import (
    THREADS,
    configs,
    kept_steps,
    parse_split,
    reject,
)
from scheduler.codegen.rocm.reduction.default import default_config
from scheduler.codegen.rocm.reduction.problem import MIN_CUTTING_LANES, ReductionProblem
from scheduler.codegen.rocm.reduction.rows import LoopVersion, RowBody
from scheduler.codegen.rocm.reduction.split import render_split
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.ir.index.facts import is_multiple


class ReductionTemplate(LoopTemplate):
    """Reductions and pointwise members over the same rows."""

    name = "reduction"

    @cached_property
    def problem(self) -> ReductionProblem:
        """Return what every part of the template reads, computed once."""
        nest = self.nest
        rows, steps = self.hint(nest.outer_numel), self.hint(nest.inner_numel)
        return ReductionProblem(nest, self.targets, rows, steps)

    def configs(self) -> Sequence[Config]:
        return configs()

    def reject(self, config: Config) -> Rejected | None:
        return reject(self.problem, config)

    def default_config(self) -> Config:
        return default_config(self.problem)

    def render(self, config: Config) -> RenderedTemplate:
        split = parse_split(config)
        if split is not None:
            return render_split(self, self.problem, split)
        lanes, vector = int(config["lanes"]), int(config["vector"])
        threads = max(lanes, THREADS)
        steps_in_registers = kept_steps(self.problem, lanes, vector) if config["keep"] else 0
        choices = self._versions(lanes, vector, steps_in_registers)
        versions = [version for _, version in choices]
        stages = [stage for version in versions for stage in version.stages(self.problem)]
        scratch_size = 0
        for version in versions if lanes > 32 else ():
            # The widest combined value; two if several are combined in sequence.
            loops = version.stages(self.problem)
            nbytes = [accumulator_bytes(s, stage) for stage in loops for s in stage.reductions]
            scratch_size = max(scratch_size, max(nbytes, default=0) * min(len(nbytes), 2))

        def body(version: LoopVersion, indent: int) -> str:
            return self._body(version, indent, has_scratch=scratch_size > 0)

        row_steps, rows = self.nest.inner_numel, self.nest.outer_numel
        return self.render_kernel(
            ceil_div(rows, threads // lanes),
            threads,
            threads // 32 * scratch_size,
            lanes=lanes,
            vector=vector,
            steps=steps_in_registers,
            xnumel=self.index(rows),
            full=is_multiple(rows, threads // lanes),
            rnumel=self.index(row_steps),
            scratch_size=scratch_size,
            cuts=any(version.cut for version in versions),
            exponentials=any(stage.exponentials for stage in stages),
            body=print_versions(choices, body),
        )

    def _versions(self, lanes: int, vector: int, steps: int) -> Sequence[Guarded[LoopVersion]]:
        """Return the versions of the loop over a row; several if sizes select one."""
        problem, packs = self.problem, self.problem.row_packs[vector]
        conditions, cut = packs.conditions(self.index), problem.cuts_always(vector)
        fit_condition = "rnumel <= kLanes * kVector * kSteps"
        choices: list[Guarded[LoopVersion]] = [(conditions, LoopVersion(vector, steps, cut))]
        may_fit = steps and not self.nest.inner_numel.is_Integer
        if may_fit:
            choices = [
                ([fit_condition, *conditions], LoopVersion(vector, steps, cut)),
                (conditions, LoopVersion(vector, cut=cut)),
            ]
        if not conditions:
            return choices
        if lanes < MIN_CUTTING_LANES or packs.lead is None:
            return [*choices, ([], LoopVersion())]
        if may_fit and problem.shared_loads(vector, cut=True):
            choices.append(([fit_condition], LoopVersion(vector, steps, cut=True)))
        return [*choices, ([], LoopVersion(vector, cut=True))]

    def _body(self, version: LoopVersion, indent: int, *, has_scratch: bool) -> str:
        """Return the statements of one version, which are the same for all numbers of lanes with
        the same use of scratch."""
        key = version, indent, has_scratch
        if key not in self._bodies:
            packs = self.problem.row_packs[version.vector]
            printer = self.printer(packs.pack(cut=version.cut), indent)
            RowBody(self.problem, version, printer, has_scratch=has_scratch).print()
            self._bodies[key] = str(printer.lines)
        return self._bodies[key]

    @cached_property
    def _bodies(self) -> dict[tuple[LoopVersion, int, bool], str]:
        return {}
