"""The model's graph as produced by a frontend: values, nodes, symbols, and their origins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

    ``maximum`` is None if the export gives no bound. A data-dependent size (``u0``) is known only
    after its node has run; its ``hint`` is chosen by Kiln.
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
    """An assumption of the export on sizes besides their ranges: one alternative holds."""

    alternatives: tuple[Relation, ...]


@dataclass(frozen=True)
class TensorMeta:
    """Metadata of a tensor: element type, and sizes and strides in elements as expressions."""

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
    """The origin of a node in the model: innermost frame last, module path as torch names it."""

    frames: tuple[Frame, ...] = ()
    module_path: str = ""
    module_type: str = ""
    torch_function: str = ""


@dataclass(frozen=True)
class Ref:
    """An argument that is another value of the graph (a tensor or a symbolic integer)."""

    name: str


# Enumerations of torch: dtype as ``DType``; layout, memory format and device as text.
Argument: TypeAlias = (
    "Ref | Subgraph | int | float | complex | bool | str | DType | Expr | tuple[Argument, ...]"
    " | None"
)


@dataclass(frozen=True)
class Node:
    """One call in the graph.

    ``target`` is the op with its overload and without ``torch.ops.``: ``aten.addmm.default``.
    ``args`` are positional, ``kwargs`` by name, both in the file's order. ``labels`` are the
    file's names of all positional arguments, or empty. ``outputs`` are the names of the results:
    usually one, several for ``split``; symbolic integers are values too.
    """

    name: str
    target: str
    args: tuple[Argument, ...]
    kwargs: Mapping[str, Argument]
    outputs: tuple[str, ...]
    origin: Origin = field(default_factory=Origin)
    labels: tuple[str, ...] = ()

    def arguments(self) -> Iterator[tuple[str, Argument]]:
        """Yield all arguments by name; unnamed ones by position, from 0."""
        for position, argument in enumerate(self.args):
            yield (self.labels[position] if self.labels else str(position)), argument
        yield from self.kwargs.items()

    def map_arguments(self, change: Callable[[Argument], Argument]) -> Node:
        """Return the node with ``change`` applied to its arguments as in ``map_argument``."""
        return replace(
            self,
            args=tuple(map_argument(argument, change) for argument in self.args),
            kwargs={name: map_argument(value, change) for name, value in self.kwargs.items()},
        )


def map_argument(argument: Argument, change: Callable[[Argument], Argument]) -> Argument:
    """Apply ``change`` to an argument, or to each element of a list."""
    if isinstance(argument, tuple):
        return tuple(map_argument(part, change) for part in argument)
    return change(argument)


@dataclass(frozen=True)
class Subgraph:
    """A graph that is an argument of a higher-order op: a branch, a loop's body.

    Its nodes read only its ``inputs`` and each other's values. The names of its values are unique
    in the enclosing graph, which holds their metadata; an output may be an unchanged input.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]


class InputKind(StrEnum):
    """The role of a graph's input."""

    USER = "input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"


@dataclass(frozen=True)
class GraphInput:
    """An input, with its name in the model's state dictionary, if any."""

    name: str
    kind: InputKind
    source_name: str = ""


class OutputKind(StrEnum):
    """The role of an output, in torch.export's terms."""

    USER = "user_output"
    LOSS = "loss_output"
    BUFFER_MUTATION = "buffer_mutation"
    PARAMETER_MUTATION = "parameter_mutation"
    USER_INPUT_MUTATION = "user_input_mutation"
    GRADIENT_TO_PARAMETER = "gradient_to_parameter"
    GRADIENT_TO_USER_INPUT = "gradient_to_user_input"

    @property
    def is_mutation(self) -> bool:
        """Whether the output is an input's new value, which the model does not return."""
        return self.value.endswith("_mutation")


@dataclass(frozen=True)
class OutputSpec:
    """The role of one output. ``input`` is the graph's input that it is written back to, or whose
    gradient it is; empty for an output that the model returns."""

    kind: OutputKind = OutputKind.USER
    input: str = ""


Constant: TypeAlias = "int | float | bool | str | None"


@dataclass(frozen=True)
class ConstantOutput:
    """A constant that the model returns; ``place`` is its position among all returned values."""

    place: int
    value: Constant


@dataclass(frozen=True)
class Mutation:
    """An input that the model writes: output number ``output``, the value ``value``, is its new
    value after the run."""

    output: int
    value: str
    input: str


class MatmulPrecision(StrEnum):
    """The precision of f32 matrix products, as in torch's ``set_float32_matmul_precision``.
    Torch's "medium" (bf16) is not supported."""

    HIGHEST = "highest"
    HIGH = "high"  # tf32 if there is such an instruction: operands rounded to 10 bits of mantissa


@dataclass(frozen=True)
class Graph:
    """A whole model: topologically ordered nodes over named values.

    ``tensors`` maps every tensor value to its meta; ``sym_ints`` every symbolic integer value to
    its expression. ``digest`` is the sha256 of the graph's content (not of the file's bytes), so
    that the same model saved twice is the same graph.

    ``outputs`` are all values that leave the graph, including new values of written inputs.
    ``output_specs`` are their roles; empty if the model returns all outputs.

    ``constant_outputs`` are not values and not in ``outputs``: ``insert_constants`` inserts them.

    ``float32_matmul_precision`` is not part of an export: it is a compile option.
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
    guards: tuple[Guard, ...] = ()  # without guards that the ranges of the sizes imply

    @property
    def mutations(self) -> tuple[Mutation, ...]:
        """The outputs that are written back to inputs, in the order of the outputs."""
        return tuple(
            Mutation(position, value, spec.input)
            for position, (value, spec) in enumerate(
                zip(self.outputs, self.output_specs, strict=bool(self.output_specs))
            )
            if spec.kind.is_mutation
        )

    @property
    def returned_outputs(self) -> tuple[int, ...]:
        """Positions of the outputs that the model returns: all but new values of inputs."""
        written = {mutation.output for mutation in self.mutations}
        return tuple(position for position in range(len(self.outputs)) if position not in written)

    def subgraph(self, part: Subgraph) -> Graph:
        """Return a subgraph as a graph whose inputs the caller provides."""
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
        """The nodes by name: a linear search for each kernel takes minutes in large graphs."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def all_nodes_by_name(self) -> Mapping[str, Node]:
        """The nodes, including those of subgraphs, by name."""
        nodes: dict[str, Node] = {}
        pending = list(self.nodes)
        while pending:
            node = pending.pop()
            nodes[node.name] = node
            for argument in (*node.args, *node.kwargs.values()):
                for part in argument if isinstance(argument, tuple) else (argument,):
                    if isinstance(part, Subgraph):
                        pending += part.nodes
        return nodes

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """The node that produces each value; inputs have none."""
        return {output: node for node in self.nodes for output in node.outputs}

    def nodes_named(self, names: Iterable[str]) -> tuple[Node, ...]:
        """Return the nodes of these names, in their order; unknown names are skipped."""
        known = self.nodes_by_name
        return tuple(known[name] for name in names if name in known)


def insert_constants(values: Sequence[_T], constants: Mapping[int, _C]) -> list[_T | _C]:
    """Return everything that a model returns, in order: ``constants`` at their positions, and
    ``values`` at the others. Positions must satisfy ``check_constants``."""
    rest = iter(values)
    total = len(values) + len(constants)
    return [
        constants[position] if position in constants else next(rest) for position in range(total)
    ]
