"""Which buffer holds which input of the model."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.bundle.reader import Bundle
from scheduler.ir.graph import InputKind
from scheduler.ir.operations import BufferKind
from scheduler.ir.storage import Array

#: Kinds of the buffers that are written before a model runs.
GIVEN = (BufferKind.INPUT, BufferKind.PARAMETER, BufferKind.CONSTANT)


def input_buffers(bundle: Bundle) -> dict[str, str]:
    """Graph input -> buffer, for every input that some kernel reads.

    User inputs go by their place, parameters and constants by their name in the model.
    """
    manifest = bundle.manifest
    by_source = {b.source_name: name for name, b in manifest.buffers.items() if b.kind in GIVEN}
    users = iter(manifest.inputs)
    found: dict[str, str] = {}
    for given in bundle.graph.inputs:
        if given.kind is InputKind.USER:
            if given.name in bundle.graph.tensors:
                found[given.name] = next(users)
        elif given.source_name in by_source:
            found[given.name] = by_source[given.source_name]
    return found


def by_buffer(bundle: Bundle, values: Mapping[str, Array]) -> dict[str, Array]:
    """Values by graph input as values by buffer; those that no kernel reads are left out."""
    return {
        buffer: values[name] for name, buffer in input_buffers(bundle).items() if name in values
    }
