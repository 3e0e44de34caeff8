"""The mapping of the model's inputs to buffers."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.bundle.manifest import SUPPLIED_KINDS
from scheduler.bundle.reader import Bundle
from scheduler.ir.graph import InputKind
from scheduler.ir.storage import Array

__all__ = ["SUPPLIED_KINDS", "by_buffer", "input_buffers", "written_names"]


def written_names(bundle: Bundle) -> dict[int, str]:
    """Return the names of the new values of inputs, by their position among the outputs.

    The name is the model's name of the buffer or parameter (``layers.0.cache``), or that of the
    user's input; the graph's name of the input if an output already has that name.
    """
    graph = bundle.graph
    sources = {entry.name: entry.source_name or entry.name for entry in graph.inputs}
    returned = {graph.outputs[index] for index in graph.returned_outputs}
    names = {mutation.output: sources[mutation.input] for mutation in graph.mutations}
    return {
        mutation.output: mutation.input
        if names[mutation.output] in returned
        else names[mutation.output]
        for mutation in graph.mutations
    }


def input_buffers(bundle: Bundle) -> dict[str, str]:
    """Return graph input -> buffer, for every input that a kernel reads.

    User inputs are matched by position, parameters and constants by their name in the model.
    """
    manifest = bundle.manifest
    by_source = {
        buffer.source_name: name
        for name, buffer in manifest.buffers.items()
        if buffer.kind in SUPPLIED_KINDS
    }
    user_buffers = iter(manifest.inputs)
    buffers: dict[str, str] = {}
    for graph_input in bundle.graph.inputs:
        if graph_input.kind is InputKind.USER:
            if graph_input.name in bundle.graph.tensors:
                buffers[graph_input.name] = next(user_buffers)
        elif graph_input.source_name in by_source:
            buffers[graph_input.name] = by_source[graph_input.source_name]
    return buffers


def by_buffer(bundle: Bundle, values: Mapping[str, Array]) -> dict[str, Array]:
    """Convert values by graph input to values by buffer, without those that no kernel reads."""
    return {
        buffer: values[name] for name, buffer in input_buffers(bundle).items() if name in values
    }
