"""A graph's signature: its inputs, and its outputs with what the signature states about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from scheduler.errors import UserError
from scheduler.frontends.arguments import output_values, value_names
from scheduler.frontends.fields import Json, field, read_union, value_name
from scheduler.ir.graph import ConstantOutput, GraphInput, InputKind, OutputKind, OutputSpec, Ref

_INPUT_KINDS = {
    "parameter": (InputKind.PARAMETER, "parameter_name"),
    "buffer": (InputKind.BUFFER, "buffer_name"),
    "tensor_constant": (InputKind.CONSTANT, "tensor_constant_name"),
}
# Field in which a kind of output names its input, and the allowed kinds of that input.
_MUTATED_INPUTS: Mapping[OutputKind, tuple[str, tuple[InputKind, ...]]] = {
    OutputKind.BUFFER_MUTATION: ("buffer_name", (InputKind.BUFFER, InputKind.CONSTANT)),
    OutputKind.PARAMETER_MUTATION: ("parameter_name", (InputKind.PARAMETER,)),
    OutputKind.USER_INPUT_MUTATION: ("user_input_name", (InputKind.USER,)),
    OutputKind.GRADIENT_TO_PARAMETER: ("parameter_name", (InputKind.PARAMETER,)),
    OutputKind.GRADIENT_TO_USER_INPUT: ("user_input_name", (InputKind.USER,)),
}
_TOKEN = "token"  # noqa: S105 - orders effects, and is no value


def read_inputs(graph: Json, signature: Json) -> tuple[GraphInput, ...]:
    """Read the inputs of a graph. Raises ``UserError`` if its signature has other inputs."""
    inputs = tuple(_signature_inputs(signature))
    names = {
        name
        for part in field(graph, "inputs", list, "graph")
        for name in value_names(part, "graph inputs")
        if name is not None
    }
    for name in sorted(names ^ {value.name for value in inputs}):
        raise UserError(f"input {name!r} is not in both the graph and its signature")
    return inputs


def _signature_inputs(signature: Json) -> Iterator[GraphInput]:
    for index, spec in enumerate(field(signature, "input_specs", list, "signature")):
        where = f"signature input {index}"
        kind, content = read_union(spec, where)
        if kind == "user_input":
            for name in value_names(field(content, "arg", dict, where), where):
                if name is not None:
                    yield GraphInput(name, InputKind.USER)
        elif kind in _INPUT_KINDS:
            role, label = _INPUT_KINDS[kind]
            name = value_name(field(content, "arg", dict, where), where)
            yield GraphInput(name, role, value_name(content, where, label))
        elif kind != "constant_input":
            raise UserError(f"{where}: inputs of kind {kind!r} are not supported")


class Outputs(NamedTuple):
    """``Graph.outputs``, ``output_specs`` and ``constant_outputs``."""

    names: tuple[str, ...]
    specs: tuple[OutputSpec, ...]
    constants: tuple[ConstantOutput, ...]


def read_outputs(graph: Json, signature: Json, inputs: tuple[GraphInput, ...]) -> Outputs:
    """Read all outputs of a graph except tokens, which only order effects.

    Raises ``UserError`` naming the output if its kind is unknown, if the input it names does not
    exist, or if it is a constant where the new value of an input is expected.
    """
    descriptions = field(signature, "output_specs", list, "signature")
    parts = field(graph, "outputs", list, "graph")
    if len(descriptions) != len(parts):
        raise UserError(
            f"the graph has {len(parts)} outputs, but its signature has {len(descriptions)}"
        )
    names: list[str] = []
    specs: list[OutputSpec] = []
    constants: list[ConstantOutput] = []
    position = 0  # among the model's results
    for index, (part, description) in enumerate(zip(parts, descriptions, strict=True)):
        where = f"signature output {index}"
        label, content = read_union(description, where)
        if label == _TOKEN:
            continue
        spec = _output_spec(label, content, where, inputs)
        for value in output_values(part, "graph outputs"):
            if isinstance(value, Ref):
                names.append(value.name)
                specs.append(spec)
            elif spec.kind.is_mutation:
                raise UserError(f"{where}: a constant cannot be written to {spec.input!r}")
            else:
                constants.append(ConstantOutput(position, value))
            position += not spec.kind.is_mutation
    returns_all = all(spec == OutputSpec() for spec in specs)
    return Outputs(tuple(names), () if returns_all else tuple(specs), tuple(constants))


def _output_spec(
    label: str, content: Any, where: str, inputs: tuple[GraphInput, ...]
) -> OutputSpec:
    if label not in {kind.value for kind in OutputKind}:
        raise UserError(f"{where}: outputs of kind {label!r} are not supported")
    kind = OutputKind(label)
    if kind not in _MUTATED_INPUTS:
        return OutputSpec(kind)
    attribute, kinds = _MUTATED_INPUTS[kind]
    name = value_name(content, where, attribute)
    for value in inputs:
        if value.kind in kinds and name in (value.source_name or value.name, value.name):
            return OutputSpec(kind, value.name)
    raise UserError(f"{where}: {kind} refers to {name!r}, which is not such an input")
