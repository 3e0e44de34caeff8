"""The code object of a build, in a form that can be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from scheduler.isa.listing import Function, Listing, count_kinds
from scheduler.isa.reader import reader_of
from scheduler.targets import Target
from scheduler.track.sides import CodeObject


def code_object(
    target: Target, digest: str, resources: Mapping[str, Mapping[str, Any]], listing: str
) -> CodeObject:
    """Make a code object from a build's hash, resources and listing ("" without one). It includes
    the hash of the instructions, and the mix of the longest inner loop of all device functions."""
    read = reader_of(target).parse(listing)
    functions = [one for one in read.functions if one.instructions]
    loops = [one.loop_instructions(loop) for one in functions if (loop := one.inner_loop())]
    longest = max(loops, key=len, default=())
    return CodeObject(
        digest=digest,
        instructions_digest=instructions_digest(read) if functions else "",
        resources=resources,
        inner_loop={kind.value: count for kind, count in count_kinds(longest).items()},
    )


def instructions_digest(listing: Listing) -> str:
    """Return the sha256 of all instructions in order. Kernel names contain the hash of their
    source, so even a comment changes them: functions are identified by position, not by name."""
    places = {one.name: f"function {n}" for n, one in enumerate(listing.functions)}
    text = "\n".join(line for one in listing.functions for line in _lines(one, places))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _lines(function: Function, places: Mapping[str, str]) -> list[str]:
    lines = [places[function.name]]
    for one in function.instructions:
        operands = one.operands
        for name, place in places.items():
            operands = operands.replace(name, place)
        lines.append(f"{one.predicate} {one.mnemonic} {operands}")
    return lines
