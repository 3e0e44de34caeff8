"""The matrix product template: one kernel source per problem, a few constants per configuration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import sympy

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.contraction.indices import IndexGroup
from scheduler.codegen.contraction.interface import Member
from scheduler.codegen.contraction.operand import Operand
from scheduler.codegen.contraction.prepare import upcast_operands
from scheduler.codegen.contraction.template import CONFIGURATION, ContractionTemplate
from scheduler.codegen.kernel import Launch
from scheduler.codegen.names import PLACEHOLDER
from scheduler.codegen.rocm.gemm.candidates import all_configs, stream_k_blocks, stream_k_configs
from scheduler.codegen.rocm.gemm.config import GemmConfig, reject
from scheduler.codegen.rocm.gemm.default import default_config
from scheduler.codegen.rocm.gemm.interface import GemmInterface
from scheduler.codegen.rocm.gemm.problem import GemmProblem, matrix_instruction, vector_widths
from scheduler.codegen.rocm.gemm.tiles import MAX_GEMV_ROWS
from scheduler.codegen.rocm.jinja_templates import kernel_template
from scheduler.codegen.rocm.template import ROCmTemplate
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import Mod, as_expr, evaluate, symbol
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import Lowered, numel
from scheduler.targets import Target
from scheduler.targets.model import hip_hardware

_SUM_THREADS, _RESULTS_PER_SUM_THREAD = 64, 4  # of the kernel that adds parts of k
_SUM_BLOCKS_PER_TILE = 4  # that add the parts of a tile (Stream-K)
_WORKSPACE_BYTES = {
    (False, False): "0",
    (True, False): "SPLIT_K * points * sizeof(Acc)",
    (False, True): "(STREAM_K + blocks % STREAM_K) * BLOCK_M * BLOCK_N * int64_t(sizeof(Acc))",
}
"""Workspace bytes, by whether k is split and whether its steps are shared (Stream-K)."""


class GemmTemplate(ContractionTemplate[GemmConfig], ROCmTemplate):
    """A matrix product in HIP C++."""

    name: ClassVar[str] = "gemm"

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        self._hints = hint_bindings(lowered.graph.symbols)
        # 8-bit floats are kept if every target multiplies them. A few rows are summed by vector
        # instructions, which no target has for them.
        element = self._members[0].a.dtype
        has_few_rows = evaluate(numel(self._members[0].m), self._hints) <= MAX_GEMV_ROWS
        gpus = map(hip_hardware, targets)
        if has_few_rows or not all(matrix_instruction(element, gpu) for gpu in gpus):
            self._members = upcast_operands(self._members)
        self.interface = GemmInterface(
            self._members, lowered.buffers, lowered.graph.symbols, self.marks, converts=True
        )
        self._tile_counts: dict[tuple[int, int], Expr] = {}
        self._values = self.interface.kernel.call_kernel(PLACEHOLDER, node.nodes).args

    # ---- configurations

    @cached_property
    def problem(self) -> GemmProblem:
        interface = self.interface
        a, *second_operands = interface.operands
        batches, m, n, k = interface.extents(self._hints)
        widths = vector_widths(interface.element)
        direct_obstacles = map(interface.direct_obstacle, range(1 + len(second_operands)))
        return GemmProblem(
            element=interface.element,
            batches=batches,
            m=m,
            n=n,
            k=k,
            obstacles_a=tuple((width, a.vector_obstacle(width)) for width in widths),
            obstacles_b=tuple(
                (width, next(filter(None, (b.vector_obstacle(width) for b in second_operands)), ""))
                for width in widths
            ),
            masked_a=a.masked,
            masked_b=any(b.masked for b in second_operands),
            copy_obstacle=next(filter(None, (o.copy_obstacle for o in interface.operands)), ""),
            along_k=all(operand.along_k for operand in interface.operands),
            direct_obstacle=next(filter(None, direct_obstacles), ""),
            allow_tf32=all(member.allow_tf32 for member in self._members),
            distinct_a=self._distinct_share([a], batches * m * k),
            distinct_b=self._distinct_share(second_operands, batches * n * k),
        )

    def _distinct_share(self, operands: Sequence[Operand], elements: int) -> float:
        """Return the share of ``elements`` that is distinct in memory."""
        loaded_buffers = [operand.load.buffer for operand in operands if operand.load is not None]
        if len(loaded_buffers) < len(operands):
            return 1.0
        buffers = [self.lowered.buffers[name] for name in dict.fromkeys(loaded_buffers)]
        distinct_elements = sum(evaluate(product(buffer.size), self._hints) for buffer in buffers)
        return min(distinct_elements / max(elements, 1), 1.0)

    def configs(self) -> Sequence[Config]:
        blocks = stream_k_blocks(self.targets, self.problem.element)
        stream_k = stream_k_configs(self.problem, blocks)
        return [config.items() for config in (*all_configs(self.problem), *stream_k)]

    def reject(self, config: Config) -> Rejected | None:
        return reject(GemmConfig.create(config), self.problem, self.targets)

    def default_config(self) -> Config:
        config = default_config(self.problem, self.targets)
        if config is None:
            raise self.no_config_error()
        return config.items()

    # ---- source

    def render(self, config: Config) -> RenderedTemplate:
        tiling = GemmConfig.create(config)
        kind = (
            tiling.split_k > 1, tiling.matrix_instr_nonkdim, tiling.async_copies, tiling.gemv,
            tiling.stream_k > 0, tiling.direct_to_lds, tiling.setprio > 0,
            tiling.allow_tf32,
        )  # fmt: skip
        constants = [f"constexpr int {name} = {value};" for name, value in tiling.items().items()]
        source, origins = self.insert_constants(kind, tiling, "\n".join(constants))
        launches, workspace_bytes = self._launches(tiling)
        return RenderedTemplate(
            source, self.interface.kernel.args, self._values, launches, workspace_bytes, origins
        )

    def source(self, config: GemmConfig) -> str:
        interface, split, stream = self.interface, config.split_k > 1, config.stream_k > 0
        kernel, element = interface.kernel, interface.element
        column_args = [member.columns for member in interface.members]
        parameters, names = kernel.parameters(), [arg.name for arg in kernel.args]
        if split or stream:
            parameters, names = f"{parameters}, uint8_t* workspace", [*names, "workspace"]
        instruction = f"kiln::instruction::{element.label}" if element.is_float8 else "T"
        # A bound on the rows if a tile may have them all, else 0. It takes few values, so that
        # problems share their sources.
        rows = interface.m.extent
        is_fixed = rows.is_Integer and interface.batch.extent == 1
        column_groups = [f"N{i}" if interface.is_grouped else "N" for i in range(len(column_args))]
        groups = zip(("Batch", "M", "K", *column_groups), interface.groups, strict=True)
        return kernel_template("gemm").render(
            configuration=CONFIGURATION,
            header=self.header(),
            element="uint8_t" if element.is_float8 else element.cpp,  # in LDS: the codes
            multiplied="kiln::instruction::tf32" if config.allow_tf32 else instruction,
            allow_tf32=bool(config.allow_tf32),
            in_codes=element.is_float8,
            narrow=element.itemsize == 1,
            accumulator=element.product_sum.cpp,
            fields=[f"{field.strip()};" for field in parameters.split(",")],
            groups=[
                {
                    **_group(kind, group),
                    # Arguments are members of ``p``.
                    "sizes": [
                        f"p.{size}" if size.isidentifier() else size
                        for size in interface.sizes[kind.lower()]
                    ],
                }
                for kind, group in groups
            ],
            operands=[
                self._operand(position, kind, extent, asynchronous=bool(config.async_copies))
                for position, (kind, extent) in enumerate(
                    [("M", "M"), *zip(column_groups, column_args, strict=True)]
                )
            ],
            converts=any(operand.is_converted for operand in interface.operands),
            asynchronous=bool(config.async_copies),
            gemv=bool(config.gemv),
            direct=bool(config.direct_to_lds),
            setprio=bool(config.setprio),
            rows_known=next((limit for limit in (16, 64) if is_fixed and rows <= limit), 0),
            members=[self._member(i, member) for i, member in enumerate(interface.members)],
            multiplies=self.marks.mark(self.contraction_nodes),
            masked=any(operand.masked for operand in interface.operands),
            split=split,
            stream=stream,
            sum_blocks=_SUM_BLOCKS_PER_TILE,
            workspace=_WORKSPACE_BYTES[split, stream],
            size=config.size,
            # Named only if it is not the size that every target supports.
            other_size=", MATRIX_INSTR_NONKDIM" if config.matrix_instr_nonkdim else "",
            sum_threads=_SUM_THREADS,
            sum_run=_RESULTS_PER_SUM_THREAD,
            columns=" + ".join(f"p.{name}" for name in column_args),
            tiles_n=" + ".join(f"tiles(p.{name}, BLOCK_N)" for name in column_args),
            host_columns=" + ".join(column_args),
            host_tiles_n=" + ".join(f"tiles({name}, BLOCK_N)" for name in column_args),
            # No written buffer is read: a bias can stay in a register between stores.
            parameters=parameters.replace("* ", "* __restrict__ "),
            arguments=", ".join(names),
            call=", ".join(names),
            signature=kernel.signature(PLACEHOLDER),
            checks=interface.checks(),
        )

    def _operand(
        self, position: int, kind: str, extent: str, *, asynchronous: bool
    ) -> dict[str, Any]:
        operand = self.interface.operands[position]
        side = "A" if position == 0 else "B"
        return {
            "name": operand.name,
            "rows": "BLOCK_M" if position == 0 else "BLOCK_N",
            "vector": f"VECTOR_{side}" if operand.load is not None else "1",
            "along_k": operand.along_k,
            "memory": operand.memory_dtype.cpp if operand.is_converted else "",
            "group": _group(kind, operand.row),
            "extent": extent,
            **self.interface.operand(position, asynchronous=asynchronous),
        }

    def _member(self, position: int, member: Member) -> dict[str, Any]:
        earlier_columns = [other.columns for other in self.interface.members[:position]]
        stores = self.interface.vectorized_stores(position)
        nodes = member.contraction.nodes
        return {
            "name": f"Member{position}",
            "operand": member.b.name,
            "columns": f"p.{member.columns}",
            "first_column": " + ".join(f"p.{name}" for name in earlier_columns) or "0",
            "body": self.interface.store(position),
            "runs": stores.has_vectors,
            "run_condition": stores.condition(),
            "run_body": stores.body(self.marks, nodes) if stores.has_vectors else "",
        }

    # ---- launches

    def _launches(self, config: GemmConfig) -> tuple[tuple[Launch, ...], Expr]:
        """Return the launches, and the bytes of the workspace."""
        one_block, points, tiles = as_expr(1), self.interface.points, self._tiles(config)
        names = tuple(arg.name for arg in self.interface.kernel.args)
        threads, lds_bytes = (config.threads, 1, 1), config.lds_bytes(self.interface.element)
        itemsize = self.interface.element.product_sum.itemsize
        if not config.stream_k and config.split_k == 1:
            grid = (tiles, one_block, one_block)
            return (Launch(f"{PLACEHOLDER}_tiles", grid, threads, lds_bytes, names),), as_expr(0)
        if config.stream_k:
            # There are fewer parts than blocks plus shared tiles.
            shared_tiles = Mod(as_expr(tiles), as_expr(config.stream_k))
            area = config.block_m * config.block_n
            workspace_bytes = (config.stream_k + shared_tiles) * (area * itemsize)
            grid = (as_expr(config.stream_k), one_block, one_block)
            sum_blocks = _SUM_BLOCKS_PER_TILE * shared_tiles
            sum_threads = threads
        else:
            workspace_bytes = points * (config.split_k * itemsize)
            grid = (tiles, as_expr(config.split_k), one_block)
            sum_blocks = ceil_div(points, _SUM_THREADS * _RESULTS_PER_SUM_THREAD)
            sum_threads = (_SUM_THREADS, 1, 1)
        names = (*names, "workspace")
        launches = (
            Launch(f"{PLACEHOLDER}_tiles", grid, threads, lds_bytes, names),
            Launch(f"{PLACEHOLDER}_sum", (sum_blocks, one_block, one_block), sum_threads, 0, names),
        )
        return launches, workspace_bytes

    def _tiles(self, config: GemmConfig) -> Expr:
        """Return the tiles of all members' results."""
        key = (config.block_m, config.block_n)
        if key not in self._tile_counts:
            columns = [symbol(member.columns) for member in self.interface.members]
            tiles_n = sympy.Add(*(ceil_div(n, config.block_n) for n in columns))
            tiles_m = ceil_div(symbol("M"), config.block_m)
            self._tile_counts[key] = symbol("batches") * tiles_m * tiles_n
        return self._tile_counts[key]


def _group(kind: str, group: IndexGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "type": f"Index{kind}",
        "function": f"index_{kind.lower()}",
        "parts": list(range(len(group.axes))) if len(group.axes) > 1 else [],
    }
