"""Pointwise kernels in CuteDSL: any fused trees whose functions CuteDSL supports."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.codegen.cutedsl.jinja_templates import kernel_template
from scheduler.codegen.cutedsl.kernel import CuteDSLTemplateKernel
from scheduler.codegen.cutedsl.nest import NestPrinter
from scheduler.codegen.cutedsl.template import CuteDSLTemplate
from scheduler.codegen.cutedsl.types import type_obstacle
from scheduler.codegen.cutedsl.values import obstacle
from scheduler.codegen.kernel import Launch
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops import pointwise
from scheduler.codegen.names import PLACEHOLDER
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.ir.index.functions import as_expr


class PointwiseTemplate(pointwise.PointwiseTemplate[CuteDSLTemplateKernel], CuteDSLTemplate):
    """Several stores over one set of axes, vectorised along the innermost one where legal."""

    name: ClassVar[str] = "cutedsl_pointwise"

    def new_kernel(self) -> CuteDSLTemplateKernel:
        return CuteDSLTemplateKernel()

    @cached_property
    def _obstacle(self) -> str:
        stored = (type_obstacle(self.nest.buffer(name).dtype) for name in self.nest.outputs)
        found = (obstacle(statement.value) for statement in self.nest.statements)
        return next(filter(None, (*stored, *found)), "")

    def reject(self, config: Config) -> Rejected | None:
        if self._obstacle:
            return illegal(self._obstacle)
        return super().reject(config)

    @property
    def _index_type(self) -> str:
        return "cutlass.Int64" if self.interface.wide else "cutlass.Int32"

    def render(self, config: Config) -> RenderedTemplate:
        threads, vector = int(config["threads"]), int(config["vector"])
        lines = self.lines(2)
        pack = self.pack(vector)
        printer = NestPrinter(
            self.nest, lines, self.memory, pack, self.symbol_renames, index_type=self._index_type
        )
        printer.decode("xindex", self.nest.outer)
        printer.run(self.nest.statements, printer.store)
        blocks = ceil_div(self.nest.outer_numel, threads * vector)
        host = IndexPrinter(wide=True, ranges=self.ranges, names=self.symbol_renames)
        kernel, zero, one = self.kernel, as_expr(0), as_expr(1)
        partial = self.partial(
            kernel_template("pointwise"),
            lambda: kernel.constants(self.interface.points, zero, self.symbol_renames),
            threads=threads,
            vector=vector,
            parameters=kernel.parameters,
            arguments=kernel.names,
            block=f"{self._index_type}(block)" if self.interface.wide else "block",
            numel=printer.index(self.nest.outer_numel),
            grid=host(blocks),
            body=lines,
        )
        source, origins = self.marks.finish(partial.finalize_all())
        grid = (self.rename_symbols(blocks), one, one)
        # CuteDSL's device functions take arguments prepared by the host function.
        launch = Launch(f"{PLACEHOLDER}_kernel_0", grid, (threads, 1, 1), 0, ())
        values = kernel.call_kernel(PLACEHOLDER, self.node.nodes).args
        return RenderedTemplate(source, kernel.args, values, (launch,), zero, origins)
