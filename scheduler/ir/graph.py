"""The model's graph as a frontend hands it on: values, nodes, symbols, and where each came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias, TypeVar

import sympy

from scheduler.ir.dtypes import DType

Expr: TypeAlias = sympy.Expr
_T = TypeVar("_T")
_C = TypeVar("_C")


@dataclass(frozen=True)
class SymbolInfo:
    """One symbolic size: the example's value, and the bounds that the export guarantees.

    ``maximum`` is None where the export gives no bound. One that depends on data (``u0``) is
    known only once the node that makes it has run; its ``hint`` is an example of ours.
    """

    name: str
    hint: int
    minimum: int
    maximum: int | None


@dataclass(frozen=True)
class Relation:
    """Two expressions over sizes, and how they compare: ``==``, ``!=``, ``<=``, ``>=``, ``<``,
    ``>``."""

    left: Expr
    sign: str
    right: Expr


@dataclass(frozen=True)
class Guard:
    """What the export assumes of sizes besides their ranges: one of these holds."""

    alternatives: tuple[Relation, ...]


@dataclass(frozen=True)
class TensorMeta:
    """What is known of a tensor: element type, sizes and strides in elements, as expressions."""

    dtype: DType
    size: tuple[Expr, ...]
    stride: tuple[Expr, ...]


@dataclass(frozen=True)
class Frame:
    """One line of the model's own source."""

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True)
class Origin:
    """Where a node came from in the model: innermost frame last, module path as torch names it."""

    frames: tuple[Frame, ...] = ()
    module_path: str = ""
    module_type: str = ""
    torch_function: str = ""


@dataclass(frozen=True)
class Ref:
    """An argument that is another value of the graph (a tensor or a symbolic integer)."""

    name: str


# Enumerations of torch (dtype, layout, memory format, device) arrive as themselves or as text.
Argument: TypeAlias = (
    "Ref | Subgraph | int | float | complex | bool | str | DType | Expr | tuple[Argument, ...]"
    " | None"
)


@dataclass(frozen=True)
class Node:
    """One call in the graph.

    ``target`` is the op with its overload and without ``torch.ops.``: ``aten.addmm.default``.
    ``args`` are positional, ``kwargs`` by name, both in the file's order. ``labels`` are the names
    that the file gives the positional ones, as many as they are, or none at all. ``outputs`` name
    the values made: usually one; several for ``split``; symbolic integers count as values too.
    """

    name: str
    target: str
    args: tuple[Argument, ...]
    kwargs: Mapping[str, Argument]
    outputs: tuple[str, ...]
    origin: Origin = field(default_factory=Origin)
    labels: tuple[str, ...] = ()

    def arguments(self) -> Iterator[tuple[str, Argument]]:
        """All arguments by name; one that the file does not name by its position, from 0."""
        for place, argument in enumerate(self.args):
            yield (self.labels[place] if self.labels else str(place)), argument
        yield from self.kwargs.items()


@dataclass(frozen=True)
class Subgraph:
    """A graph that a node of a higher-order op has for an argument: a branch, a loop's body.

    Its nodes read its ``inputs`` and each other's values alone. Names of its values stand nowhere
    else in the graph, which holds their metas; an output may be an input as it came.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]


class InputKind(StrEnum):
    """What an input of the graph is for."""

    USER = "input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"


@dataclass(frozen=True)
class GraphInput:
    """An input, with the name that the model's own state dictionary has for it, if any."""

    name: str
    kind: InputKind
    source_name: str = ""


class OutputKind(StrEnum):
    """What becomes of an output, in torch.export's words."""

    USER = "user_output"
    LOSS = "loss_output"
    BUFFER_MUTATION = "buffer_mutation"
    PARAMETER_MUTATION = "parameter_mutation"
    USER_INPUT_MUTATION = "user_input_mutation"
    GRADIENT_TO_PARAMETER = "gradient_to_parameter"
    GRADIENT_TO_USER_INPUT = "gradient_to_user_input"

    @property
    def is_mutation(self) -> bool:
        """Whether the output is an input's new value, and not the model's to return."""
        return self.value.endswith("_mutation")


@dataclass(frozen=True)
class OutputSpec:
    """What one output is for. ``input`` is the graph's input that it is written back to, or whose
    gradient it is; empty for what the model returns."""

    kind: OutputKind = OutputKind.USER
    input: str = ""


Constant: TypeAlias = "int | float | bool | str | None"


@dataclass(frozen=True)
class ConstantOutput:
    """A constant that the model returns: at ``place`` of everything that it returns, from 0."""

    place: int
    value: Constant


@dataclass(frozen=True)
class Mutation:
    """An input that the model writes: the output at place ``output``, the value ``value``, is its
    new value when the model has run."""

    output: int
    value: str
    input: str


class MatmulPrecision(StrEnum):
    """What products of f32 are computed in, in torch's words (``set_float32_matmul_precision``).
    Its "medium" (bf16) is not here."""

    HIGHEST = "highest"
    HIGH = (
        "high"  # tf32 where there is such an instruction: operands rounded to 10 bits of mantissa
    )


@dataclass(frozen=True)
class Graph:
    """A whole model: topologically ordered nodes over named values.

    ``tensors`` maps every tensor value to its meta; ``sym_ints`` every symbolic integer value to
    its expression. ``digest`` is the sha256 of what the graph says (not of the file's bytes), so
    that the same model saved twice is the same graph.

    ``outputs`` are all values that leave the graph, new values of written inputs among them.
    ``output_specs`` say what each is for; there are none where the model returns all of them.

    ``constant_outputs`` are no values and not among them: ``insert_constants`` puts them in
    between.

    ``float32_matmul_precision`` is not in an exported graph: it is as whoever compiles it says.
    """

    name: str
    digest: str
    symbols: Mapping[str, SymbolInfo]
    inputs: tuple[GraphInput, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    tensors: Mapping[str, TensorMeta]
    sym_ints: Mapping[str, Expr]
    producer: str = ""  # the program and version that wrote the file: "torch 2.13.0+cpu"
    output_specs: tuple[OutputSpec, ...] = ()
    constant_outputs: tuple[ConstantOutput, ...] = ()
    float32_matmul_precision: MatmulPrecision = MatmulPrecision.HIGHEST
    guards: tuple[Guard, ...] = ()  # none that the ranges of the sizes imply

    @property
    def mutations(self) -> tuple[Mutation, ...]:
        """Which outputs are written back to which inputs, in the order of the outputs."""
        return tuple(
            Mutation(place, value, spec.input)
            for place, (value, spec) in enumerate(
                zip(self.outputs, self.output_specs, strict=bool(self.output_specs))
            )
            if spec.kind.is_mutation
        )

    @property
    def returned_outputs(self) -> tuple[int, ...]:
        """Places of the outputs that the model returns: all but new values of inputs."""
        written = {mutation.output for mutation in self.mutations}
        return tuple(place for place in range(len(self.outputs)) if place not in written)

    def subgraph(self, part: Subgraph) -> Graph:
        """One of the graphs in it as a graph, its inputs given by whoever runs it."""
        inputs = tuple(GraphInput(name, InputKind.USER) for name in part.inputs)
        return replace(
            self,
            name=part.name,
            inputs=inputs,
            outputs=part.outputs,
            nodes=part.nodes,
            output_specs=(),
            constant_outputs=(),
        )

    @cached_property
    def nodes_by_name(self) -> Mapping[str, Node]:
        """Its nodes: to look at all of them for each kernel takes minutes where there are many."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def all_nodes_by_name(self) -> Mapping[str, Node]:
        """Its nodes and those of the graphs among their arguments, by name."""
        found: dict[str, Node] = {}
        pending = list(self.nodes)
        while pending:
            node = pending.pop()
            found[node.name] = node
            for argument in (*node.args, *node.kwargs.values()):
                for part in argument if isinstance(argument, tuple) else (argument,):
                    if isinstance(part, Subgraph):
                        pending += part.nodes
        return found

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """The node that makes each value; inputs have none."""
        return {output: node for node in self.nodes for output in node.outputs}

    def nodes_named(self, names: Iterable[str]) -> tuple[Node, ...]:
        """The nodes of these names, in their order; names of no node are left out."""
        known = self.nodes_by_name
        return tuple(known[name] for name in names if name in known)


def insert_constants(values: Sequence[_T], constants: Mapping[int, _C]) -> list[_T | _C]:
    """All that a model returns, in its order: ``constants`` at their places, and ``values`` in
    between. Places are as ``check_constants`` wants them."""
    rest = iter(values)
    total = len(values) + len(constants)
    return [constants[place] if place in constants else next(rest) for place in range(total)]
