"""A graph's outputs: their values and constants, and what the signature states about each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from scheduler.errors import UserError
from scheduler.frontends.arguments import output_values
from scheduler.frontends.fields import Json, field, read_union, value_name
from scheduler.ir.graph import ConstantOutput, GraphInput, InputKind, OutputKind, OutputSpec, Ref

# Field in which a kind of output names its input, and the allowed kinds of that input.
_INPUTS: Mapping[OutputKind, tuple[str, tuple[InputKind, ...]]] = {
    OutputKind.BUFFER_MUTATION: ("buffer_name", (InputKind.BUFFER, InputKind.CONSTANT)),
    OutputKind.PARAMETER_MUTATION: ("parameter_name", (InputKind.PARAMETER,)),
    OutputKind.USER_INPUT_MUTATION: ("user_input_name", (InputKind.USER,)),
    OutputKind.GRADIENT_TO_PARAMETER: ("parameter_name", (InputKind.PARAMETER,)),
    OutputKind.GRADIENT_TO_USER_INPUT: ("user_input_name", (InputKind.USER,)),
}
_TOKEN = "token"  # noqa: S105 - orders effects, and is no value


class Outputs(NamedTuple):
    """``Graph.outputs``, ``output_specs`` and ``constant_outputs``."""

    names: tuple[str, ...]
    specs: tuple[OutputSpec, ...]
    constants: tuple[ConstantOutput, ...]


def read_outputs(graph: Json, module: Json, inputs: tuple[GraphInput, ...]) -> Outputs:
    """Return all outputs of the graph of a module except tokens, which only order effects.

    Raises ``UserError`` naming the output if its kind is unknown, if the input it names does not
    exist, or if it is a constant where the new value of an input is expected.
    """
    signature = field(module, "signature", dict, "graph_module")
    described = field(signature, "output_specs", list, "signature")
    parts = field(graph, "outputs", list, "graph")
    if len(described) != len(parts):
        raise UserError(
            f"the graph has {len(parts)} outputs, but its signature has {len(described)}"
        )
    names: list[str] = []
    specs: list[OutputSpec] = []
    constants: list[ConstantOutput] = []
    place = 0  # position among the model's results
    for index, (part, description) in enumerate(zip(parts, described, strict=True)):
        spec = _read(description, f"signature output {index}", inputs)
        if spec is None:
            continue
        for value in output_values(part, "graph outputs"):
            if isinstance(value, Ref):
                names.append(value.name)
                specs.append(spec)
            elif spec.kind.is_mutation:
                raise UserError(
                    f"signature output {index}: a constant cannot be written to {spec.input!r}"
                )
            else:
                constants.append(ConstantOutput(place, value))
            place += not spec.kind.is_mutation
    returns_all = all(spec == OutputSpec() for spec in specs)
    return Outputs(tuple(names), () if returns_all else tuple(specs), tuple(constants))


def _read(spec: Any, where: str, inputs: tuple[GraphInput, ...]) -> OutputSpec | None:
    label, content = read_union(spec, where)
    if label == _TOKEN:
        return None
    if label not in {known.value for known in OutputKind}:
        raise UserError(f"{where}: outputs of kind {label!r} are not supported")
    kind = OutputKind(label)
    if kind not in _INPUTS:
        return OutputSpec(kind)
    attribute, kinds = _INPUTS[kind]
    name = value_name(content, where, attribute)
    for given in inputs:
        if given.kind in kinds and name in (given.source_name or given.name, given.name):
            return OutputSpec(kind, given.name)
    raise UserError(f"{where}: {kind} refers to {name!r}, which is not such an input")
