"""The matrix product template: one kernel source per problem, a few constants per configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import sympy

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.contraction.indices import IndexGroup
from scheduler.codegen.contraction.interface import Member, argument
from scheduler.codegen.contraction.minifloat import upcast_operands
from scheduler.codegen.contraction.operand import Operand
from scheduler.codegen.contraction.prepare import gemm_contractions
from scheduler.codegen.kernel import Launch, LineOrigin
from scheduler.codegen.names import PLACEHOLDER
from scheduler.codegen.rocm.gemm.candidates import all_configs, stream_k_configs
from scheduler.codegen.rocm.gemm.config import (
    GemmConfig,
    GemmProblem,
    matrix_instruction,
    reject,
    vector_widths,
)
from scheduler.codegen.rocm.gemm.default import default_config
from scheduler.codegen.rocm.gemm.interface import GemmInterface
from scheduler.codegen.rocm.gemm.stream_k import (
    SUM_BLOCKS,
    partials_bytes,
    stream_k_blocks,
    stream_k_launches,
)
from scheduler.codegen.rocm.gemm.tiles import MAX_GEMV_ROWS
from scheduler.codegen.rocm.jinja_templates import kernel_template
from scheduler.codegen.rocm.template import ROCmTemplate
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import evaluate
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import Contraction, Lowered, numel
from scheduler.targets import Target
from scheduler.targets.model import hip_hardware

_SUM_THREADS, _SUM_RUN = 64, 4  # of the kernel that adds parts of k; results per thread
_CONFIGURATION = "CONFIGURATION"
_WORKSPACE = {
    (False, False): "0",
    (True, False): "SPLIT_K * points * sizeof(Acc)",
    (False, True): "(STREAM_K + blocks % STREAM_K) * BLOCK_M * BLOCK_N * int64_t(sizeof(Acc))",
}
"""Workspace bytes, by whether k is split and whether its steps are shared (Stream-K)."""


class GemmTemplate(ROCmTemplate):
    """out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n], with prologues and
    epilogues as trees. Several members share ``a``: the block's position in n selects the
    member."""

    contractions = staticmethod(gemm_contractions)
    """Returns the contractions of the node, in the form that suits the kernel."""

    name: ClassVar[str] = "gemm"

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        self._members = self._upcast_minifloats(self.contractions(node, lowered))
        self.interface = GemmInterface(
            *(self._members, lowered.buffers, lowered.graph.symbols, self.marks), converts=True
        )
        self.problem = self._problem_sizes()
        self._texts: dict[tuple[int, ...], tuple[str, str, tuple[LineOrigin, ...]]] = {}
        self._grids: dict[tuple[int, ...], tuple[Launch, ...]] = {}
        self._values = self.interface.kernel.call_kernel(PLACEHOLDER, node.nodes).args

    def _upcast_minifloats(self, members: tuple[Contraction, ...]) -> tuple[Contraction, ...]:
        """Keep 8-bit floats if every target multiplies them. A few rows are summed by vector
        instructions, which no target has for them."""
        element, sizes = members[0].a.dtype, hint_bindings(self.lowered.graph.symbols)
        few = evaluate(numel(members[0].m), sizes) <= MAX_GEMV_ROWS
        served = all(matrix_instruction(element, hip_hardware(target)) for target in self.targets)
        return members if served and not few else upcast_operands(members)

    # ---- configurations

    def _problem_sizes(self) -> GemmProblem:
        interface = self.interface
        widths = vector_widths(interface.element)
        seconds = [member.b for member in interface.members]
        batches, m, n, k = interface.extents(hint_bindings(self.lowered.graph.symbols))
        return GemmProblem(
            interface.element,
            *(batches, m, n, k),
            tuple((width, interface.a.vector_obstacle(width)) for width in widths),
            tuple(
                (width, next(filter(None, (b.vector_obstacle(width) for b in seconds)), ""))
                for width in widths
            ),
            interface.a.masked,
            any(b.masked for b in seconds),
            next(filter(None, (one.copy_obstacle for one in (interface.a, *seconds))), ""),
            all(one.along_k for one in (interface.a, *seconds)),
            next(filter(None, map(interface.direct_obstacle, range(1 + len(seconds)))), ""),
            all(member.allow_tf32 for member in self._members),
            self._distinct_share([interface.a], batches * m * k),
            self._distinct_share(seconds, batches * n * k),
        )

    def _distinct_share(self, operands: Sequence[Operand], elements: int) -> float:
        """Return the share of ``elements`` that is distinct in memory."""
        bindings = hint_bindings(self.lowered.graph.symbols)
        read = [operand.load.buffer for operand in operands if operand.load is not None]
        if len(read) < len(operands):
            return 1.0
        buffers = [self.lowered.buffers[name] for name in dict.fromkeys(read)]
        held = sum(evaluate(product(buffer.size), bindings) for buffer in buffers)
        return min(held / max(elements, 1), 1.0)

    def configs(self) -> Sequence[Config]:
        blocks = stream_k_blocks(self.targets, self.problem.element)
        streaming = stream_k_configs(self.problem, blocks)
        return [config.items() for config in (*all_configs(self.problem), *streaming)]

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
        kind = (
            chosen.split_k > 1, chosen.matrix_instr_nonkdim, chosen.async_copies, chosen.gemv,
            chosen.stream_k > 0, chosen.direct_to_lds, chosen.setprio > 0,
            chosen.allow_tf32,
        )  # fmt: skip
        if kind not in self._texts:
            self._texts[kind] = self._render_problem(chosen)
        before, after, origins = self._texts[kind]
        return RenderedTemplate(
            source=before + _constants(chosen) + after,
            args=self.interface.kernel.args,
            values=self._values,
            launches=self._launches(chosen),
            workspace_bytes=self._workspace_bytes(chosen),
            line_origins=origins,
        )

    def _render_problem(self, config: GemmConfig) -> tuple[str, str, tuple[LineOrigin, ...]]:
        """Return the text before and after the constants, and the origins of its lines."""
        text = kernel_template("gemm").render(self._context(config))
        before, after = text.split(_CONFIGURATION)
        # Lines are counted with a configuration in place: all configurations of a kind have as many
        # lines.
        constants = _constants(config)
        source, origins = self.marks.finish(before + constants + after)
        start = source.index(constants)
        return source[:start], source[start + len(constants) :], origins

    def _context(self, config: GemmConfig) -> dict[str, Any]:
        interface, split, stream = self.interface, config.split_k > 1, config.stream_k > 0
        kernel = interface.kernel
        columns = [member.columns for member in interface.members]
        parameters, names = kernel.parameters(), [arg.name for arg in kernel.args]
        if split or stream:
            parameters, names = f"{parameters}, uint8_t* workspace", [*names, "workspace"]
        return {
            "header": self.header(),
            "element": _lds_type(interface.element),
            "multiplied": _instruction_type(interface.element, allow_tf32=bool(config.allow_tf32)),
            "allow_tf32": bool(config.allow_tf32),
            "in_codes": interface.element.is_float8,
            "narrow": interface.element.itemsize == 1,
            "accumulator": interface.element.product_sum.cpp,
            "fields": [f"{field.strip()};" for field in parameters.split(",")],
            "groups": self._groups(),
            "operands": self._operands(asynchronous=bool(config.async_copies)),
            "converts": any(operand.is_converted for operand in self._all_operands()),
            "asynchronous": bool(config.async_copies),
            "gemv": bool(config.gemv),
            "direct": bool(config.direct_to_lds),
            "setprio": bool(config.setprio),
            "rows_known": self._single_tile_rows(),
            "members": [self._member(i, member) for i, member in enumerate(interface.members)],
            "multiplies": self.marks.mark(self._contraction_nodes()),
            "masked": any(operand.masked for operand in self._all_operands()),
            "split": split,
            "stream": stream,
            "sum_blocks": SUM_BLOCKS,
            "workspace": _WORKSPACE[split, stream],
            "size": config.size,
            # Named only if it is not the size that every target supports.
            "other_size": ", MATRIX_INSTR_NONKDIM" if config.matrix_instr_nonkdim else "",
            "sum_threads": _SUM_THREADS,
            "sum_run": _SUM_RUN,
            "columns": " + ".join(f"p.{name}" for name in columns),
            "tiles_n": " + ".join(f"tiles(p.{name}, BLOCK_N)" for name in columns),
            "host_columns": " + ".join(columns),
            "host_tiles_n": " + ".join(f"tiles({name}, BLOCK_N)" for name in columns),
            # No written buffer is read: a bias can stay in a register between stores.
            "parameters": parameters.replace("* ", "* __restrict__ "),
            "arguments": ", ".join(names),
            "call": ", ".join(names),
            "signature": kernel.signature(PLACEHOLDER),
            "checks": interface.checks(),
        }

    def _all_operands(self) -> tuple[Operand, ...]:
        return self.interface.a, *(member.b for member in self.interface.members)

    def _single_tile_rows(self) -> int:
        """Return a bound on the rows if a tile may have them all, else 0. It takes few values, so
        that problems share their sources."""
        rows, batches = self.interface.a.row.extent, self.interface.a.batch.extent
        known = rows.is_Integer and batches == 1
        return next((most for most in (16, 64) if known and rows <= most), 0)

    def _contraction_nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node for member in self._members for node in member.nodes))

    def _groups(self) -> list[dict[str, Any]]:
        interface = self.interface
        groups = [("Batch", interface.batch), ("M", interface.m), ("K", interface.k)]
        several = len(interface.members) > 1
        for position, member in enumerate(interface.members):
            groups.append((f"N{position}" if several else "N", member.n))
        return [
            {**_group(kind, group), "sizes": _sizes(interface.sizes[kind.lower()])}
            for kind, group in groups
        ]

    def _operands(self, *, asynchronous: bool) -> list[dict[str, Any]]:
        interface = self.interface
        several = len(interface.members) > 1
        found = [_operand(interface.a, "M", "M", interface.operand(0, asynchronous=asynchronous))]
        for position, member in enumerate(interface.members):
            kind = f"N{position}" if several else "N"
            text = interface.operand(1 + position, asynchronous=asynchronous)
            found.append(_operand(member.b, kind, member.columns, text))
        return found

    def _member(self, position: int, member: Member) -> dict[str, Any]:
        before = [other.columns for other in self.interface.members[:position]]
        runs = self.interface.vectorized_stores(position)
        return {
            "name": f"Member{position}",
            "operand": member.b.name,
            "columns": f"p.{member.columns}",
            "first_column": " + ".join(f"p.{name}" for name in before) or "0",
            "body": self.interface.store(position),
            "runs": runs.has_vectors,
            "run_condition": runs.condition(),
            "run_body": runs.body(self.marks, member.contraction.nodes) if runs.has_vectors else "",
        }

    # ---- launches

    def _launches(self, config: GemmConfig) -> tuple[Launch, ...]:
        key = (config.block_m, config.block_n, config.split_k, config.stream_k, config.threads)
        lds = config.lds_bytes(self.interface.element)
        if key not in self._grids:
            self._grids[key] = self._make_launches(config)
        tiles, *sums = self._grids[key]
        block = (config.threads, 1, 1)
        return (Launch(tiles.function, tiles.grid, block, lds, tiles.args), *sums)

    def _make_launches(self, config: GemmConfig) -> tuple[Launch, ...]:
        one, blocks = sympy.Integer(1), self._tiles(config)
        names = tuple(arg.name for arg in self.interface.kernel.args)
        if config.stream_k:
            return stream_k_launches(config, blocks, names)
        if config.split_k == 1:
            return (
                Launch(
                    f"{PLACEHOLDER}_tiles", (blocks, one, one), (config.threads, 1, 1), 0, names
                ),
            )
        names = (*names, "workspace")
        grid = (blocks, sympy.Integer(config.split_k), one)
        sums = (ceil_div(self._points(), _SUM_THREADS * _SUM_RUN), one, one)
        return (
            Launch(f"{PLACEHOLDER}_tiles", grid, (config.threads, 1, 1), 0, names),
            Launch(f"{PLACEHOLDER}_sum", sums, (_SUM_THREADS, 1, 1), 0, names),
        )

    def _tiles(self, config: GemmConfig) -> Expr:
        columns = [argument(member.columns) for member in self.interface.members]
        tiles_n = sympy.Add(*(ceil_div(n, config.block_n) for n in columns))
        return argument("batches") * ceil_div(argument("M"), config.block_m) * tiles_n

    def _points(self) -> Expr:
        columns = sympy.Add(*(argument(member.columns) for member in self.interface.members))
        return argument("batches") * argument("M") * columns

    def _workspace_bytes(self, config: GemmConfig) -> Expr:
        itemsize = self.interface.element.product_sum.itemsize
        if config.stream_k:
            return partials_bytes(config, self._tiles(config), itemsize)
        if config.split_k == 1:
            return sympy.Integer(0)
        return self._points() * (config.split_k * itemsize)


def _lds_type(element: DType) -> str:
    """Return the element's C++ type in LDS: for 8-bit floats, that of their codes."""
    return "uint8_t" if element.is_float8 else element.cpp


def _instruction_type(element: DType, *, allow_tf32: bool) -> str:
    """Return the type that selects the instructions."""
    if allow_tf32:
        return "kiln::instruction::tf32"
    return f"kiln::instruction::{element.label}" if element.is_float8 else "T"


def _constants(config: GemmConfig) -> str:
    return "\n".join(f"constexpr int {name} = {value};" for name, value in config.items().items())


def _sizes(sizes: list[str]) -> list[str]:
    """Return sizes as the kernel reads them: arguments are members of ``p``."""
    return [f"p.{size}" if size.isidentifier() else size for size in sizes]


def _group(kind: str, group: IndexGroup) -> dict[str, Any]:
    prefix = kind.lower()
    return {
        "name": group.name,
        "type": f"Index{kind}",
        "function": f"index_{prefix}",
        "parts": list(range(len(group.axes))) if len(group.axes) > 1 else [],
    }


def _operand(operand: Operand, kind: str, extent: str, text: dict[str, str]) -> dict[str, Any]:
    first = operand.name == "A"
    vector = ("VECTOR_A" if first else "VECTOR_B") if operand.load is not None else "1"
    return {
        "name": operand.name,
        "rows": "BLOCK_M" if first else "BLOCK_N",
        "vector": vector,
        "along_k": operand.along_k,
        "memory": operand.memory_dtype.cpp if operand.is_converted else "",
        "group": _group(kind, operand.row),
        "extent": extent,
        **text,
    }
