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
                if not is_blocked(loop, True) and self._next(step.number):
                    position = begins[position]
            else:
                yield step
            position += 1

    def _begin(self, number: int) -> bool:
        self._steps[number] = 0
        self._name(number)
        return self._goes_on(number, self._loops[number].condition)

    def _next(self, number: int) -> bool:
        loop, pointers = self._loops[number], self._pointers
        self._steps[number] += 1
        goes_on = self._goes_on(number, loop.again)  # before the buffers are renamed
        for one in loop.carried:
            pointers[one.before], pointers[one.next] = pointers[one.next], pointers[one.before]
        self._name(number)
        return goes_on

    def _goes_on(self, number: int, condition: str) -> bool:
        loop, steps = self._loops[number], self._steps[number]
        if loop.steps is not None:
            count = evaluate(loop.steps, self._bindings)
            if count > MAX_ITERATIONS:
                raise UserError(f"{too_many_steps(loop)}: it has {count}")
            return steps < count
        goes_on = self._holds(condition)
        if goes_on and steps >= MAX_ITERATIONS:
            raise UserError(too_many_steps(loop))
        return goes_on

    def _name(self, number: int) -> None:
        """Set the pointers of the loop's buffers for the next step."""
        loop, step = self._loops[number], self._steps[number]
        for one in loop.carried:
            self._pointers[one.inside] = self._pointers[one.after] = self._pointers[one.before]
        self._slices(loop.reads, loop.first + step)
        self._slices(loop.makes, step)

    def _slices(self, slices: Iterable[SliceEntry], number: int) -> None:
        for one in slices:
            whole, base = self._buffers[one.whole], self._pointers[one.whole]
            offset = number * whole.stride[0] * whole.dtype.itemsize
            self._pointers[one.slice] = base + offset if base else 0


def too_many_steps(loop: LoopEntry) -> str:
    """Return the beginning of the message for a loop with too many steps."""
    return f"{loop.node} ({loop.op}): the loop exceeds the limit of {MAX_ITERATIONS} steps"


def loop_reads(loop: LoopEntry, *, after_a_step: bool) -> tuple[str, ...]:
    """Return the buffers that a loop itself reads, before its first step or after a step."""
    if after_a_step:
        slices = (one.slice for one in loop.makes)
        again = [loop.again] if loop.again else []
        return (*(one.next for one in loop.carried), *slices, *again)
    wholes = (one.whole for one in loop.reads)
    conditions = [loop.condition] if loop.condition else []
    return (*(one.before for one in loop.carried), *wholes, *conditions)
