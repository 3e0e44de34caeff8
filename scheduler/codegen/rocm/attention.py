"""Attention: softmax(scale q k^T + mask) v in one kernel, scores never in memory.

Online softmax as in Milakov & Gimelshein (arXiv:1805.02867), tiled as in FlashAttention-2
(arXiv:2307.08691). A row whose scores are all minus infinity gives zeros, as torch does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from scheduler.arithmetic import round_up
from scheduler.codegen import attention
from scheduler.codegen.cpp.literals import literal
from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.cpp.values import convert
from scheduler.codegen.launch import ceil_div
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.launch import LaunchTemplate
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.codegen.title import title
from scheduler.ir.dtypes import DType
from scheduler.ir.operations import Axis, numel
from scheduler.ir.values import Accumulator, walk
from scheduler.matrix_instructions import COMMON_SIZE, WIDEST_STEP_K
from scheduler.outcome import Rejected
from scheduler.targets.model import hip_hardware

# Rows and columns of a tile, threads. Each wave needs whole tiles of COMMON_SIZE rows, whether a
# block's threads are waves of 32 or of 64, and the columns are whole steps along k.
_SHAPES = (
    (32, 32, 64),
    (32, 64, 64),
    (64, 32, 128),
    (64, 64, 128),
    (128, 32, 256),
    (128, 64, 256),
)
# f32 accumulators of a lane: what leaves registers for addresses and operands among 256, and
# what leaves registers for the wide operands of gfx11's matrix instructions too.
_MAX_ACCUMULATORS = 160
_COMFORTABLE_ACCUMULATORS = 80


@dataclass(frozen=True)
class _Operand:
    """How one of q, k, v is read: ``body`` fills ``element[0..pack)``."""

    pack: int
    body: Lines


class AttentionTemplate(attention.AttentionTemplate[ROCmTemplateKernel], LaunchTemplate):
    """One ``Attention`` operation, its tiles in LDS."""

    # -- configurations --------------------------------------------------------------------------

    def configs(self) -> Sequence[Config]:
        return [{"block_m": m, "block_n": n, "threads": threads} for m, n, threads in _SHAPES]

    def reject(self, config: Config) -> Rejected | None:
        operation = self.operation
        if not (operation.depth.size.is_Integer and operation.value_depth.size.is_Integer):
            return illegal("the depth of a head must be static: it decides the tiles")
        lds = self._lds_bytes(config)
        gpus = (hip_hardware(each) for each in self.targets)
        least = min(gpus, key=lambda gpu: gpu.max_lds_per_block_bytes)
        most = least.max_lds_per_block_bytes
        if lds > most:
            shared = least.words.shared
            return illegal(f"{lds} bytes of {shared} are more than a block's {most}")
        accumulators = self._accumulators(config)
        if accumulators > _MAX_ACCUMULATORS:
            return illegal(f"{accumulators} accumulators a lane are more than {_MAX_ACCUMULATORS}")
        return None

    def _accumulators(self, config: Config) -> int:
        """Of scores and output, a lane."""
        columns = int(config["block_n"]) + self._padded_value_depth
        return int(config["block_m"]) * columns // int(config["threads"])

    def default_config(self) -> Config:
        rows = self.hint(self.operation.row.size)
        serving = [config for config in self.configs() if self.reject(config) is None]
        if not serving:
            raise ValueError(
                f"no configuration of attention serves {title(self.node, self.lowered)}"
            )

        def fitness(config: Config) -> tuple[bool, bool, int]:
            tall = int(config["block_m"]) > min(max(rows, 32), 64)
            comfortable = self._accumulators(config) <= _COMFORTABLE_ACCUMULATORS
            return comfortable, not tall, int(config["block_m"]) * int(config["block_n"])

        return max(serving, key=fitness)

    @property
    def _padded_depth(self) -> int:
        return round_up(int(self.operation.depth.size), WIDEST_STEP_K)

    @property
    def _padded_value_depth(self) -> int:
        return round_up(int(self.operation.value_depth.size), COMMON_SIZE)

    def _lds_bytes(self, config: Config) -> int:
        block_m, block_n = int(config["block_m"]), int(config["block_n"])
        size = self.element.itemsize
        pad = 16 // size
        by_depth = (block_m + block_n) * (self._padded_depth + pad)
        by_column = (block_m + self._padded_value_depth) * (block_n + pad)
        return (by_depth + by_column) * size

    # -- text ------------------------------------------------------------------------------------

    def render(self, config: Config) -> RenderedTemplate:
        operation = self.operation
        index = self._printer(self.q, self.lines()).index
        batch = numel(operation.batch)
        blocks = batch * ceil_div(operation.row.size, int(config["block_m"]))
        return self.finished(
            blocks,
            int(config["threads"]),
            self._lds_bytes(config),
            element=self.element.cpp,
            block_m=config["block_m"],
            block_n=config["block_n"],
            padded_depth=self._padded_depth,
            padded_value_depth=self._padded_value_depth,
            depth=operation.depth.size,
            value_depth=operation.value_depth.size,
            rows=index(operation.row.size),
            columns=index(operation.column.size),
            scale=literal(operation.scale, self.element.compute),
            causal=operation.causal,
            power_as_element=convert("power", self.element.compute, self.element),
            marked=self.marks.mark(operation.nodes),
            **self._bodies,
        )

    @cached_property
    def _bodies(self) -> dict[str, object]:
        """What does not depend on the configuration."""
        lines = self.lines()
        batch = [axis for axis in self.operation.batch if axis.size != 1]
        self._printer(self.q, lines).decode("batch", batch)
        operation = self.operation
        return {
            "batch_decode": lines,
            "q": self._operand(self.q, operation.depth),
            "k": self._operand(self.k, operation.depth),
            "v": self._operand(self.v, operation.value_depth),
            "mask": self._mask_lines(),
            "stores": self._store_lines(),
        }

    def _printer(self, nest: LoopNest, lines: Lines, pack: Pack | None = None) -> NestPrinter:
        names = {**self.axis_names, **self.renamed}
        return NestPrinter(nest, lines, self.memory, pack, names)

    def _operand(self, nest: LoopNest, depth: Axis) -> _Operand:
        pack = next(width for width in (8, 4, 2, 1) if self._serves(nest, depth, width))
        lines = self.lines(4)
        printer = self._printer(nest, lines, Pack(depth, pack))

        def fill(statement: Statement) -> None:
            with printer.values.computing(statement.store.nodes):
                element = printer.values.element(statement.store.value, self.element)
                place = "j" if pack > 1 else "0"
                printer.values.lines.add(f"element[{place}] = {element};")

        printer.run(nest.statements, fill)
        return _Operand(pack, lines)

    def _serves(self, nest: LoopNest, depth: Axis, width: int) -> bool:
        if width == 1:
            return True
        runs = [a for a in nest.accesses if not a.written and nest.is_vector(a, depth, width)]
        sizes = [
            self.element.itemsize,
            *(self.lowered.buffers[a.buffer].dtype.itemsize for a in runs),
        ]
        return bool(runs) and width * max(sizes) <= 16

    def _mask_lines(self) -> Lines:
        lines = self.lines(5)
        if self.mask is None:
            return lines
        printer = self._printer(self.mask, lines)
        statement = self.mask.statements[0]
        with printer.values.computing(statement.store.nodes):
            text = printer.values.value(statement.store.value)
            if statement.store.value.dtype is DType.BOOL:
                lines.add(f"if (!{text}) score = kiln::lowest<Acc>();")
            else:
                lines.add(f"score += {text};")
        return lines

    def _store_lines(self) -> Lines:
        lines = self.lines(4)
        printer = self._printer(self.out, lines)
        held = self.element.compute
        for store in self.operation.stores:
            for part in walk(store.value):
                if isinstance(part, Accumulator):
                    same = part.dtype.compute is held
                    printer.values.bind(part, "acc" if same else convert("acc", held, part.dtype))
        printer.run(self.out.statements, printer.store)
        return lines
