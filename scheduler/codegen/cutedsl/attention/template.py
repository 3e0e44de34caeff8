"""Attention for Hopper in CuteDSL: tiles by TMA, products by wgmma, weights in registers.

Online softmax as in Milakov & Gimelshein (arXiv:1805.02867). As in FlashAttention-3
(arXiv:2407.08608), one warpgroup moves tiles, others take turns at multiplying, and the scores of
one tile overlap with the values of the previous one. A row whose scores are all minus infinity
gives zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from scheduler.arithmetic import ceil_div as int_ceil_div
from scheduler.arithmetic import round_up
from scheduler.codegen import attention
from scheduler.codegen.cutedsl.attention.config import AttentionConfig, all_configs
from scheduler.codegen.cutedsl.attention.hooks import ColumnsHook, HookPrinter
from scheduler.codegen.cutedsl.attention.limits import Limits
from scheduler.codegen.cutedsl.attention.tma import Tiles, read_tiles, written_tiles
from scheduler.codegen.cutedsl.attention.workspace import THREADS, PreparedOperand, SplitWorkspace
from scheduler.codegen.cutedsl.gemm.config import MULTIPROCESSORS
from scheduler.codegen.cutedsl.index import IndexPrinter
from scheduler.codegen.cutedsl.kernel import CuteDSLTemplateKernel
from scheduler.codegen.cutedsl.nest import NestPrinter
from scheduler.codegen.cutedsl.template import LaunchTemplate
from scheduler.codegen.cutedsl.types import type_name
from scheduler.codegen.legality import illegal
from scheduler.codegen.names import PLACEHOLDER
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.printing.values import Memory
from scheduler.codegen.single_launch import InterfaceSpec, ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import as_expr
from scheduler.ir.operations import Axis, numel
from scheduler.targets.generations import NVIDIA_GPUS
from scheduler.targets.nvidia import nvidia_hardware

_ELEMENT_DTYPES = (DType.F16, DType.BF16)
_MAX_DEPTH = 256  # columns of one matrix instruction
_TARGET_BLOCKS = 264  # two for each SM of an H200
_MIN_COLUMNS = 256  # of a block
# Taller blocks take longer each: with fewer rounds, the last one leaves more SMs idle (on an H100
# 48 heads of 1024 rows and a depth of 64 took 34 µs with three warpgroups, 29 with two). If each
# block is brief, with at most this many tiles of columns, having fewer blocks matters more.
_USUAL_WARPGROUPS, _MANY_ROUNDS, _FEW_TILES = 2, 4, 2
_DEPTH_STEP = 16  # of the depth, per matrix instruction


class AttentionTemplate(attention.AttentionTemplate[CuteDSLTemplateKernel], LaunchTemplate):
    """One ``Attention`` operation of f16 or bf16."""

    name = "cutedsl_attention"

    @property
    def is_preferred(self) -> bool:
        return True

    # -- configurations --------------------------------------------------------------------------

    def configs(self) -> Sequence[Config]:
        return all_configs()

    def reject(self, config: Config) -> Rejected | None:
        if self._obstacle:
            return illegal(self._obstacle)
        tiling = AttentionConfig.create(config)
        shared = tiling.shared_bytes(self._tile_depth, self._tile_value_depth)
        limit = min(nvidia_hardware(target).max_lds_per_block_bytes for target in self.targets)
        if shared > limit:
            return illegal(f"{shared} bytes of shared memory exceed the limit of {limit} per block")
        registers = tiling.registers(self._tile_value_depth)
        if registers > tiling.max_registers:
            return illegal(
                f"scores, weights and output need {registers} registers per thread, which "
                f"exceeds the limit of {tiling.max_registers}"
            )
        return None

    @cached_property
    def _obstacle(self) -> str:
        """Return why no configuration is valid, or "" if one may be."""
        operation = self.operation
        unsupported = [t.name for t in self.targets if not nvidia_hardware(t).has_wgmma]
        if unsupported:
            supported = ", ".join(gpu.processor for gpu in NVIDIA_GPUS if gpu.has_wgmma)
            names = ", ".join(unsupported)
            return f"wgmma is supported only on {supported}, but the targets include {names}"
        if self.element not in _ELEMENT_DTYPES:
            return f"wgmma is supported here only for f16 and bf16, not for {self.element.label}"
        if not (operation.depth.size.is_Integer and operation.value_depth.size.is_Integer):
            return "a dynamic head dimension is not supported: it determines the tiles"
        if not (self._tile_depth and self._tile_value_depth):
            return "a head dimension of 0 is not supported"
        max_depth = max(self._tile_depth, self._tile_value_depth)
        if max_depth > _MAX_DEPTH:
            return (
                f"a head dimension of {max_depth} exceeds the limit of {_MAX_DEPTH} of one matrix "
                "instruction"
            )
        return self.nests_obstacle(self.nests)

    def default_config(self) -> Config:
        operation = self.operation
        legal = [config for config in self.configs() if self.reject(config) is None]
        if not legal:
            raise self.no_config_error()
        splits = self.split_count(64, _MIN_COLUMNS, _TARGET_BLOCKS)
        batch = max(self.hint(numel(operation.batch)), 1)
        rows, columns = self.hint(operation.row.size), self.hint(operation.column.size)

        def fitness(config: Config) -> tuple[bool, bool, int, int, bool, int, int]:
            tiling = AttentionConfig.create(config)
            is_too_tall = tiling.block_m > round_up(max(rows, 1), 64)
            rounds = batch * int_ceil_div(rows, tiling.block_m) / MULTIPROCESSORS
            has_few_tiles = columns <= _FEW_TILES * tiling.block_n
            is_low = tiling.warpgroups <= _USUAL_WARPGROUPS
            balances = is_low or rounds >= _MANY_ROUNDS or has_few_tiles
            split_difference = abs(tiling.splits - splits)
            return (
                *(not is_too_tall, balances, tiling.block_n, tiling.warpgroups, tiling.pingpong),
                *(-split_difference, -tiling.stages),
            )

        return max(legal, key=fitness)

    @property
    def _tile_depth(self) -> int:
        return round_up(int(self.operation.depth.size), _DEPTH_STEP)

    @property
    def _tile_value_depth(self) -> int:
        return round_up(int(self.operation.value_depth.size), _DEPTH_STEP)

    # -- operands --------------------------------------------------------------------------------

    @property
    def _inner_axes(self) -> tuple[tuple[Axis, Axis], ...]:
        """Return the row and the depth of each of q, k, v."""
        operation = self.operation
        return (
            (operation.row, operation.depth),
            (operation.column, operation.depth),
            (operation.column, operation.value_depth),
        )

    @cached_property
    def _input_tiles(self) -> tuple[Tiles | str, ...]:
        return tuple(
            read_tiles(nest, row, depth, self.element)
            for nest, (row, depth) in zip((self.q, self.k, self.v), self._inner_axes, strict=True)
        )

    @cached_property
    def _output_tiles(self) -> Tiles | str:
        operation = self.operation
        return written_tiles(self.out, operation.row, operation.value_depth, self.element)

    @cached_property
    def _prepared(self) -> tuple[PreparedOperand, ...]:
        """Return the operands that a kernel before this one writes in rows: TMA cannot read
        them."""
        operation = self.operation
        prepared: list[PreparedOperand] = []
        for position, tiles in enumerate(self._input_tiles):
            if isinstance(tiles, str):
                prepared.append(
                    PreparedOperand.create(
                        "qkv"[position],
                        operation.operands[position],
                        self._inner_axes[position],
                        self.element,
                        self.lowered.buffers,
                        self.ranges,
                        prepared[-1].end if prepared else as_expr(0),
                        operation.nodes,
                    )
                )
        return tuple(prepared)

    @cached_property
    def interface(self) -> InterfaceSpec:
        """Return the interface, including prepared operands, which may be larger than their
        inputs."""
        interface = super().interface
        wide = any(operand.nest.needs_64_bits() for operand in self._prepared)
        return replace(interface, wide=interface.wide or wide)

    # -- source ----------------------------------------------------------------------------------

    def render(self, config: Config) -> RenderedTemplate:
        tiling = AttentionConfig.create(config)
        prepared = self._prepared[-1].end if self._prepared else as_expr(0)
        batch, rows = numel(self.operation.batch), self.operation.row.size
        blocks = batch * ceil_div(rows, tiling.block_m) * tiling.splits
        is_split = tiling.splits > 1
        workspace = SplitWorkspace(tiling.splits, batch * rows, self._tile_value_depth, prepared)
        mask, finish = self._hooks
        stored_by_tma = not is_split and isinstance(self._output_tiles, Tiles)
        hooks = [mask, finish if not is_split and not stored_by_tma else None]
        arguments = (name for hook in hooks if hook for name in hook.hook.arguments)
        shared_bytes = tiling.shared_bytes(self._tile_depth, self._tile_value_depth)
        return self.render_launches(
            [
                *((f"prepare_{p.operand}", p.blocks, THREADS, 0) for p in self._prepared),
                ("kernel", blocks, tiling.threads, shared_bytes),
                *([("combine", workspace.blocks, THREADS, 0)] if is_split else []),
            ],
            workspace.end if is_split else prepared,
            **self._texts,
            config=tiling,
            stored_by_tma=stored_by_tma,
            row_names=tuple(dict.fromkeys((*self._limits.arguments, *arguments))),
            grid=self.host(blocks),
            parts={
                "begin": self.host(workspace.begin),
                "totals": self.host(workspace.totals),
                "grid": self.host(workspace.blocks),
                "threads": THREADS,
            },
        )

    @cached_property
    def _texts(self) -> dict[str, Any]:
        """Return the context that does not depend on the configuration."""
        operation = self.operation
        printer, decode_lines = self._batch_decode(1)
        mask, finish = self._hooks
        out = self._output_tiles
        return {
            "index_type": self.index_type,
            "element": type_name(self.element),
            "depth": operation.depth.size,
            "value_depth": operation.value_depth.size,
            "tile_depth": self._tile_depth,
            "tile_value_depth": self._tile_value_depth,
            "limits": self._limits,
            "scale": repr(operation.scale),
            "log2_e": repr(math.log2(math.e)),
            # The maximum score is found before scaling, which a positive scale allows.
            "scaled_first": mask is not None or operation.scale <= 0,
            "cap": self._cap,
            "safe": operation.safe,
            "in_powers": self.has_log2_scores,
            "rows": printer.index(operation.row.size),
            "columns": printer.index(operation.column.size),
            "batches": printer.index(numel(operation.batch)),
            "batch_decode": decode_lines,
            "batch_decode_inside": self._batch_decode(2)[1],
            **{name: self._operand(position) for position, name in enumerate("qkv")},
            "out": None if isinstance(out, str) else self._tensor(out, operation.row),
            "mask": mask,
            "finish": finish,
            "prepared": [self._prepare_context(operand) for operand in self._prepared],
            "marked": self.marks.mark(operation.nodes),
        }

    @property
    def _cap(self) -> dict[str, object] | None:
        """Return the source of a soft cap, which maps scores to multiples of the cap, or to numbers
        (``whole``) if a mask is added to them. ``above_lowest``: by 1 + tanh, computed with powers
        of 2, with a ``slope`` for those."""
        cap, log2_e = self.operation.cap, math.log2(math.e)
        if cap is None:
            return None
        above_lowest = cap <= attention.MAX_SHIFTED_CAP
        slope = self.operation.scale / cap * (-2 * log2_e if above_lowest else 1)
        return {
            "value": repr(cap * (log2_e if self.has_log2_scores else 1)),
            "slope": repr(slope),
            "above_lowest": above_lowest,
            "whole": self.adds_mask,
        }

    @cached_property
    def _names(self) -> dict[str, str]:
        return {**self.axis_names, **self.symbol_renames}

    @cached_property
    def _hook_printer(self) -> HookPrinter:
        wide = self.interface.wide
        return HookPrinter(self.marks, self.memory, self._names, self.kernel.names, wide)

    @cached_property
    def _hooks(self) -> tuple[ColumnsHook | None, ColumnsHook]:
        """Return the function of the mask, unless limits of rows describe it completely, and that
        of the results."""
        operation, printer = self.operation, self._hook_printer
        factor = "LOG2_E" if self.has_log2_scores else ""
        mask = None
        if self.mask and not self.window.is_complete:
            mask = printer.mask(self.mask, operation.column, factor)
        return mask, printer.finish(self.out, operation.value_depth, self.element.compute_dtype)

    @cached_property
    def _limits(self) -> Limits:
        return Limits(self.window, self._names)

    def _batch_decode(self, indent: int) -> tuple[NestPrinter, Lines]:
        """Return the lines that decode the batch's variables from its flat index."""
        lines = self.lines(indent)
        printer = self._hook_printer.printer(self.q, lines, None)
        printer.decode("batch", [axis for axis in self.operation.batch if axis.size != 1])
        return printer, lines

    def _operand(self, position: int) -> dict[str, str]:
        tiles = self._input_tiles[position]
        if isinstance(tiles, str):
            name = "qkv"[position]
            tiles = next(prepared.tiles for prepared in self._prepared if prepared.operand == name)
        return self._tensor(tiles, self._inner_axes[position][0])

    def _tensor(self, tiles: Tiles, row: Axis) -> dict[str, str]:
        """Return the tensor of an operand or of the result in the host function, and the position
        of a batch entry in it, as text."""
        memory = self.memory.get(tiles.buffer.name)
        position = IndexPrinter(ranges=self.q.ranges, names=self._names)(tiles.offset_16_bytes)
        return {
            "pointer": memory.pointer if memory else tiles.buffer.name,
            "rows": self.host(row.size),
            "step": self.host(tiles.step),
            "extent": self.host(tiles.extent),
            "place": f"Int32({position})",
        }

    def _prepare_context(self, prepared: PreparedOperand) -> dict[str, object]:
        """Return the context of a kernel that writes an operand in rows."""
        lines, nest, pack = self.lines(2), prepared.nest, prepared.pack
        rows = Memory(f"{prepared.operand}_rows", prepared.tiles.buffer)
        memory = {**self.memory, rows.buffer.name: rows}
        printer = NestPrinter(
            nest, lines, memory, pack, self.symbol_renames, index_type=self.index_type
        )
        printer.decode("xindex", nest.outer)
        printer.run(nest.statements, printer.store)
        return {
            "operand": prepared.operand,
            "reason": self._input_tiles["qkv".index(prepared.operand)],
            "function": f"{PLACEHOLDER}_prepare_{prepared.operand}",
            "pointer": rows.pointer,
            "at": self.host(prepared.begin),
            "numel": printer.index(nest.outer_numel),
            "grid": self.host(prepared.blocks),
            "threads": THREADS,
            "vector": pack.width if pack else 1,
            "body": lines,
        }
