"""Reductions whose rows are shared by blocks (few long rows), or lie side by side (columns).

With ``split``, each loop of sums needs one more launch: partial results go through a workspace, and
are combined in one order (docs/adr/0029). With ``columns``, neighbouring threads take neighbouring
rows, which are contiguous in memory. If unknown sizes decide whether packs are aligned, rows are
cut, and a thread's columns are strided instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.kernel import Launch
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.nest import Access
from scheduler.codegen.loops.precision import precision_roots
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.jinja_templates import kernel_template
from scheduler.codegen.rocm.launch import KERNEL_FUNCTION
from scheduler.codegen.rocm.loop_versions import Guarded, print_versions
from scheduler.codegen.rocm.reduction.moments import fuse_moments
from scheduler.codegen.rocm.reduction.online_softmax import fuse_exponentials
from scheduler.codegen.rocm.reduction.split_body import (
    STRIDED_COLUMN,
    Partials,
    Split,
    SplitBody,
    accumulator_bytes,
    plan_partials,
)
from scheduler.codegen.rocm.reduction.split_plan import (
    DeviceFunction,
    gather_split,
    plan_functions,
    print_function,
)
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr
from scheduler.ir.operations import Axis
from scheduler.ir.values import loads

if TYPE_CHECKING:
    from scheduler.codegen.rocm.reduction.template import ReductionTemplate

THREADS = 256
SPLITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_COLUMN_LANES = (1, 4, 8, 16, 32, 64, 128)
_COLUMNS = (1, 2, 4, 8)
_WIDEST_BYTES = 16
_LDS_BYTES = 48 * 1024  # available to a block on every target without a request for more
# Minimum steps per thread of a block's part of a row; there are no more blocks than keep every
# device busy, since more only add work to combine.
_STEPS = 4
_MOST_BLOCKS = 4096


def parse_split(config: Config) -> Split:
    return Split(
        int(config["lanes"]),
        int(config["vector"]),
        int(config.get("columns", 0)),
        int(config.get("split", 1)),
    )


def is_split(config: Config) -> bool:
    """Whether a configuration is one of these; other configurations have neither parameter."""
    return "columns" in config or "split" in config


def split_configs(vectors: Sequence[int]) -> Iterator[Config]:
    """Yield every configuration: rows by split, then columns."""
    for split in SPLITS[1:]:
        for vector in vectors:
            yield {"lanes": THREADS, "vector": vector, "keep": False, "split": split}
    for split in SPLITS:
        for columns in _COLUMNS:
            for lanes in _COLUMN_LANES:
                yield split_config(Split(lanes, 1, columns, split))


def split_config(shares: Split) -> Config:
    config: dict[str, int | bool] = {
        "lanes": shares.lanes,
        "vector": shares.vector,
        "keep": False,
    }
    if shares.columns:
        config["columns"] = shares.columns
    if shares.split > 1 or not shares.columns:
        config["split"] = shares.split
    return config


class SplitReduction:
    """The kernels of a reduction template that share rows."""

    def __init__(self, template: ReductionTemplate) -> None:
        self.template = template
        self.nest = template.nest
        self.stages = fuse_exponentials(fuse_moments(template.stages))

    # -- rules -----------------------------------------------------------------------------------

    def reject(self, shares: Split) -> Rejected | None:
        steps = self.template.hint(self.nest.inner_numel)
        unit = shares.lanes * shares.vector
        if shares.split > 1 and steps < shares.split * unit * _STEPS:
            return illegal(
                f"{shares.split} parts of {steps} elements have fewer than {_STEPS} steps "
                f"for each of {shares.lanes} lanes of {shares.vector}"
            )
        blocks = self.template.hint(self.blocks(shares))
        if shares.split > 1 and blocks * shares.split > _MOST_BLOCKS:
            return illegal(f"{blocks * shares.split} blocks are more than the device needs")
        if shares.columns:
            return self._reject_columns(shares)
        return _reject_narrow(shares.vector, self.template.widest_vector)

    def _reject_columns(self, shares: Split) -> Rejected | None:
        axis = self.columns_axis
        if axis is None:
            return illegal("rows are not adjacent in memory")
        steps = self.template.hint(self.nest.inner_numel)
        side_by_side = -(-self.template.hint(self.nest.outer_numel) // shares.columns)
        if shares.lanes > 32 and THREADS // shares.lanes * 2 <= side_by_side:
            return illegal(f"{shares.lanes} lanes are too many for {side_by_side} adjacent threads")
        if shares.lanes > 1 and shares.lanes // 2 >= max(steps, 1):
            return illegal(f"{shares.lanes} lanes for {steps} elements: half would be idle")
        rejected = self._reject_packs(shares.columns, axis) or _reject_narrow(
            shares.columns, self.widest_columns
        )
        if rejected:
            return rejected
        scratch = self._scratch_bytes(shares)
        if scratch > _LDS_BYTES:
            shared = self.template.targets[0].words.shared
            return illegal(f"{scratch} bytes of {shared} exceed the limit of {_LDS_BYTES}")
        return None

    def _reject_packs(self, width: int, axis: Axis) -> Rejected | None:
        if width > 1:
            packs = self._column_packs(width, axis)
            if not packs:
                return illegal(f"no access has {width} aligned, adjacent rows")
            widest = max(self.template.lowered.buffers[a.buffer].dtype.itemsize for a in packs)
            if width * widest > _WIDEST_BYTES:
                return illegal(f"{width} elements of {widest} bytes exceed the limit of 16 bytes")
        return None

    def _column_packs(self, width: int, axis: Axis) -> list[Access]:
        """Return the accesses to several neighbouring rows at once."""
        needs = self.nest.alignment_requirements
        return [a for a in self._loop_accesses if needs(a, axis, width) is not None]

    def _column_conditions(self, width: int) -> list[str]:
        """Return the conditions under which these are aligned, as far as they depend on unknown
        sizes."""
        axis = self.columns_axis
        if axis is None or width <= 1:
            return []
        packs = self._column_packs(width, axis)
        needs = dict.fromkeys(
            need for a in packs for need in self.nest.alignment_requirements(a, axis, width) or ()
        )
        return [f"{self.template.index.atom(need)} % kColumns == 0" for need in needs]

    @cached_property
    def widest_columns(self) -> int:
        """Return the maximum neighbouring rows that can be read at once; 1 if none can."""
        axis = self.columns_axis
        assert axis is not None
        return next(n for n in reversed(_COLUMNS) if self._reject_packs(n, axis) is None)

    @cached_property
    def _loop_accesses(self) -> tuple[Access, ...]:
        """Return the accesses at each step, except those of a whole row, which are known by then
        and written one by one."""
        found = {}
        rows = {s.store.buffer for s in self.nest.statements if s.kind is not None or not s.inner}
        for stage in self.stages:
            for statement in stage.loop:
                for load in loads(statement.value):
                    if load.buffer in rows:
                        continue
                    found[load.buffer, load.index] = self.nest.access(load.buffer, load.index)
                if statement.kind is None:
                    store = statement.store
                    found[store.buffer, store.index] = self.nest.access(store.buffer, store.index)
        return tuple(found.values())

    @property
    def columns_axis(self) -> Axis | None:
        """Return the outer axis along which rows are contiguous in memory, if anything is read that
        way."""
        if not self.nest.outer:
            return None
        axis = self.nest.outer[-1]
        reads = [a for a in self.nest.accesses if not a.written]
        return axis if any(a.offset.step(axis.var) == 1 for a in reads) else None

    # -- source ----------------------------------------------------------------------------------

    def render(self, shares: Split) -> RenderedTemplate:
        template, split = self.template, shares.split
        kept = plan_partials(self.stages)
        plan = plan_functions(self.stages, shares)
        index = template.index
        rows = self.nest.outer_numel
        workspace = rows * (shares.slots * kept.row_bytes) if split > 1 else as_expr(0)
        made = [self._function(plan, number, shares, kept) for number in range(len(plan))]
        text = kernel_template("reduction_shared").render(
            header=template.header(),
            index_type=template.index_type,
            threads=THREADS,
            split=split,
            functions=[texts for texts, _ in made],
            parameters=template.parameters,
            workspace=template.host(workspace).grid if split > 1 else "",
            xnumel=index(rows),
            rnumel=index(self.nest.inner_numel),
            moments=any(stage.has_moments for stage in self.stages),
            exponentials=any(stage.exponentials for stage in self.stages),
            cuts=any(texts["cuts"] for texts, _ in made),
            powers=False,
            host=template.host(rows),
        )
        return template.finish_render(text, (launch for _, launch in made), workspace)

    def _function(
        self, plan: tuple[DeviceFunction, ...], number: int, shares: Split, kept: Partials
    ) -> tuple[dict[str, object], Launch]:
        template, function = self.template, plan[number]

        def follows(place: int) -> bool:
            return 0 < place < len(plan) and plan[place].only_combines

        def body(shares: Split, indent: int) -> str:
            lines = template.lines(indent)
            printer = self._printer(lines, shares)
            print_function(SplitBody(printer, template.memory, shares, kept), function)
            return str(lines)

        own = shares if function.loops else gather_split(shares)
        choices = self._choices(own)
        conditions = self._column_conditions(own.columns)
        blocks = self.blocks(own)
        parts = shares.split if function.loops else 1
        scratch = self._scratch_bytes(own)
        name = KERNEL_FUNCTION if len(plan) == 1 else f"KERNEL_NAME_{function.name(number)}"
        more = ("workspace",) if shares.split > 1 else ()
        launch = template.make_launch(name, blocks, THREADS, scratch, more, parts)
        return {
            "name": name,
            "about": function.about if len(plan) > 1 else "",
            "shares": own,
            "scratch": scratch,
            "loops": function.loops,
            "follows": follows(number),
            "leads": follows(number + 1),
            "unit": own.vector if own.columns else own.lanes * own.vector,
            "body": body(own, 2) if conditions else print_versions(choices, body),
            "aligned": " && ".join(conditions),
            "strided": body(replace(own, strided=True), 2) if conditions else "",
            "cuts": any(each.cut for _, each in choices),
            "blocks": template.host(blocks).grid,
            "parts": parts,
        }, launch

    def _choices(self, shares: Split) -> Sequence[Guarded[Split]]:
        """Return the versions of the loop over a row; several if sizes select one."""
        conditions = self.template.conditions(shares.vector)
        if not shares.columns and self.template.cuts_always(shares.vector):
            return [([], replace(shares, cut=True))]
        if shares.columns or not conditions:
            return [([], shares)]
        if self.template.lead(shares.vector) is None:
            return [(conditions, shares), ([], replace(shares, vector=1))]
        cut = replace(shares, cut=True)
        if self.template.cuts_all(shares.vector):
            return [([], cut)]
        return [(conditions, shares), ([], cut)]

    def _printer(self, lines: Lines, shares: Split) -> NestPrinter:
        axes, width = self.nest.inner, shares.vector
        lead = self.template.lead(width) if shares.cut else None
        checked = bool(self.template.conditions(width))
        if shares.columns:
            axes, width = self.nest.outer, shares.columns
            checked = bool(self._column_conditions(width))
        strided = STRIDED_COLUMN if shares.strided else ""
        pack = Pack(axes[-1], width, checked, lead, strided) if axes else None
        printer = NestPrinter(
            self.nest, lines, self.template.memory, pack, self.template.symbol_renames
        )
        printer.values.allow_fast(precision_roots(self.nest))
        printer.streamed_pointers = self.streamed_pointers
        return printer

    @cached_property
    def streamed_pointers(self) -> frozenset[str]:
        """Return pointers through which each element is read once: a second loop reads everything
        again, unless both were fused."""
        return self.template.streamed_pointers(kept=True) if self.loops == 1 else frozenset()

    @property
    def loops(self) -> int:
        """Return the number of loops over a row."""
        return sum(bool(stage.loop) for stage in self.stages)

    @property
    def bytes_a_step(self) -> int:
        """Return the bytes read from all buffers per element of a row."""
        read = {access.buffer for access in self._loop_accesses if not access.written}
        return sum(self.template.lowered.buffers[name].dtype.itemsize for name in read)

    def blocks(self, shares: Split) -> Expr:
        """Return the blocks that cover all rows, each with its part of them."""
        rows = THREADS // shares.lanes * (shares.columns or 1)
        return ceil_div(self.nest.outer_numel, rows)

    def _scratch_bytes(self, shares: Split) -> int:
        """Return LDS bytes to combine the widest value over a block's lanes; waves count as 32
        lanes, so that the size is the same on every target."""
        widest = max(
            (accumulator_bytes(s, stage) for stage in self.stages for s in stage.reductions),
            default=0,
        )
        if shares.columns:
            return THREADS * shares.columns * widest if shares.lanes > 1 else 0
        return THREADS // 32 * widest if shares.lanes > 32 else 0


def _reject_narrow(width: int, widest: int) -> Rejected | None:
    """Reject narrow packs: such a kernel only reads."""
    if 2 * width < widest:
        return illegal(
            f"vectors of {width} elements are narrow: {widest} elements can be read at once"
        )
    return None
