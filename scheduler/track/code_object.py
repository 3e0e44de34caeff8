"""The code object of a build, in a form that can be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from scheduler.isa.listing import Listing, count_kinds
from scheduler.isa.reader import reader_of
from scheduler.targets import Target
from scheduler.track.sides import CodeObject


def code_object(
    target: Target, digest: str, resources: Mapping[str, Mapping[str, Any]], listing: str
) -> CodeObject:
    """Make a code object from a build's hash, resources and listing ("" without one). It includes
    the hash of the instructions, and the mix of the longest inner loop of all device functions."""
    parsed_listing = reader_of(target).parse(listing)
    functions = [function for function in parsed_listing.functions if function.instructions]
    loops = [
        function.loop_instructions(loop)
        for function in functions
        if (loop := function.inner_loop())
    ]
    longest = max(loops, key=len, default=())
    return CodeObject(
        digest=digest,
        instructions_digest=instructions_digest(parsed_listing) if functions else "",
        resources=resources,
        inner_loop={kind.value: count for kind, count in count_kinds(longest).items()},
    )


def instructions_digest(listing: Listing) -> str:
    """Return the sha256 of all instructions in order. Kernel names contain the hash of their
    source, so even a comment changes them: functions are identified by position, not by name."""
    titles = {function.name: f"function {n}" for n, function in enumerate(listing.functions)}
    lines = []
    for function in listing.functions:
        lines.append(titles[function.name])
        for instruction in function.instructions:
            operands = instruction.operands
            for name, title in titles.items():
                operands = operands.replace(name, title)
            lines.append(f"{instruction.predicate} {instruction.mnemonic} {operands}")
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
