"""Many uses of ops as one exported file, read back, and each use's own part of the graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from scheduler.frontends.pt2 import read
from scheduler.ir.check import free_symbols, node_references
from scheduler.ir.graph import Expr, Graph, InputKind, Node, TensorMeta
from tests.benchmarks.opinfo.database import Use, as_array


@dataclass(frozen=True)
class Part:
    """One use as a graph: its inputs' values by name, what its results are (names, or numbers)."""

    use: Use
    graph: Graph
    values: Mapping[str, Any]
    results: tuple[Any, ...]


class NotExportedError(Exception):
    """torch.export itself does not export a use; its text is one line. ``place`` is that of the
    use at which it stopped, None where it stopped after all of them."""

    def __init__(self, reason: str, place: int | None) -> None:
        super().__init__(reason)
        self.place = place


class _Uses(torch.nn.Module):
    """All uses, one after the other."""

    def __init__(self, uses: Sequence[Use]) -> None:
        super().__init__()
        self.uses = list(uses)
        self.place: int | None = None

    def forward(self, *tensors: Any) -> Any:
        results, at = [], 0
        for place, use in enumerate(self.uses):
            self.place = place
            count = len(use.tensors)
            results.append(use(tensors[at : at + count]))
            at += count
        self.place = None
        return results


def exported(
    uses: Sequence[Use], counts: Sequence[int], folder: Path, *, decompose: bool
) -> list[Part]:
    """The uses, exported as one model; ``counts`` says how many results each has.

    Raises ``NotExportedError`` where torch does not export them together, and ``UserError`` where
    our reader does not take the file.
    """
    program = exported_program(uses, decompose)
    path = folder / "model.pt2"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.export.save(program, path)
    except Exception as error:  # torch raises whatever it likes
        raise NotExportedError(f"not saved: {one_line(error)}", None) from None
    graph = read(path)
    return list(_parts(program, graph, uses, counts))


def exported_program(uses: Sequence[Use], decompose: bool) -> Any:
    """The uses as torch's own program, with their tensors as its inputs.

    Raises ``NotExportedError`` where torch does not export them together.
    """
    # Samples share tensors: what export takes for one input belongs to one use alone.
    tensors = tuple(tensor.detach() for use in uses for tensor in use.tensors)
    module = _Uses(uses).eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(module, tensors)
            return program.run_decompositions() if decompose else program
    except Exception as error:  # torch raises whatever it likes
        raise NotExportedError(one_line(error), module.place) from None


def one_line(error: BaseException) -> str:
    """Type and first line of an error, shortened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"


def _parts(
    program: Any, graph: Graph, uses: Sequence[Use], counts: Sequence[int]
) -> Iterator[Part]:
    given = [value.name for value in graph.inputs if value.kind is InputKind.USER]
    stored = {**program.state_dict, **program.constants}
    constants = {
        value.name: as_array(stored[value.source_name])
        for value in graph.inputs
        if value.kind is not InputKind.USER
    }
    results = list(program.graph_signature.user_outputs)
    owners: dict[str, int] = {}
    at = 0
    for number, use in enumerate(uses):
        owners |= dict.fromkeys(given[at : at + len(use.tensors)], number)
        at += len(use.tensors)
    nodes = _nodes_by_use(graph, owners, len(uses))
    made_by = {output: node for node in graph.nodes for output in node.outputs}
    first_input = first_result = 0
    for number, (use, count) in enumerate(zip(uses, counts, strict=True)):
        own = given[first_input : first_input + len(use.tensors)]
        made = tuple(results[first_result : first_result + count])
        first_input += len(use.tensors)
        first_result += count
        names = [name for name in made if isinstance(name, str)]
        values = dict(zip(own, map(as_array, use.tensors), strict=True))
        yield Part(
            use, _part(graph, values, constants, nodes[number], names, made_by), values, made
        )


def _nodes_by_use(graph: Graph, owners: dict[str, int], count: int) -> list[list[Node]]:
    """Nodes that depend on a use's tensors; those of no use's are found by who reads them."""
    found: list[list[Node]] = [[] for _ in range(count)]
    for node in graph.nodes:
        owner = next((owners[n] for n in node_references(node) if n in owners), None)
        if owner is not None:
            found[owner].append(node)
            owners |= dict.fromkeys(node.outputs, owner)
    return found


def _part(
    graph: Graph,
    values: dict[str, Any],
    constants: Mapping[str, Any],
    nodes: Sequence[Node],
    results: Sequence[str],
    made_by: Mapping[str, Node],
) -> Graph:
    """The graph of these nodes and results, and of all that they are made from; values of the
    constants that it reads are added to ``values``."""
    needed = {node.name for node in nodes}
    waiting = [*results, *(name for node in nodes for name in node_references(node))]
    read: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in read:
            continue
        read.add(name)
        node = made_by.get(name)
        if node is not None:
            needed.add(node.name)
            waiting += node_references(node)
    values |= {name: constants[name] for name in read if name in constants}
    kept = tuple(node for node in graph.nodes if node.name in needed)
    names = {*values, *(output for node in kept for output in node.outputs)}
    tensors = {name: meta for name, meta in graph.tensors.items() if name in names}
    sym_ints = {name: expr for name, expr in graph.sym_ints.items() if name in names}
    # A symbol that no size has at all is none of another use's sizes: the seed.
    others = _symbols(graph.tensors, graph.sym_ints) - _symbols(tensors, sym_ints)
    return replace(
        graph,
        symbols={name: info for name, info in graph.symbols.items() if name not in others},
        inputs=tuple(value for value in graph.inputs if value.name in values),
        outputs=tuple(results),
        nodes=kept,
        tensors=tensors,
        sym_ints=sym_ints,
        output_specs=(),  # a use is judged by what it returns
    )


def _symbols(tensors: Mapping[str, TensorMeta], sym_ints: Mapping[str, Expr]) -> set[str]:
    exprs = [expr for meta in tensors.values() for expr in (*meta.size, *meta.stride)]
    return free_symbols([*exprs, *sym_ints.values()])
