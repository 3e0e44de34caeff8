"""Pointwise kernels as HIP C++."""

from __future__ import annotations

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.launch import ceil_div
from scheduler.codegen.loops import pointwise
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.launch import LaunchTemplate
from scheduler.codegen.template import Config, RenderedTemplate


class PointwiseTemplate(pointwise.PointwiseTemplate[ROCmTemplateKernel], LaunchTemplate):
    """Several stores over one set of axes, vectorised along the innermost one where legal."""

    def render(self, config: Config) -> RenderedTemplate:
        threads, vector = int(config["threads"]), int(config["vector"])
        lines = self.lines()
        printer = NestPrinter(self.nest, lines, self.memory, self.pack(vector), self.renamed)
        printer.decode("xindex", self.nest.outer)
        printer.run(self.nest.statements, printer.store)
        blocks = ceil_div(self.nest.outer_numel, threads * vector)
        return self.finished(
            blocks,
            threads,
            0,
            vector=vector,
            numel=printer.index(self.nest.outer_numel),
            body=lines,
        )
