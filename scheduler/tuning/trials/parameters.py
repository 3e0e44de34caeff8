"""The parameters in which trials differ, each with its ordered values and every trial's value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.codegen.kernel import ConfigValue

#: The value of a parameter that a configuration leaves to the kernel.
UNNAMED = "not named"


@dataclass(frozen=True)
class Parameter:
    """A parameter: its values as text, numbers ascending, and for each trial the index of its
    value. ``is_number``: every named value is a number."""

    name: str
    values: tuple[str, ...]
    codes: tuple[int, ...]
    is_number: bool


def varying_parameters(
    configs: Sequence[Mapping[str, ConfigValue]],
    others: Sequence[Mapping[str, ConfigValue]] = (),
) -> tuple[Parameter, ...]:
    """Return the parameters for which ``configs`` have several values (leaving it unnamed counts as
    one), by name. Values that only ``others`` have are included."""
    parameters = []
    for name in sorted({name for config in configs for name in config}):
        texts = [value_of(config, name) for config in configs]
        if len(set(texts)) < 2:
            continue
        values = [config[name] for config in (*configs, *others) if name in config]
        is_number = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
        ordered = sorted({str(value) for value in values}, key=int if is_number else str)
        if UNNAMED in texts:
            ordered.append(UNNAMED)
        codes = {text: code for code, text in enumerate(ordered)}
        parameters.append(
            Parameter(name, tuple(ordered), tuple(codes[text] for text in texts), is_number)
        )
    return tuple(parameters)


def value_of(config: Mapping[str, ConfigValue], name: str) -> str:
    """Return a configuration's value of a parameter as text."""
    return str(config.get(name, UNNAMED))
