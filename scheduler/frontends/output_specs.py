"""What a torch.export file's signature says of the graph's outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.frontends.fields import name_of, tagged
from scheduler.ir.graph import GraphInput, InputKind, OutputKind, OutputSpec
from scheduler.outcome import UserError

# Where a kind of output names the input that it is for, and which kinds of inputs these are.
_INPUTS: Mapping[OutputKind, tuple[str, tuple[InputKind, ...]]] = {
    OutputKind.BUFFER_MUTATION: ("buffer_name", (InputKind.BUFFER, InputKind.CONSTANT)),
    OutputKind.PARAMETER_MUTATION: ("parameter_name", (InputKind.PARAMETER,)),
    OutputKind.USER_INPUT_MUTATION: ("user_input_name", (InputKind.USER,)),
    OutputKind.GRADIENT_TO_PARAMETER: ("parameter_name", (InputKind.PARAMETER,)),
    OutputKind.GRADIENT_TO_USER_INPUT: ("user_input_name", (InputKind.USER,)),
}
_TOKEN = "token"  # noqa: S105 - orders effects, and is no value


def read_output_specs(
    specs: Sequence[Any], inputs: tuple[GraphInput, ...]
) -> list[OutputSpec | None]:
    """What each output is for, in order; None for what is no value of the model's (a token).

    Raises ``UserError`` naming the output whose kind is unknown or whose input is none.
    """
    return [_read(spec, f"signature output {index}", inputs) for index, spec in enumerate(specs)]


def _read(spec: Any, where: str, inputs: tuple[GraphInput, ...]) -> OutputSpec | None:
    label, content = tagged(spec, where)
    if label == _TOKEN:
        return None
    if label not in {known.value for known in OutputKind}:
        raise UserError(f"{where}: outputs of kind {label!r} are not read")
    kind = OutputKind(label)
    if kind not in _INPUTS:
        return OutputSpec(kind)
    field, kinds = _INPUTS[kind]
    name = name_of(content, where, field)
    for given in inputs:
        if given.kind in kinds and name in (given.source_name or given.name, given.name):
            return OutputSpec(kind, given.name)
    raise UserError(f"{where}: {kind} is for {name!r}, which is no such input")
