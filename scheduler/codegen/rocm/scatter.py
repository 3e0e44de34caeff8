"""Scatter kernels: one launch writes the initial result, the next one combines each source into its
destination by an atomic operation."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.rocm.jinja_templates import kernel_template
from scheduler.codegen.rocm.launch import KERNEL_FUNCTION, LaunchTemplate
from scheduler.codegen.rocm.reduction.accumulators import OPERATIONS
from scheduler.codegen.single_launch import InterfaceSpec, ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.operations import Lowered, Pointwise, Scatter, Store
from scheduler.ir.values import Const, Load, Masked
from scheduler.targets import Target

_THREADS = (256, 128, 512, 64)
_BEGIN_FUNCTION = "KERNEL_NAME_begin"


class ScatterTemplate(LaunchTemplate):
    """One ``Scatter`` operation, with a thread for each source."""

    name = "scatter"

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        (member,) = node.members
        if not isinstance(member, Scatter):
            raise ValueError(f"{node.name} has members that are not scatters")
        self.operation = member
        initial = Pointwise(member.name, member.axes, member.store, member.nodes)
        self.begin = LoopNest([initial], lowered.buffers, self.ranges)
        # In the sources' own order, which is their memory order; the update of a destination is
        # modelled as a read and a write of it.
        update = Masked(member.condition, member.value, member.target)
        store = Store(member.store.buffer, member.index, update, member.nodes)
        source_update = Pointwise(member.name, member.sources, store, member.nodes)
        self.sources = LoopNest([source_update], lowered.buffers, self.ranges, arrange=False)

    @cached_property
    def interface(self) -> InterfaceSpec:
        nests = (self.begin, self.sources)
        inputs = dict.fromkeys(name for nest in nests for name in nest.inputs)
        return InterfaceSpec(
            tuple(inputs),
            self.begin.outputs,
            tuple(sorted({name for nest in nests for name in nest.symbols()})),
            self.begin.outer_numel,
            any(nest.needs_64_bits() for nest in nests),
        )

    def configs(self) -> Sequence[Config]:
        return [{"threads": threads} for threads in _THREADS]

    def reject(self, config: Config) -> Rejected | None:  # noqa: ARG002 - all are valid
        return None

    def default_config(self) -> Config:
        return {"threads": _THREADS[0]}

    def render(self, config: Config) -> RenderedTemplate:
        threads = int(config["threads"])
        begin_printer = self.nest_printer(self.begin)
        begin_printer.decode("xindex", self.begin.outer)
        begin_printer.run(self.begin.statements, begin_printer.store)
        source_printer = self._print_sources()
        blocks = ceil_div(self.begin.outer_numel, threads)
        source_blocks = ceil_div(self.sources.outer_numel, threads)
        text = kernel_template(self.name).render(
            header=self.header(),
            index_type=self.index_type,
            threads=threads,
            parameters=self.parameters,
            host=self.host(blocks),
            numel=begin_printer.index(self.begin.outer_numel),
            begin=begin_printer.lines,
            source_numel=source_printer.index(self.sources.outer_numel),
            body=source_printer.lines,
            sources=self.host(self.sources.outer_numel).grid,
            source_grid=self.host(source_blocks).grid,
        )
        launches = (
            self.make_launch(_BEGIN_FUNCTION, blocks, threads),
            self.make_launch(KERNEL_FUNCTION, source_blocks, threads),
        )
        return self.finish_render(text, launches)

    def _print_sources(self) -> NestPrinter:
        """Print the update of a source's destination, if its condition holds."""
        printer = self.nest_printer(self.sources)
        printer.decode("xindex", self.sources.outer)
        (statement,) = self.sources.statements
        update = statement.value
        assert isinstance(update, Masked) and isinstance(update.other, Load)
        values, target = printer.values, update.other
        cpp, pointer = target.dtype.cpp, values.pointer(target.buffer)
        is_unconditional = isinstance(update.condition, Const) and update.condition.value
        with values.mark_nodes(statement.store.nodes), ExitStack() as open_blocks:
            if not is_unconditional:
                condition = values.value(update.condition)
                open_blocks.enter_context(printer.lines.block(f"if ({condition})"))
                open_blocks.enter_context(values.scope())
            offset, value = values.offset(target), values.value(update.value)
            operation = f"{OPERATIONS[self.operation.kind]}<{cpp}>()"
            printer.lines.add(f"kiln::combine<{cpp}>({pointer} + {offset}, {value}, {operation});")
        return printer
