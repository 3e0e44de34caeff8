"""The state of loops while a bundle runs: completed steps, and buffer pointers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping

from scheduler.bundle.manifest import LoopEntry, SliceEntry
from scheduler.codegen.program import Step, StepKind, loop_ends
from scheduler.errors import UserError
from scheduler.ir.index.functions import evaluate
from scheduler.ir.storage import BoundBuffer
from scheduler.limits import MAX_ITERATIONS


class LoopState:
    """The loop state of one run.

    ``pointers`` are the addresses of buffers, and are changed; ``holds`` reads a buffer of one
    boolean after all earlier work is complete.
    """

    def __init__(
        self,
        loops: tuple[LoopEntry, ...],
        buffers: Mapping[str, BoundBuffer],
        pointers: MutableMapping[str, int],
        bindings: Mapping[str, int],
        holds: Callable[[str], bool],
    ) -> None:
        self._loops = loops
        self._buffers = buffers
        self._pointers = pointers
        self._bindings = bindings
        self._holds = holds
        self._steps = [0] * len(loops)

    def order(
        self, steps: tuple[Step, ...], is_blocked: Callable[[LoopEntry, bool], bool]
    ) -> Iterator[Step]:
        """Yield calls and externs in execution order.

        ``is_blocked`` is called before a loop's first step with False, and after each step with
        True; it returns whether a value that the loop needs is missing.
        """
        ends = loop_ends(steps)
        begins = {end: begin for begin, end in ends.items()}
        position = 0
        while position < len(steps):
            step = steps[position]
            if step.kind is StepKind.BEGIN:
                loop = self._loops[step.number]
                if is_blocked(loop, False) or not self._begin(step.number):
                    position = ends[position]
            elif step.kind is StepKind.END:
                loop = self._loops[step.number]
                if not is_blocked(loop, True) and self._advance(step.number):
                    position = begins[position]
            else:
                yield step
            position += 1

    def _begin(self, number: int) -> bool:
        self._steps[number] = 0
        self._set_pointers(number)
        return self._has_next_step(number, self._loops[number].condition)

    def _advance(self, number: int) -> bool:
        loop, pointers = self._loops[number], self._pointers
        self._steps[number] += 1
        has_next = self._has_next_step(number, loop.again)  # before the buffers are renamed
        for carried in loop.carried:
            pointers[carried.before], pointers[carried.next] = (
                pointers[carried.next],
                pointers[carried.before],
            )
        self._set_pointers(number)
        return has_next

    def _has_next_step(self, number: int, condition: str) -> bool:
        loop, steps = self._loops[number], self._steps[number]
        if loop.steps is not None:
            count = evaluate(loop.steps, self._bindings)
            if count > MAX_ITERATIONS:
                raise UserError(f"{too_many_steps(loop)}: it has {count}")
            return steps < count
        has_next = self._holds(condition)
        if has_next and steps >= MAX_ITERATIONS:
            raise UserError(too_many_steps(loop))
        return has_next

    def _set_pointers(self, number: int) -> None:
        """Set the pointers of the loop's buffers for the next step."""
        loop, step = self._loops[number], self._steps[number]
        for carried in loop.carried:
            self._pointers[carried.inside] = self._pointers[carried.after] = self._pointers[
                carried.before
            ]
        self._point_slices(loop.reads, loop.first + step)
        self._point_slices(loop.makes, step)

    def _point_slices(self, slices: Iterable[SliceEntry], slice_number: int) -> None:
        for entry in slices:
            whole_buffer, address = self._buffers[entry.whole], self._pointers[entry.whole]
            offset = slice_number * whole_buffer.stride[0] * whole_buffer.dtype.itemsize
            self._pointers[entry.slice] = address + offset if address else 0


def too_many_steps(loop: LoopEntry) -> str:
    """Return the beginning of the message for a loop with too many steps."""
    return f"{loop.node} ({loop.op}): the loop exceeds the limit of {MAX_ITERATIONS} steps"


def loop_reads(loop: LoopEntry, *, after_a_step: bool) -> tuple[str, ...]:
    """Return the buffers that a loop itself reads, before its first step or after a step."""
    if after_a_step:
        slices = (entry.slice for entry in loop.makes)
        again = [loop.again] if loop.again else []
        return (*(entry.next for entry in loop.carried), *slices, *again)
    wholes = (entry.whole for entry in loop.reads)
    conditions = [loop.condition] if loop.condition else []
    return (*(entry.before for entry in loop.carried), *wholes, *conditions)
