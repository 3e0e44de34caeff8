"""Sort kernels: rows that fit into LDS are sorted there, several short ones in a block.

Longer rows are sorted tile by tile, and their runs merged in a workspace. If few elements of a long
row are wanted, the first so far stay in LDS while the others are streamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import sympy

from scheduler.codegen.comment import MetadataComment
from scheduler.codegen.cpp.values import convert
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.nest import LoopNest
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.launch import LaunchTemplate
from scheduler.codegen.single_launch import InterfaceSpec, ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.index.bounds import bounds
from scheduler.ir.index.functions import as_expr
from scheduler.ir.index.substitute import substitute_expr
from scheduler.ir.operations import Lowered, ReductionKind, Scan, Sort
from scheduler.ir.values import Accumulator, walk
from scheduler.targets import Target

_LANES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_ITEM_COUNTS = (4, 8, 16)
_BLOCK_THREADS = 256
_MAX_LDS_BYTES = 48 * 1024  # available to a block on every target without a request for more
_MAX_32_BIT_STEPS = 1 << 30  # elements of a row; 32 bits can count twice as many
_MAX_BLOCKS = 512  # that have a workspace


class SortTemplate(LaunchTemplate):
    """One ``Sort`` operation."""

    name = "sort"

    def __init__(
        self,
        node: SchedulerNode,
        lowered: Lowered,
        targets: tuple[Target, ...],
        comment: MetadataComment | None = None,
    ) -> None:
        super().__init__(node, lowered, targets, comment)
        (operation,) = node.members
        if not isinstance(operation, Sort):
            raise ValueError(f"{node.name} is not a sort")
        self.operation = operation
        self.nest = LoopNest(_as_scans(operation), lowered.buffers, self.ranges)

    @cached_property
    def interface(self) -> InterfaceSpec:
        nest = self.nest
        symbols = {*nest.symbols(), *(s.name for s in self.operation.place.size.free_symbols)}
        return InterfaceSpec(
            nest.inputs,
            nest.outputs,
            tuple(sorted(symbols)),
            nest.outer_numel,
            # Merged runs extend up to a power of two beyond the row.
            nest.needs_64_bits() or self._max_steps > _MAX_32_BIT_STEPS,
        )

    # -- configurations --------------------------------------------------------------------------

    def configs(self) -> Sequence[Config]:
        return [{"lanes": lanes, "items": items} for items in _ITEM_COUNTS for lanes in _LANES]

    def reject(self, config: Config) -> Rejected | None:
        lanes, items = int(config["lanes"]), int(config["items"])
        steps = self.nest.inner_numel
        lds_bytes = max(lanes, _BLOCK_THREADS) * items * self._element_bytes
        if lds_bytes > _MAX_LDS_BYTES:
            shared = self.targets[0].words.shared
            return illegal(f"{lds_bytes} bytes of {shared} exceed the limit of {_MAX_LDS_BYTES}")
        if steps.is_Integer and lanes > 1 and lanes // 2 * items >= int(steps):
            return illegal(f"{lanes} lanes of {items} for {steps} elements: half would be idle")
        if lanes < _BLOCK_THREADS and self._max_steps > lanes * items:
            return illegal(f"rows of more than {lanes * items} elements need a whole block")
        return None

    def default_config(self) -> Config:
        valid = [config for config in self.configs() if self.reject(config) is None]
        preferred = [config for config in valid if config["items"] == 8] or valid
        # The fewest threads that hold a row; if none do, the maximum of a block.
        fitting = [c for c in preferred if int(c["lanes"]) * int(c["items"]) >= self._max_steps]
        return fitting[0] if fitting else preferred[-1]

    @cached_property
    def _max_steps(self) -> float:
        return float(bounds(self.nest.inner_numel, self.ranges)[1])

    @property
    def _element_bytes(self) -> int:
        """Return the bytes of a key and its index."""
        return self.operation.key.dtype.compute_dtype.itemsize + (8 if self.interface.wide else 4)

    # -- source ----------------------------------------------------------------------------------

    def render(self, config: Config) -> RenderedTemplate:
        lanes, items = int(config["lanes"]), int(config["items"])
        threads, rows = max(lanes, _BLOCK_THREADS), self.nest.outer_numel
        tile_items, output_steps = lanes * items, self.operation.place.size
        mode, read_indent = "rows", 2
        if self._max_steps > tile_items:
            keeps_few = output_steps.is_Integer and 0 < int(output_steps) <= tile_items // 2
            mode, read_indent = ("best", 3) if keeps_few else ("merge", 4)
        blocks = ceil_div(rows, threads // lanes) if mode == "rows" else rows
        workspace = None
        if mode == "merge":
            blocks = sympy.Min(rows, as_expr(_MAX_BLOCKS))
            elements = ceil_div(self.nest.inner_numel, 8) * 8
            workspace = blocks * elements * (2 * self._element_bytes)
        row_printer = self.nest_printer(self.nest, indent=2 if mode == "merge" else 1)
        row_printer.decode("xindex", self.nest.outer)
        index = row_printer.index
        return self.render_kernel(
            blocks,
            threads,
            threads * items * self._element_bytes + (4 if mode == "best" else 0),
            workspace,
            lanes=lanes,
            items=items,
            mode=mode,
            workspace="" if workspace is None else self._host_printer(workspace),
            element_bytes=2 * self._element_bytes,
            key=self.operation.key.dtype.compute_dtype.cpp,
            descending=self.operation.descending,
            xnumel=index(rows),
            rnumel=index(self.nest.inner_numel),
            limit=index(output_steps),
            outer=row_printer.lines,
            read=self._print_read(read_indent),
            write=self._print_write(3 if mode == "merge" else 2),
        )

    def _print_read(self, indent: int) -> Lines:
        """Return the lines that read the key at ``rindex``."""
        printer = self.nest_printer(self.nest, indent=indent)
        printer.decode("rindex", self.nest.inner)
        with printer.values.mark_nodes(self.operation.nodes):
            key = self.nest.statements[0].value
            text = convert(printer.values.value(key), key.dtype, key.dtype.compute_dtype)
            printer.lines.add(f"const Key key = {text};")
        return printer.lines

    def _print_write(self, indent: int) -> Lines:
        """Return the stores at ``rindex``, of ``key`` and ``place``."""
        printer = self.nest_printer(self.nest, indent=indent)
        printer.decode("rindex", self.nest.inner)
        for statement in self.nest.statements:
            for part in walk(statement.store.value):
                if isinstance(part, Accumulator):
                    is_place = part.name == Sort.INDEX
                    printer.values.bind(part, "static_cast<int64_t>(place)" if is_place else "key")
            printer.values.store(statement.store)
        return printer.lines


def _as_scans(operation: Sort) -> list[Scan]:
    """Return each store as a loop over the row that reads the key and stores at the same step: the
    information that a nest needs about loops and accesses."""
    row_index = {operation.place.var: operation.axis.var}
    return [
        Scan(
            f"{operation.name}_{store_number}",
            operation.axes,
            operation.axis,
            ReductionKind.MAX,
            operation.key,
            operation.key.dtype.compute_dtype,
            replace(store, index=tuple(substitute_expr(i, row_index) for i in store.index)),
            operation.nodes,
        )
        for store_number, store in enumerate(operation.stores)
    ]
