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
    for entry in loop["carried"]:
        yield f"{name(entry['after'])} = {name(entry['before'])}"
    if "steps" in loop:
        count = f"run.steps({shorten(loop['node'])!r}, {texts.expression(loop['steps'])})"
        yield f"for {step} in range({count}):"
    else:
        yield f"{step}, {more} = 0, run.holds({name(loop['condition'])})"
        yield f"while {more}:"
    for entry in loop["carried"]:
        yield f"    {name(entry['inside'])} = {name(entry['before'])}"
    first = loop.get("first", 0)
    for position, parts in ((f"({first} + {step})" if first else step, "reads"), (step, "makes")):
        for entry in loop.get(parts, ()):
            offset = f"{position} * {texts.step(entry['whole'])}"
            yield f"    {name(entry['slice'])} = at({name(entry['whole'])}, {offset})"


def end_lines(loop: Loop, number: int, texts: LoopTexts) -> Iterator[str]:
    """The last lines of a loop's body."""
    name = texts.name
    if "steps" not in loop:
        yield f"{_step_variable(number)} += 1"
        given = f"{shorten(loop['node'])!r}, {name(loop['again'])}, {_step_variable(number)}"
        yield f"{_more_variable(number)} = run.goes_on({given})"
    for entry in loop["carried"]:
        before, new = name(entry["before"]), name(entry["next"])
        yield f"{before}, {new} = {new}, {before}"
        yield f"{name(entry['after'])} = {before}"


def alias_buffers(loop: Loop) -> Iterator[str]:
    """Yield the buffers that are names for other buffers' memory."""
    for entry in loop["carried"]:
        yield from (entry["inside"], entry["after"])
    for parts in ("reads", "makes"):
        yield from (entry["slice"] for entry in loop.get(parts, ()))


def owned_buffers(loop: Loop) -> list[str]:
    """Return the buffers whose memory the loop renames or swaps."""
    names = [entry[key] for entry in loop["carried"] for key in ("before", "next")]
    return names + [entry["whole"] for key in ("reads", "makes") for entry in loop.get(key, ())]


def condition_buffers(loop: Loop) -> list[str]:
    """Return the buffers that decide whether there is a step."""
    return [loop[key] for key in ("condition", "again") if key in loop]


def result_buffers(loop: Loop) -> list[str]:
    """Return the loop's results."""
    new = [entry["whole"] for entry in loop.get("makes", ())]
    return [entry["after"] for entry in loop["carried"]] + new


def reads_and_writes(loop: Loop, *, at_end: bool) -> tuple[list[str], list[str]]:
    """Return the buffers that a loop's begin or end reads, and those that it provides."""
    if not at_end:
        read = [entry["before"] for entry in loop["carried"]]
        read += [entry["whole"] for entry in loop.get("reads", ())]
        read += [loop["condition"]] if "condition" in loop else []
        inside = [entry["inside"] for entry in loop["carried"]]
        return read, inside + [entry["slice"] for entry in loop.get("reads", ())]
    read = [entry["next"] for entry in loop["carried"]]
    read += [entry["inside"] for entry in loop["carried"]]  # missing if there is no first step
    read += [entry["slice"] for entry in (*loop.get("reads", ()), *loop.get("makes", ()))]
    read += [loop["again"]] if "again" in loop else []
    return read, result_buffers(loop)
