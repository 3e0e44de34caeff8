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
    found = [given for given in graph.inputs if given.name in written]
    if not found:
        return graph
    specs = graph.output_specs or (OutputSpec(),) * len(graph.outputs)
    return replace(
        graph,
        outputs=(*graph.outputs, *(given.name for given in found)),
        output_specs=(*specs, *(OutputSpec(_KINDS[given.kind], given.name) for given in found)),
    )


def writers(graph: Graph) -> dict[str, list[str]]:
    """Map each input that the model writes to the nodes that write it: those that make its new
    value, and those that write its memory in place."""
    found: dict[str, dict[str, None]] = {mutation.input: {} for mutation in graph.mutations}
    for mutation in graph.mutations:
        if (maker := graph.producers.get(mutation.value)) is not None:
            found[mutation.input][maker.name] = None
    for node, value in in_place_writes(graph):
        if value in found:
            found[value][node.name] = None
    return {name: list(nodes) for name, nodes in found.items()}
