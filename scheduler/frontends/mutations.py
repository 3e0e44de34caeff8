"""Find inputs that a graph writes in place.

The signature of a plain ``torch.export.export`` does not list them: its nodes are in-place ops on
the inputs or on views. Memory is tracked the same way as in lowering.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler.ir.graph import Graph, InputKind, OutputKind, OutputSpec
from scheduler.lowering.alias_analysis import in_place_writes, written_values

_KINDS = {
    InputKind.USER: OutputKind.USER_INPUT_MUTATION,
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.CONSTANT: OutputKind.BUFFER_MUTATION,
}


def with_written_inputs(graph: Graph) -> Graph:
    """Return the graph with each input that is written in place as an additional, last output.

    The output has the input's name: after all nodes have run, that name refers to the new value.
    """
    written = written_values(graph) - {mutation.input for mutation in graph.mutations}
    inputs = [value for value in graph.inputs if value.name in written]
    if not inputs:
        return graph
    specs = graph.output_specs or (OutputSpec(),) * len(graph.outputs)
    return replace(
        graph,
        outputs=(*graph.outputs, *(value.name for value in inputs)),
        output_specs=(*specs, *(OutputSpec(_KINDS[value.kind], value.name) for value in inputs)),
    )


def writers(graph: Graph) -> dict[str, list[str]]:
    """Map each input that the model writes to the nodes that write it: those that make its new
    value, and those that write its memory in place."""
    nodes: dict[str, dict[str, None]] = {mutation.input: {} for mutation in graph.mutations}
    for mutation in graph.mutations:
        if (producer := graph.producers.get(mutation.value)) is not None:
            nodes[mutation.input][producer.name] = None
    for node, value in in_place_writes(graph):
        if value in nodes:
            nodes[value][node.name] = None
    return {name: list(names) for name, names in nodes.items()}
