"""The matrix product for sm_90a in CuteDSL: TMA loads, multiplying warpgroups, and persistent
blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import sympy

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.contraction.interface import ContractionInterface, argument
from scheduler.codegen.contraction.prepare import gemm_contractions
from scheduler.codegen.cutedsl.fusion_checks import has_epilogue
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
from scheduler.codegen.cutedsl.hooks import Hook
from scheduler.codegen.cutedsl.jinja_templates import kernel_template
from scheduler.codegen.cutedsl.kernel import CuteDSLTemplateKernel
from scheduler.codegen.cutedsl.template import CuteDSLTemplate
from scheduler.codegen.cutedsl.types import type_name
from scheduler.codegen.kernel import Launch, LineOrigin
from scheduler.codegen.names import PLACEHOLDER
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.operations import Lowered
from scheduler.targets import Target

_CONFIGURATION = "<CONFIGURATION>"
_COLUMNS = (8, 2, 1)
_SUM_BYTES = 4  # f32
_ONE = sympy.Integer(1)
_FEW_ROWS = 64  # of a matrix instruction of Hopper


class GemmTemplate(CuteDSLTemplate):
    """out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n], with prologues and
    epilogues as trees. Several members share ``a``: a tile's position in n selects the member."""

    contractions = staticmethod(gemm_contractions)
    """Returns the contractions of the node, in the form that suits the kernel."""

    name: ClassVar[str] = "cutedsl_gemm"

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        self._members = self.contractions(node, lowered)
        self.interface = ContractionInterface(
            self._members, lowered.buffers, lowered.graph.symbols, CuteDSLTemplateKernel()
        )
        self._hooks = ContractionHooks(self.interface, self.marks)
        self._direct_operands = TmaOperands(self.interface, self._hooks)
        self._windows = TmaOperands(self.interface, self._hooks, windows=True)
        self._texts: dict[tuple[object, ...], tuple[str, str, tuple[LineOrigin, ...]]] = {}

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
        return self.problem.m > _FEW_ROWS

    def _operands(self, config: GemmConfig) -> TmaOperands:
        """Return the operands. With a fused prologue that is a window, A is loaded in place."""
        return self._windows if config.prologue == FUSED else self._direct_operands

    def configs(self) -> Sequence[Config]:
        return [config.items() for config in all_configs(self.problem)]

    def reject(self, config: Config) -> Rejected | None:
        return reject(GemmConfig.create(config), self.problem, self.targets)

    def default_config(self) -> Config:
        chosen = default_config(self.problem, self.targets)
        if chosen is None:
            raise self.no_config_error()
        return chosen.items()

    # ---- source

    def render(self, config: Config) -> RenderedTemplate:
        chosen = GemmConfig.create(config)
        kind = (chosen.schedule, chosen.split_k, chosen.epilogue, chosen.prologue)
        if kind not in self._texts:
            self._texts[kind] = self._render_problem(chosen)
        before, after, origins = self._texts[kind]
        kernel = self.interface.kernel
        return RenderedTemplate(
            source=before + _constant_lines(chosen) + after,
            args=kernel.args,
            values=kernel.call_kernel(PLACEHOLDER, self.node.nodes).args,
            launches=self._launches(chosen),
            workspace_bytes=self._workspace_bytes(chosen),
            line_origins=origins,
        )

    def _render_problem(self, config: GemmConfig) -> tuple[str, str, tuple[LineOrigin, ...]]:
        """Return the text before and after the configuration, and the origins of its lines."""
        partial = self.partial(
            kernel_template("gemm"), lambda: self._constants(config), **self._context(config)
        )
        # Lines are counted with a configuration in place: all configurations have as many lines.
        numbers = _constant_lines(config)
        source, origins = self.marks.finish(partial.finalize_all().replace(_CONFIGURATION, numbers))
        before, after = source.split(numbers)
        return before, after, origins

    def _constants(self, config: GemmConfig) -> str:
        workspace = self._workspace_bytes(config)
        return self.interface.kernel.constants(
            self._points, workspace, elements=self._hooks.elements()
        )

    def _context(self, config: GemmConfig) -> dict[str, Any]:
        interface, operands = self.interface, self._operands(config)
        packs = [operands.pack_context(pack) for pack in operands.packs]
        members = [self._member(i, config) for i in range(len(interface.members))]
        nodes = tuple(dict.fromkeys(node for member in self._members for node in member.nodes))
        return {
            "configuration": _CONFIGURATION,
            "element": type_name(interface.element),
            "a_k_major": operands.along_k[0],
            "b_k_major": operands.along_k[1],
            "a": None if operands.im2col() else operands.tensor(0),
            "windows": operands.im2col(),
            "multiprocessors": MULTIPROCESSORS,
            "copy_threads": COPY_THREADS,
            "parameters": interface.kernel.parameters,
            "names": ", ".join(interface.kernel.names),
            "functions": [
                *(pack["definition"] for pack in packs),
                *(text for member in members for text in member["definitions"]),
            ],
            "members": members,
            "packs": packs,
            "pingpong": config.pingpong,
            "split": config.split_k > 1,
            "separate": config.separate_sums,
            "multiplies": self.marks.mark(nodes),
        }

    def _member(self, position: int, config: GemmConfig) -> dict[str, Any]:
        member = self.interface.members[position]
        vector = self._vector(position)
        function = self._hooks.epilogue(position, vector)
        row = self._elements_of_row(position, config)
        before = [f"tiles_n{other}" for other in range(position)]
        return {
            "suffix": self._suffix(position),
            "columns": member.columns,
            "before": f"({' + '.join(before)})" if len(before) > 1 else "".join(before) or "0",
            "vector": vector,
            "stored": self._columns_at_once(position) if config.separate_sums else vector,
            "definitions": [hook.definition for hook in (function, row) if hook],
            "epilogue": function.call,
            "elements_of_row": row and row.call,
            "b": self._operands(config).tensor(1 + position),
            "sums": print_int64(self._sums_offset(position, config)),
            "finish_blocks": print_int64(self._finish_blocks(position)),
        }

    def _suffix(self, position: int) -> str:
        return str(position) if len(self.interface.members) > 1 else ""

    def _columns_at_once(self, position: int) -> int:
        """Return the columns of sums that are moved at once: 8 exchanged between lanes, or pairs as
        they are held."""
        extent = self.interface.members[position].n.extent
        return next(width for width in _COLUMNS if is_multiple(extent, width))

    def _vector(self, position: int) -> int:
        """Return the columns of results that a thread stores at once."""
        runs = self._hooks.epilogue_vector(position)
        return next(w for w in _COLUMNS if w <= min(runs, self._columns_at_once(position)))

    def _elements_of_row(self, position: int, config: GemmConfig) -> Hook | None:
        """Return a hook if a row's results cannot be stored as exchanged for ``_columns_at_once``,
        because rows begin anywhere, but can be shifted to allow it."""
        shifted = self._vector(position) < ROW_VECTOR and self._hooks.holds_rows(position)
        if config.separate_sums or not shifted:
            return None
        return self._hooks.elements_of_row(position)

    # ---- workspace and launches

    @property
    def _points(self) -> Expr:
        columns = sympy.Add(*(argument(member.columns) for member in self.interface.members))
        return argument("batches") * argument("M") * columns

    def _sums_offset(self, position: int, config: GemmConfig) -> Expr:
        """Return the byte at which a member's sums begin, after the operands."""
        rows = argument("batches") * argument("M") * (config.split_k * _SUM_BYTES)
        before = self.interface.members[:position]
        sums = (align_bytes(rows * argument(member.columns)) for member in before)
        return sympy.Add(*(pack.bytes for pack in self._operands(config).packs), *sums)

    def _workspace_bytes(self, config: GemmConfig) -> Expr:
        members = len(self.interface.members) if config.separate_sums else 0
        return self._sums_offset(members, config)

    def _finish_blocks(self, position: int) -> Expr:
        columns = argument(self.interface.members[position].columns)
        runs = ceil_div(columns, self._vector(position))
        return ceil_div(runs * argument("M") * argument("batches"), COPY_THREADS)

    def _launches(self, config: GemmConfig) -> tuple[Launch, ...]:
        """Return the launches. CuteDSL's device functions take arguments prepared by the host
        function; their names end in the number of the launch."""
        copy = (COPY_THREADS, 1, 1)
        shared = config.shared_bytes(self.interface.element)
        packs = [(pack.name, pack.blocks, copy, 0) for pack in self._operands(config).packs]
        tiles = ("tiles", self._blocks(config), (config.threads, 1, 1), shared)
        finished = range(len(self.interface.members) if config.separate_sums else 0)
        finish = [
            (f"finish{self._suffix(position)}", self._finish_blocks(position), copy, 0)
            for position in finished
        ]
        return tuple(
            Launch(f"{PLACEHOLDER}_{name}_{i}", (blocks, _ONE, _ONE), threads, lds, (), lds > 0)
            for i, (name, blocks, threads, lds) in enumerate((*packs, tiles, *finish))
        )

    def _blocks(self, config: GemmConfig) -> Expr:
        """Return the number of persistent blocks, in whole clusters."""
        cluster = config.cluster_m * config.cluster_n
        rows = ceil_div(argument("M"), config.block_m * config.cluster_m)
        columns = (
            ceil_div(argument(member.columns), config.block_n * config.cluster_n)
            for member in self.interface.members
        )
        clusters = rows * sympy.Add(*columns) * argument("batches") * config.split_k
        return sympy.Min(clusters, MULTIPROCESSORS // cluster) * cluster


def _constant_lines(config: GemmConfig) -> str:
    return "\n".join(f"{name} = {value}" for name, value in config.numbers().items())
