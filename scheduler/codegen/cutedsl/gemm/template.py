"""The matrix product for sm_90a in CuteDSL: TMA loads, multiplying warpgroups, and persistent
blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import sympy

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.contraction.interface import ContractionInterface
from scheduler.codegen.contraction.template import CONFIGURATION, ContractionTemplate
from scheduler.codegen.cutedsl.gemm.config import (
    FUSED,
    MULTIPROCESSORS,
    GemmConfig,
    GemmProblem,
    all_configs,
    default_config,
    reject,
)
from scheduler.codegen.cutedsl.gemm.hooks import ROW_VECTOR, ContractionHooks
from scheduler.codegen.cutedsl.gemm.operands import (
    COPY_THREADS,
    TmaOperands,
    align_bytes,
    print_int64,
)
from scheduler.codegen.cutedsl.jinja_templates import kernel_template
from scheduler.codegen.cutedsl.kernel import CuteDSLTemplateKernel
from scheduler.codegen.cutedsl.template import CuteDSLTemplate, has_epilogue
from scheduler.codegen.cutedsl.types import type_name
from scheduler.codegen.kernel import Launch
from scheduler.codegen.names import PLACEHOLDER
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import Lowered
from scheduler.targets import Target

_COLUMN_WIDTHS = (8, 2, 1)
_SUM_BYTES = 4  # f32
_ONE = sympy.Integer(1)
_WGMMA_ROWS = 64


class GemmTemplate(ContractionTemplate[GemmConfig], CuteDSLTemplate):
    """A matrix product in CuteDSL."""

    name: ClassVar[str] = "cutedsl_gemm"

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        self.interface = ContractionInterface(
            self._members, lowered.buffers, lowered.graph.symbols, CuteDSLTemplateKernel()
        )
        self._hooks = ContractionHooks(self.interface, self.marks)
        self._direct_operands = TmaOperands(self.interface, self._hooks)
        self._windows = TmaOperands(self.interface, self._hooks, windows=True)

    # ---- configurations

    @cached_property
    def problem(self) -> GemmProblem:
        interface, operands = self.interface, self._direct_operands
        return GemmProblem(
            interface.element,
            *interface.extents(hint_bindings(self.lowered.graph.symbols)),
            operands.obstacles[0],
            next(filter(None, operands.obstacles[1:]), ""),
            operands.mixed_obstacle or self._hooks.obstacle(),
            has_epilogue(self.node),
            operands.window_obstacle,
            operands.window_channels,
        )

    @property
    def is_preferred(self) -> bool:
        """Whether there are enough rows. Fewer rows are limited by the arrival of the other
        operand, which HIP C++'s small tiles read without waiting for each other."""
        return self.problem.m > _WGMMA_ROWS

    def _operands(self, config: GemmConfig) -> TmaOperands:
        """Return the operands. With a fused prologue that is a window, A is loaded in place."""
        return self._windows if config.prologue == FUSED else self._direct_operands

    def configs(self) -> Sequence[Config]:
        return [config.items() for config in all_configs(self.problem)]

    def reject(self, config: Config) -> Rejected | None:
        return reject(GemmConfig.create(config), self.problem, self.targets)

    def default_config(self) -> Config:
        config = default_config(self.problem, self.targets)
        if config is None:
            raise self.no_config_error()
        return config.items()

    # ---- source

    def render(self, config: Config) -> RenderedTemplate:
        tiling, kernel = GemmConfig.create(config), self.interface.kernel
        kind = (tiling.schedule, tiling.split_k, tiling.epilogue, tiling.prologue)
        constants = [f"{name} = {value}" for name, value in tiling.numbers().items()]
        source, origins = self.insert_constants(kind, tiling, "\n".join(constants))
        return RenderedTemplate(
            source=source,
            args=kernel.args,
            values=kernel.call_kernel(PLACEHOLDER, self.node.nodes).args,
            launches=self._launches(tiling),
            workspace_bytes=self._workspace_bytes(tiling),
            line_origins=origins,
        )

    def source(self, config: GemmConfig) -> str:
        interface, operands = self.interface, self._operands(config)
        pack_contexts = [operands.pack_context(pack) for pack in operands.packed_operands]
        members = [self._member(i, config) for i in range(len(interface.members))]

        def constants() -> str:
            return interface.kernel.constants(
                interface.points, self._workspace_bytes(config), elements=self._hooks.elements()
            )

        partial = self.partial(
            kernel_template("gemm"),
            constants,
            configuration=CONFIGURATION,
            element=type_name(interface.element),
            a_k_major=operands.along_k[0],
            b_k_major=operands.along_k[1],
            a=None if operands.im2col() else operands.tensor(0),
            windows=operands.im2col(),
            multiprocessors=MULTIPROCESSORS,
            copy_threads=COPY_THREADS,
            parameters=interface.kernel.parameters,
            names=", ".join(interface.kernel.names),
            functions=[
                *(pack["definition"] for pack in pack_contexts),
                *(text for member in members for text in member["definitions"]),
            ],
            members=members,
            packs=pack_contexts,
            pingpong=config.pingpong,
            split=config.split_k > 1,
            separate=config.separate_sums,
            multiplies=self.marks.mark(self.contraction_nodes),
        )
        return partial.finalize_all()

    def _member(self, position: int, config: GemmConfig) -> dict[str, Any]:
        member = self.interface.members[position]
        vector, columns_at_once = self._vector(position), self._columns_at_once(position)
        hooks = [self._hooks.epilogue(position, vector)]
        # Results that cannot be stored as exchanged for ``columns_at_once``, because rows begin
        # anywhere, can be shifted to allow it.
        can_shift = vector < ROW_VECTOR and self._hooks.holds_rows(position)
        if can_shift and not config.separate_sums:
            hooks.append(self._hooks.elements_of_row(position))
        first_tile = " + ".join(f"tiles_n{other}" for other in range(position)) or "0"
        return {
            "suffix": self._suffix(position),
            "columns": member.columns,
            "before": f"({first_tile})" if position > 1 else first_tile,
            "vector": vector,
            "stored": columns_at_once if config.separate_sums else vector,
            "definitions": [hook.definition for hook in hooks],
            "epilogue": hooks[0].call,
            "elements_of_row": hooks[1].call if len(hooks) > 1 else None,
            "b": self._operands(config).tensor(1 + position),
            "sums": print_int64(self._sums_offset(position, config)),
            "finish_blocks": print_int64(self._finish_blocks(position)),
        }

    def _suffix(self, position: int) -> str:
        return str(position) if self.interface.is_grouped else ""

    def _columns_at_once(self, position: int) -> int:
        """Return the columns of sums that are moved at once: 8 exchanged between lanes, or pairs as
        they are held."""
        extent = self.interface.members[position].n.extent
        return next(width for width in _COLUMN_WIDTHS if is_multiple(extent, width))

    def _vector(self, position: int) -> int:
        """Return the columns of results that a thread stores at once."""
        contiguous = self._hooks.epilogue_vector(position)
        max_width = min(contiguous, self._columns_at_once(position))
        return next(width for width in _COLUMN_WIDTHS if width <= max_width)

    # ---- workspace and launches

    def _sums_offset(self, position: int, config: GemmConfig) -> Expr:
        """Return the byte at which a member's sums begin, after the operands."""
        row_bytes = symbol("batches") * symbol("M") * (config.split_k * _SUM_BYTES)
        earlier_members = self.interface.members[:position]
        sums = (align_bytes(row_bytes * symbol(member.columns)) for member in earlier_members)
        return sympy.Add(*(pack.bytes for pack in self._operands(config).packed_operands), *sums)

    def _workspace_bytes(self, config: GemmConfig) -> Expr:
        summed_members = len(self.interface.members) if config.separate_sums else 0
        return self._sums_offset(summed_members, config)

    def _finish_blocks(self, position: int) -> Expr:
        columns = symbol(self.interface.members[position].columns)
        vectors = ceil_div(columns, self._vector(position))
        return ceil_div(vectors * symbol("M") * symbol("batches"), COPY_THREADS)

    def _launches(self, config: GemmConfig) -> tuple[Launch, ...]:
        """Return the launches. CuteDSL's device functions take arguments prepared by the host
        function; their names end in the number of the launch."""
        # Persistent blocks, in whole clusters.
        cluster = config.cluster_m * config.cluster_n
        row_clusters = ceil_div(symbol("M"), config.block_m * config.cluster_m)
        column_clusters = (
            ceil_div(symbol(member.columns), config.block_n * config.cluster_n)
            for member in self.interface.members
        )
        clusters = row_clusters * sympy.Add(*column_clusters) * symbol("batches") * config.split_k
        blocks = sympy.Min(clusters, MULTIPROCESSORS // cluster) * cluster
        copy_threads = (COPY_THREADS, 1, 1)
        shared_bytes = config.shared_bytes(self.interface.element)
        packs = self._operands(config).packed_operands
        finish = [
            (f"finish{self._suffix(position)}", self._finish_blocks(position), copy_threads, 0)
            for position in range(len(self.interface.members) if config.separate_sums else 0)
        ]
        launches = (
            *((pack.name, pack.blocks, copy_threads, 0) for pack in packs),
            ("tiles", blocks, (config.threads, 1, 1), shared_bytes),
            *finish,
        )
        return tuple(
            Launch(f"{PLACEHOLDER}_{name}_{i}", (grid, _ONE, _ONE), threads, lds, (), lds > 0)
            for i, (name, grid, threads, lds) in enumerate(launches)
        )
