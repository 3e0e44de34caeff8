"""Reductions whose rows are shared by blocks (few long rows), or lie side by side (columns).

With ``split`` a row's reduction is a launch more for each loop of sums: partial results go through
a workspace, and are combined in one order (docs/adr/0029). With ``columns`` neighbouring threads
take neighbouring rows, which lie beside each other in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.kernel import Launch
from scheduler.codegen.launch import ceil_div
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.nest import Access
from scheduler.codegen.loops.precision import roots
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.launch import KERNEL
from scheduler.codegen.rocm.reduction_body import (
    Partials,
    SharedBody,
    Shares,
    accumulator_bytes,
    partials,
)
from scheduler.codegen.rocm.reduction_moments import in_one_loop
from scheduler.codegen.rocm.stages import Stage
from scheduler.codegen.rocm.text import kernel_text
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr
from scheduler.ir.operations import Axis
from scheduler.ir.values import loads
from scheduler.outcome import Rejected

if TYPE_CHECKING:
    from scheduler.codegen.rocm.reduction import ReductionTemplate

THREADS = 256
SPLITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_COLUMN_LANES = (1, 4, 8, 16, 32, 64, 128)
_COLUMNS = (1, 2, 4, 8)
_WIDEST_BYTES = 16
_LDS_BYTES = 48 * 1024  # what a block has on every target without asking for more
# A block's part of a row is at least so many steps a thread, and there are no more blocks than
# keep every device busy: more would only be more to combine.
_STEPS = 4
_MOST_BLOCKS = 4096
_GATHERING_LANES, _MOST_GATHERING = 16, 64
_GATHERED = 8  # parts of a row that a thread combines


@dataclass(frozen=True)
class Function:
    """A device function: ``before`` are the stages whose results it takes from the workspace (the
    last one's rows are not stored yet), ``own`` those that it goes through itself, and whether
    their sums are left to the next one. One that ``totals`` only combines parts for the others."""

    before: tuple[Stage, ...]
    own: tuple[Stage, ...]
    saves: bool
    totals: bool = False

    @property
    def loops(self) -> bool:
        """Whether it goes through rows."""
        return any(stage.loop for stage in self.own)

    @property
    def only_combines(self) -> bool:
        """Whether it reads nothing of the launch before but the workspace."""
        return bool(self.before) and not self.loops


def functions(stages: Sequence[Stage], shares: Shares) -> tuple[Function, ...]:
    """What each launch does: with one block a row all of it, otherwise up to the next sums.

    Every block of the next launch combines the parts of its rows, which of columns would be as
    much to read as the columns themselves: theirs are combined by a launch in between.
    """
    if shares.split == 1:
        return (Function((), tuple(stages), saves=False),)
    found: list[Function] = []
    done = 0
    for position, stage in enumerate(stages):
        if stage.reductions:
            own = tuple(stages[done : position + 1])
            found.append(Function(tuple(stages[:done]), own, saves=True))
            done = position + 1
            if shares.columns and any(later.loop for later in stages[done:]):
                found.append(Function((stage,), (), saves=False, totals=True))
    found.append(Function(tuple(stages[:done]), tuple(stages[done:]), saves=False))
    return tuple(found)


def shares_of(config: Config) -> Shares:
    return Shares(
        int(config["lanes"]),
        int(config["vector"]),
        int(config.get("columns", 0)),
        int(config.get("split", 1)),
    )


def is_shared(config: Config) -> bool:
    """Whether a configuration is one of these; the others name neither parameter."""
    return "columns" in config or "split" in config


def shared_configs(vectors: Sequence[int]) -> Iterator[Config]:
    """Every configuration: rows by split, then columns."""
    for split in SPLITS[1:]:
        for vector in vectors:
            yield {"lanes": THREADS, "vector": vector, "keep": False, "split": split}
    for split in SPLITS:
        for columns in _COLUMNS:
            for lanes in _COLUMN_LANES:
                yield as_config(Shares(lanes, 1, columns, split))


def as_config(shares: Shares) -> Config:
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


class SharedReduction:
    """The kernels of a reduction template that share rows."""

    def __init__(self, template: ReductionTemplate) -> None:
        self.template = template
        self.nest = template.nest
        self.stages = in_one_loop(template.stages)

    # -- rules -----------------------------------------------------------------------------------

    def reject(self, shares: Shares) -> Rejected | None:
        steps = self.template.hint(self.nest.inner_numel)
        unit = shares.lanes * shares.vector
        if shares.split > 1 and steps < shares.split * unit * _STEPS:
            return illegal(
                f"{shares.split} parts of {steps} elements: less than {_STEPS} steps for each of "
                f"{shares.lanes} lanes of {shares.vector}"
            )
        blocks = self.template.hint(self.blocks(shares))
        if shares.split > 1 and blocks * shares.split > _MOST_BLOCKS:
            return illegal(f"{blocks * shares.split} blocks are more than keep a device busy")
        if shares.columns:
            return self._reject_columns(shares)
        return _reject_narrow(shares.vector, self.template.widest_vector)

    def _reject_columns(self, shares: Shares) -> Rejected | None:
        axis = self.columns_axis
        if axis is None:
            return illegal("no rows lie side by side")
        steps = self.template.hint(self.nest.inner_numel)
        side_by_side = -(-self.template.hint(self.nest.outer_numel) // shares.columns)
        if shares.lanes > 32 and THREADS // shares.lanes * 2 <= side_by_side:
            return illegal(f"{shares.lanes} lanes where {side_by_side} threads are side by side")
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
            return illegal(f"{scratch} bytes of {shared} are more than {_LDS_BYTES}")
        return None

    def _reject_packs(self, width: int, axis: Axis) -> Rejected | None:
        if width > 1:
            packs = [a for a in self._loop_accesses if self.nest.is_vector(a, axis, width)]
            if not packs:
                return illegal(f"no access is a run of {width} aligned rows")
            widest = max(self.template.lowered.buffers[a.buffer].dtype.itemsize for a in packs)
            if width * widest > _WIDEST_BYTES:
                return illegal(f"{width} elements of {widest} bytes are more than 16")
        return None

    @cached_property
    def widest_columns(self) -> int:
        """The most neighbouring rows that can be read at once; 1 where none can."""
        axis = self.columns_axis
        assert axis is not None
        return next(n for n in reversed(_COLUMNS) if self._reject_packs(n, axis) is None)

    @cached_property
    def _loop_accesses(self) -> tuple[Access, ...]:
        """What is read and written at each step, without what is a row's: that is known by then,
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
        """The outer axis along which rows lie side by side in memory, if anything is read so."""
        if not self.nest.outer:
            return None
        axis = self.nest.outer[-1]
        reads = [a for a in self.nest.accesses if not a.written]
        return axis if any(a.offset.step(axis.var) == 1 for a in reads) else None

    # -- text ------------------------------------------------------------------------------------

    def render(self, shares: Shares) -> RenderedTemplate:
        template, split = self.template, shares.split
        kept = partials(self.stages)
        plan = functions(self.stages, shares)
        index = self._printer(template.lines(), Shares(1)).index
        rows = self.nest.outer_numel
        workspace = rows * (shares.slots * kept.row_bytes) if split > 1 else as_expr(0)
        made = [self._function(plan, number, shares, kept) for number in range(len(plan))]
        text = kernel_text("reduction_shared").render(
            header=template.header(),
            index_type=template.index_type,
            threads=THREADS,
            split=split,
            functions=[texts for texts, _ in made],
            parameters=template.parameters,
            workspace=template.host(workspace).grid if split > 1 else "",
            xnumel=index(rows),
            rnumel=index(self.nest.inner_numel),
            moments=any(stage.points for stage in self.stages),
            powers=False,
            host=template.host(rows),
        )
        return template.rendered(text, (launch for _, launch in made), workspace)

    def _function(
        self, plan: tuple[Function, ...], number: int, shares: Shares, kept: Partials
    ) -> tuple[dict[str, object], Launch]:
        template, function = self.template, plan[number]

        def follows(place: int) -> bool:
            return 0 < place < len(plan) and plan[place].only_combines

        own = shares if function.loops else _gathering(shares)
        lines = template.lines()
        body = SharedBody(self._printer(lines, own), template.memory, own, kept)
        _print(body, function)
        blocks = self.blocks(own)
        parts = shares.split if function.loops else 1
        scratch = self._scratch_bytes(own)
        name = KERNEL if len(plan) == 1 else f"KERNEL_NAME_{_suffix(function, number)}"
        more = ("workspace",) if shares.split > 1 else ()
        launch = template.launch(name, blocks, THREADS, scratch, more, parts)
        return {
            "name": name,
            "about": _about(function) if len(plan) > 1 else "",
            "shares": own,
            "scratch": scratch,
            "loops": function.loops,
            "follows": follows(number),
            "leads": follows(number + 1),
            "unit": own.vector if own.columns else own.lanes * own.vector,
            "body": lines,
            "blocks": template.host(blocks).grid,
            "parts": parts,
        }, launch

    def _printer(self, lines: Lines, shares: Shares) -> NestPrinter:
        axes = self.nest.outer if shares.columns else self.nest.inner
        pack = Pack(axes[-1], shares.columns or shares.vector) if axes else None
        printer = NestPrinter(self.nest, lines, self.template.memory, pack, self.template.renamed)
        printer.values.allow_fast(roots(self.nest))
        printer.read_once = self.read_once
        return printer

    @cached_property
    def read_once(self) -> frozenset[str]:
        """Pointers through which each element is read once: a second loop reads all again, unless
        both became one."""
        looping = sum(bool(stage.loop) for stage in self.stages)
        return self.template.read_once(kept=True) if looping == 1 else frozenset()

    def blocks(self, shares: Shares) -> Expr:
        """Blocks that have all rows, each its part of them."""
        rows = THREADS // shares.lanes * (shares.columns or 1)
        return ceil_div(self.nest.outer_numel, rows)

    def _scratch_bytes(self, shares: Shares) -> int:
        """LDS to combine the widest value over a block's lanes; waves count as 32 lanes, so that
        it is the same on every target."""
        widest = max(
            (accumulator_bytes(s, stage) for stage in self.stages for s in stage.reductions),
            default=0,
        )
        if shares.columns:
            return THREADS * shares.columns * widest if shares.lanes > 1 else 0
        return THREADS // 32 * widest if shares.lanes > 32 else 0


def _reject_narrow(width: int, widest: int) -> Rejected | None:
    """Reading is all that such a kernel does."""
    if 2 * width < widest:
        return illegal(f"reads of {width} elements where {widest} can be read at once")
    return None


def _gathering(shares: Shares) -> Shares:
    """Of a launch that only combines parts: a few for each thread."""
    if shares.columns:
        lanes = max(min(_GATHERING_LANES, shares.split), min(_MOST_GATHERING, shares.split // 8))
        return replace(shares, columns=1, lanes=lanes)
    lanes = max(1, shares.split // _GATHERED)
    return replace(shares, vector=1, lanes=lanes)


def _print(body: SharedBody, function: Function) -> None:
    body.outer()
    if function.totals:
        (stage,) = function.before
        body.gather(stage)
        body.save(stage, "kSplit")
        return
    for position, stage in enumerate(function.before):
        last = position == len(function.before) - 1
        if stage.reductions and body.shares.columns and (function.loops or not last):
            body.recall(stage)
        elif stage.reductions:
            body.gather(stage)
        body.finish(stage, stores=last)
    for position, stage in enumerate(function.own):
        body.reduce(stage)
        if function.saves and position == len(function.own) - 1:
            body.save(stage)
        else:
            body.finish(stage, stores=True)


def _suffix(function: Function, number: int) -> str:
    if function.totals:
        return f"total{number}"
    if function.saves:
        return f"part{number}"
    return "rest" if function.loops else "finish"


def _about(function: Function) -> str:
    """What a launch is for."""
    if function.saves:
        return "Each block's part of the sums, to the workspace."
    if function.totals:
        return "All parts together, always in one order, to the workspace."
    return "All parts together, always in one order, and what follows from them."
