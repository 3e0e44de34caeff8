"""Attention: softmax(scale q k^T + mask) v in one kernel; scores are never written to memory.

Online softmax as in Milakov & Gimelshein (arXiv:1805.02867), tiled as in FlashAttention-2
(arXiv:2307.08691). A row whose scores are all minus infinity gives zeros, as in torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

from scheduler.arithmetic import round_up
from scheduler.codegen import attention
from scheduler.codegen.attention import bind_results, narrowest_dtype
from scheduler.codegen.cpp.literals import literal
from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.cpp.values import convert
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.alignment import Pack
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.attention.estimate import AttentionProblem, estimate_attention
from scheduler.codegen.rocm.attention.gqa import pack_gqa
from scheduler.codegen.rocm.attention.shape import AttentionConfig, AttentionShape
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.launch import LaunchTemplate
from scheduler.codegen.rocm.machine import compute_units, machine_of, minimax_candidate
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import Attention, Axis, numel
from scheduler.targets import Target
from scheduler.targets.amd import amd_hardware
from scheduler.targets.model import HipHardware, hip_hardware

# Rows and columns of a tile, threads: each wave has whole tiles of COMMON_SIZE rows, for waves of
# 32 and of 64 threads.
_SHAPES = (
    (128, 64, 256),
    (128, 32, 256),
    (64, 64, 128),
    (64, 32, 128),
    (32, 64, 64),
    (32, 32, 64),
)
# For heads so deep that larger tiles do not fit into LDS.
_DEEP_SHAPES = (
    (128, 16, 256),
    (64, 16, 128),
    (32, 16, 64),
)
_SPLITS = (4, 8, 16, 32, 64)
_SPLIT_ROWS = 32  # rows of a block if columns are split
_MIN_COLUMNS = 256  # of a block
_MIN_SPLIT_COLUMNS = 1024  # which are split anyway
_COMBINE_THREADS = 64
_MAX_COMBINE_LANES = 8  # that share a row's pack; of kiln/attention_softmax.h
_MAX_READ_BYTES = 16
_HALF_BYTES = 2
_COMBINE_FUNCTION = "KERNEL_NAME_combine"


class AttentionTemplate(attention.AttentionTemplate[ROCmTemplateKernel], LaunchTemplate):
    """One ``Attention`` operation, with its tiles in LDS."""

    def remap_axes(self, operation: Attention) -> Attention:
        return pack_gqa(operation, self.ranges)

    # -- configurations --------------------------------------------------------------------------

    def configs(self) -> Sequence[Config]:
        shapes = _DEEP_SHAPES if self._is_deep else _SHAPES
        unsplit = [AttentionConfig(*shape) for shape in shapes]
        few_rows = [config for config in unsplit if config.block_m == _SPLIT_ROWS]
        split = [replace(config, splits=splits) for config in few_rows for splits in _SPLITS]
        return [config.items() for config in (*unsplit, *split)]

    @property
    def _is_deep(self) -> bool:
        depths = (self.operation.depth.size, self.operation.value_depth.size)
        return all(depth.is_Integer for depth in depths) and self._shape.is_deep

    def reject(self, config: Config) -> Rejected | None:
        operation = self.operation
        if not (operation.depth.size.is_Integer and operation.value_depth.size.is_Integer):
            return illegal("a dynamic head dimension is not supported: it determines the tiles")
        obstacle = self._shape.obstacle(AttentionConfig.create(config), self._gpus)
        return illegal(obstacle) if obstacle else None

    def default_config(self) -> Config:
        configs = [
            AttentionConfig.create(config) for config in self.configs() if not self.reject(config)
        ]
        if not configs:
            raise self.no_config_error()
        has_estimates = all(
            gpu.limits.estimates_attention and self._shape.has_matrix_instruction(gpu)
            for gpu in self._gpus
        )
        if has_estimates:
            estimates = [partial(self._estimate_us, target) for target in self.targets]
            return minimax_candidate(configs, estimates).items()
        return self._best_by_rules(configs).items()

    def _estimate_us(self, target: Target, config: AttentionConfig) -> float:
        """Return the estimated time in microseconds."""
        operation = self.operation
        problem = AttentionProblem(
            max(self.hint(numel(operation.batch)), 1),
            max(self.hint(operation.row.size), 1),
            self.hint(operation.column.size),
            uneven=bool(self.window.upper),
        )
        machine = machine_of(target, self.element)
        return estimate_attention(config, problem, self._shape, amd_hardware(target), machine)

    def _best_by_rules(self, configs: Sequence[AttentionConfig]) -> AttentionConfig:
        """Return the best configuration by rules, for GPUs without a fitted estimate."""
        rows = self.hint(self.operation.row.size)
        limits = [gpu.limits for gpu in self._gpus]
        min_columns = _MIN_COLUMNS
        if self.hint(self.operation.column.size) >= _MIN_SPLIT_COLUMNS:
            min_columns = max(limit.attention_columns for limit in limits)
        blocks = min(limit.attention_blocks_per_unit for limit in limits)
        splits = self.split_count(_SPLIT_ROWS, min_columns, blocks * compute_units(self.targets))

        def fitness(config: AttentionConfig) -> tuple[bool, bool, float, bool, int]:
            is_too_tall = config.block_m > max(rows, _SPLIT_ROWS)
            # A few rows are limited by the arrival of keys and values.
            can_stream = rows > _SPLIT_ROWS or self._shape.ahead(config, self._gpus)
            ample = all(self._shape.has_ample_registers(config, gpu) for gpu in self._gpus)
            split_distance = abs(math.log2(config.splits / splits))
            tile_area = config.block_m * config.block_n
            return not is_too_tall, can_stream, -split_distance, ample, tile_area

        return max(configs, key=fitness)

    @cached_property
    def _gpus(self) -> tuple[HipHardware, ...]:
        return tuple(hip_hardware(target) for target in self.targets)

    @cached_property
    def _shape(self) -> AttentionShape:
        operation = self.operation
        depths = int(operation.depth.size), int(operation.value_depth.size)
        return AttentionShape(self.element, *depths)

    # -- source ----------------------------------------------------------------------------------

    def render(self, config: Config) -> RenderedTemplate:
        tiling, shape = AttentionConfig.create(config), self._shape
        batch, rows = numel(self.operation.batch), self.operation.row.size
        queries_in_lds = shape.queries_in_lds(tiling, self._gpus)
        blocks = batch * ceil_div(rows, tiling.block_m) * tiling.splits
        partial_elements = round_up(shape.value_depth + 2, 4)
        partial_results = tiling.splits * batch * rows * partial_elements
        workspace = (
            partial_results * self.element.compute_dtype.itemsize if tiling.splits > 1 else None
        )
        packs = batch * rows * (shape.value_depth // self._out_pack)
        combine_blocks = ceil_div(packs * min(tiling.splits, _MAX_COMBINE_LANES), _COMBINE_THREADS)
        rendered = self.render_kernel(
            blocks,
            tiling.threads,
            max(shape.lds_bytes(tiling, gpu, queries=queries_in_lds) for gpu in self._gpus),
            workspace,
            block_m=tiling.block_m,
            block_n=tiling.block_n,
            splits=tiling.splits,
            workspace="" if workspace is None else self._host_printer(workspace),
            partial=partial_elements,
            combine_threads=_COMBINE_THREADS,
            combine_grid=self._host_printer(combine_blocks),
            queries_in_lds="true" if queries_in_lds else "false",
            ahead=shape.ahead(tiling, self._gpus),
            one_tile=tiling.one_tile,
            padded_depth=shape.padded_depth,
            padded_value_depth=shape.padded_value_depth,
            **self._static_context,
        )
        if workspace is None:
            return rendered
        launch = (_COMBINE_FUNCTION, combine_blocks, _COMBINE_THREADS)
        combine = self.make_launch(*launch, workspace=True)
        return replace(rendered, launches=(*rendered.launches, combine))

    @cached_property
    def _static_context(self) -> dict[str, object]:
        """Return the context that does not depend on the configuration."""
        lines, operation = self.lines(), self.operation
        batch = [axis for axis in operation.batch if axis.size != 1]
        self._printer(self.q, lines).decode("batch", batch)
        index = self._printer(self.q, self.lines()).index
        reads_mask = not self.window.is_complete
        return {
            "element": self.element.cpp,
            "depth": operation.depth.size,
            "value_depth": operation.value_depth.size,
            "rows": index(operation.row.size),
            "columns": index(operation.column.size),
            "batches": index(numel(operation.batch)),
            "scale": literal(operation.scale, self.element.compute_dtype),
            # The maximum score is found before scaling, which a positive scale allows.
            "scaled_first": reads_mask or operation.scale <= 0 or bool(operation.cap),
            "cap": self._cap,
            "safe": operation.safe,
            "in_powers": self.has_log2_scores,
            "causal": operation.causal,
            "marked": self.marks.mark(operation.nodes),
            "out_pack": self._out_pack,
            "batch_decode": lines,
            "q": self._operand(self.q, operation.depth),
            "k": self._operand(self.k, operation.depth),
            "v": self._operand(self.v, operation.value_depth),
            "mask": self._mask(),
            **self._limit_texts(),
            "stores": self._store_lines(),
        }

    @property
    def _cap(self) -> dict[str, object] | None:
        """Return the source of a soft cap: ``function`` maps scores to multiples of the cap, or to
        numbers (``whole``) if a mask is added to them."""
        operation, dtype = self.operation, self.element.compute_dtype
        if operation.cap is None:
            return None
        is_shifted = (
            self.element.itemsize == _HALF_BYTES and operation.cap <= attention.MAX_SHIFTED_CAP
        )
        return {
            "value": literal(operation.cap, dtype),
            "slope": literal(operation.scale / operation.cap, dtype),
            "function": "above_lowest" if is_shifted else "in_caps<T>",
            "whole": self.adds_mask,
        }

    def _printer(self, nest: LoopNest, lines: Lines, pack: Pack | None = None) -> NestPrinter:
        names = {**self.axis_names, **self.symbol_renames}
        return NestPrinter(nest, lines, self.memory, pack, names)

    def _operand(self, nest: LoopNest, depth: Axis) -> dict[str, object]:
        """Return how one of q, k, v is read: ``body`` fills ``element[0..pack)``."""
        pack = next(width for width in (8, 4, 2, 1) if self._can_vectorize(nest, depth, width))
        lines = self.lines(2)
        self._fill_pack(nest, lines, Pack(depth, pack), self.element)
        return {"pack": pack, "body": lines}

    def _fill_pack(self, nest: LoopNest, lines: Lines, pack: Pack, dtype: DType) -> None:
        """Print a nest's values into ``element``, an array of that type."""
        printer = self._printer(nest, lines, pack)

        def fill(statement: Statement) -> None:
            with printer.values.mark_nodes(statement.store.nodes):
                element = printer.values.element(statement.store.value, dtype)
                position = "j" if pack.width > 1 else "0"
                printer.values.lines.add(f"element[{position}] = {element};")

        printer.run(nest.statements, fill)

    def _can_vectorize(self, nest: LoopNest, depth: Axis, width: int) -> bool:
        if width == 1:
            return True
        vector_reads = [
            a for a in nest.accesses if not a.written and nest.is_vectorizable(a, depth, width)
        ]
        itemsizes = [self.lowered.buffers[access.buffer].dtype.itemsize for access in vector_reads]
        return (
            bool(vector_reads) and width * max(self.element.itemsize, *itemsizes) <= _MAX_READ_BYTES
        )

    def _mask(self) -> dict[str, object] | None:
        """Return how the mask is read: ``body`` fills ``element[0..pack)`` of type ``element``, and
        ``applied`` applies one of them, ``masked``, to a score; with a pack of 1 the body does
        both. None if the limits of rows describe the mask completely."""
        mask = self.mask
        if mask is None or self.window.is_complete:
            return None
        # A lane has ``width`` neighbouring columns if every read of the mask is such a pack.
        column = self.operation.column
        reads = [access for access in mask.accesses if not access.written]
        itemsizes = [self.lowered.buffers[access.buffer].dtype.itemsize for access in reads]
        width = next(
            width
            for width in (8, 4, 2, 1)
            if width == 1
            or (
                width <= self._shape.run
                and reads
                and all(mask.is_vectorizable(access, column, width) for access in reads)
                and width * max(itemsizes) <= _MAX_READ_BYTES
            )
        )
        store = mask.statements[0].store
        selects = store.value.dtype is DType.BOOL
        lines = self.lines(2 if width > 1 else 3)
        if width == 1:
            printer = self._printer(mask, lines)
            with printer.values.mark_nodes(store.nodes):
                lines.add(self._apply_mask(printer.values.value(store.value), selects=selects))
            return {"element": "", "pack": 1, "body": lines, "applied": ""}
        dtype = DType.BOOL if selects else narrowest_dtype(store.value)
        self._fill_pack(mask, lines, Pack(column, width), dtype)
        masked = convert("masked", dtype, self.element.compute_dtype) if not selects else "masked"
        applied = self._apply_mask(masked, selects=selects)
        return {"element": dtype.cpp, "pack": width, "body": lines, "applied": applied}

    def _apply_mask(self, text: str, *, selects: bool) -> str:
        if selects:
            return f"score = {text} ? score : kiln::lowest<Acc>();"
        return f"score += ({text}) * kLog2E;" if self.has_log2_scores else f"score += {text};"

    def _limit_texts(self) -> dict[str, str]:
        """Return the columns that rows see: ``starts`` and ``ends`` for at least one of a block's
        rows, ``all_start`` and ``all_end`` for all of them, and the condition (``limits``) of
        one."""
        index = self._printer(self.q, self.lines()).index
        rows = symbol("first_row"), symbol("last_row")
        lower, upper, row = self.window.lower, self.window.upper, self.operation.row.var

        def furthest_text(name: str, columns: list[Expr]) -> str:
            text = index(columns[0]) if columns else ""
            for column in columns[1:]:
                text = f"kiln::attention::{name}<index_t>({text}, {index(column)})"
            return text

        return {
            "starts": furthest_text("greatest", [limit.outermost(*rows) for limit in lower]),
            "ends": furthest_text("least", [limit.outermost(*rows) + 1 for limit in upper]),
            "all_start": furthest_text("greatest", [limit.innermost(*rows) for limit in lower]),
            "all_end": furthest_text("least", [limit.innermost(*rows) + 1 for limit in upper]),
            "limits": "".join(
                f" && column {'<=' if limit.upper else '>='} {index(limit.at(row))}"
                for limit in self.window.limits
            ),
        }

    @cached_property
    def _out_pack(self) -> int:
        """Return the number of neighbouring depths of the result that are stored at once."""
        depth_axis, max_width = self.operation.value_depth, self._shape.run
        writes = [access for access in self.out.accesses if access.written]
        for width in (8, 4, 2):
            is_vectorizable = all(
                self.out.is_vectorizable(access, depth_axis, width) for access in writes
            )
            if width <= max_width and is_vectorizable:
                return width
        return 1

    def _store_lines(self) -> Lines:
        lines, width = self.lines(2), self._out_pack
        printer = self._printer(self.out, lines, Pack(self.operation.value_depth, width))
        result = f"(sums[{'j' if width > 1 else '0'}] * inverse)"
        bind_results(printer, result, self.element.compute_dtype)
        printer.run(self.out.statements, printer.store)
        return lines
