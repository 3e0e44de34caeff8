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
    step, has_step = _step_variable(number), _more_variable(number)
    for entry in loop["carried"]:
        yield f"{name(entry['after'])} = {name(entry['before'])}"
    if "steps" in loop:
        count = f"run.steps({shorten(loop['node'])!r}, {texts.expression(loop['steps'])})"
        yield f"for {step} in range({count}):"
    else:
        yield f"{step}, {has_step} = 0, run.holds({name(loop['condition'])})"
        yield f"while {has_step}:"
    for entry in loop["carried"]:
        yield f"    {name(entry['inside'])} = {name(entry['before'])}"
    first = loop.get("first", 0)
    for step_index, key in ((f"({first} + {step})" if first else step, "reads"), (step, "makes")):
        for entry in loop.get(key, ()):
            offset = f"{step_index} * {texts.step(entry['whole'])}"
            yield f"    {name(entry['slice'])} = at({name(entry['whole'])}, {offset})"


def end_lines(loop: Loop, number: int, texts: LoopTexts) -> Iterator[str]:
    """The last lines of a loop's body."""
    name = texts.name
    if "steps" not in loop:
        yield f"{_step_variable(number)} += 1"
        arguments = f"{shorten(loop['node'])!r}, {name(loop['again'])}, {_step_variable(number)}"
        yield f"{_more_variable(number)} = run.goes_on({arguments})"
    for entry in loop["carried"]:
        pointer, next_pointer = name(entry["before"]), name(entry["next"])
        yield f"{pointer}, {next_pointer} = {next_pointer}, {pointer}"
        yield f"{name(entry['after'])} = {pointer}"


def alias_buffers(loop: Loop) -> Iterator[str]:
    """Yield the buffers that are names for other buffers' memory."""
    for entry in loop["carried"]:
        yield from (entry["inside"], entry["after"])
    for key in ("reads", "makes"):
        yield from (entry["slice"] for entry in loop.get(key, ()))


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
        reads = [entry["before"] for entry in loop["carried"]]
        reads += [entry["whole"] for entry in loop.get("reads", ())]
        reads += [loop["condition"]] if "condition" in loop else []
        carried = [entry["inside"] for entry in loop["carried"]]
        return reads, carried + [entry["slice"] for entry in loop.get("reads", ())]
    reads = [entry["next"] for entry in loop["carried"]]
    reads += [entry["inside"] for entry in loop["carried"]]  # missing if there is no first step
    reads += [entry["slice"] for entry in (*loop.get("reads", ()), *loop.get("makes", ()))]
    reads += [loop["again"]] if "again" in loop else []
    return reads, result_buffers(loop)
