"""Pointwise kernels in CuteDSL: any fused trees whose functions CuteDSL supports."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from scheduler.codegen.cutedsl.kernel import CuteDSLTemplateKernel
from scheduler.codegen.cutedsl.nest import NestPrinter
from scheduler.codegen.cutedsl.template import LaunchTemplate
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops import pointwise
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.ir.index.functions import as_expr


class PointwiseTemplate(pointwise.PointwiseTemplate[CuteDSLTemplateKernel], LaunchTemplate):
    """Several stores over one set of axes, vectorised along the innermost one where legal."""

    name: ClassVar[str] = "cutedsl_pointwise"

    @cached_property
    def _obstacle(self) -> str:
        return self.nests_obstacle([self.nest])

    def reject(self, config: Config) -> Rejected | None:
        if self._obstacle:
            return illegal(self._obstacle)
        return super().reject(config)

    def render(self, config: Config) -> RenderedTemplate:
        threads, vector = int(config["threads"]), int(config["vector"])
        lines = self.lines(2)
        printer = NestPrinter(
            *(self.nest, lines, self.memory, self.pack(vector), self.symbol_renames),
            index_type=self.index_type,
        )
        printer.decode("xindex", self.nest.outer)
        printer.run(self.nest.statements, printer.store)
        blocks = ceil_div(self.nest.outer_numel, threads * vector)
        return self.render_launches(
            [("kernel", blocks, threads, 0)],
            as_expr(0),
            threads=threads,
            vector=vector,
            block=f"{self.index_type}(block)" if self.interface.wide else "block",
            numel=printer.index(self.nest.outer_numel),
            grid=self.host(blocks),
            body=lines,
        )
