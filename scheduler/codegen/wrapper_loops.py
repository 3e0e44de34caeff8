"""The lines of ``wrapper.py`` that form a loop around the lines between them.

Memory is renamed, not copied: ``inside`` and slices are variables that get a new pointer at each
step, and two pointers are swapped after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler.text import shorten

#: A loop of ``manifest.json``.
Loop = Mapping[str, Any]


class LoopTexts(NamedTuple):
    """The Python text of names in the manifest: a buffer's variable, an expression, and the bytes
    from one slice of a buffer to the next."""

    name: Callable[[str], str]
    expression: Callable[[str], str]
    step: Callable[[str], str]


def loop_variables(loops: Sequence[Loop]) -> Iterator[str]:
    """Yield the variables that the lines of all loops define."""
    for number in range(len(loops)):
        yield from (_step_variable(number), _more_variable(number))


def _step_variable(number: int) -> str:
    return f"step_{number}"


def _more_variable(number: int) -> str:
    return f"more_{number}"


def begin_lines(loop: Loop, number: int, texts: LoopTexts) -> Iterator[str]:
    """Yield the lines before a loop up to the first lines of its body, which are indented."""
    name = texts.name
    step, more = _step_variable(number), _more_variable(number)
    for one in loop["carried"]:
        yield f"{name(one['after'])} = {name(one['before'])}"
    if "steps" in loop:
        count = f"run.steps({shorten(loop['node'])!r}, {texts.expression(loop['steps'])})"
        yield f"for {step} in range({count}):"
    else:
        yield f"{step}, {more} = 0, run.holds({name(loop['condition'])})"
        yield f"while {more}:"
    for one in loop["carried"]:
        yield f"    {name(one['inside'])} = {name(one['before'])}"
    first = loop.get("first", 0)
    for place, parts in ((f"({first} + {step})" if first else step, "reads"), (step, "makes")):
        for one in loop.get(parts, ()):
            offset = f"{place} * {texts.step(one['whole'])}"
            yield f"    {name(one['slice'])} = at({name(one['whole'])}, {offset})"


def end_lines(loop: Loop, number: int, texts: LoopTexts) -> Iterator[str]:
    """The last lines of a loop's body."""
    name = texts.name
    if "steps" not in loop:
        yield f"{_step_variable(number)} += 1"
        given = f"{shorten(loop['node'])!r}, {name(loop['again'])}, {_step_variable(number)}"
        yield f"{_more_variable(number)} = run.goes_on({given})"
    for one in loop["carried"]:
        before, made = name(one["before"]), name(one["next"])
        yield f"{before}, {made} = {made}, {before}"
        yield f"{name(one['after'])} = {before}"


def alias_buffers(loop: Loop) -> Iterator[str]:
    """Yield the buffers that are names for other buffers' memory."""
    for one in loop["carried"]:
        yield from (one["inside"], one["after"])
    for parts in ("reads", "makes"):
        yield from (one["slice"] for one in loop.get(parts, ()))


def owned_buffers(loop: Loop) -> list[str]:
    """Return the buffers whose memory the loop renames or swaps."""
    names = [one[key] for one in loop["carried"] for key in ("before", "next")]
    return names + [one["whole"] for key in ("reads", "makes") for one in loop.get(key, ())]


def condition_buffers(loop: Loop) -> list[str]:
    """Return the buffers that decide whether there is a step."""
    return [loop[key] for key in ("condition", "again") if key in loop]


def result_buffers(loop: Loop) -> list[str]:
    """Return the loop's results."""
    made = [one["whole"] for one in loop.get("makes", ())]
    return [one["after"] for one in loop["carried"]] + made


def reads_and_writes(loop: Loop, *, at_end: bool) -> tuple[list[str], list[str]]:
    """Return the buffers that a loop's begin or end reads, and those that it provides."""
    if not at_end:
        read = [one["before"] for one in loop["carried"]]
        read += [one["whole"] for one in loop.get("reads", ())]
        read += [loop["condition"]] if "condition" in loop else []
        inside = [one["inside"] for one in loop["carried"]]
        return read, inside + [one["slice"] for one in loop.get("reads", ())]
    read = [one["next"] for one in loop["carried"]]
    read += [one["inside"] for one in loop["carried"]]  # missing if there is no first step
    read += [one["slice"] for one in (*loop.get("reads", ()), *loop.get("makes", ()))]
    read += [loop["again"]] if "again" in loop else []
    return read, result_buffers(loop)
