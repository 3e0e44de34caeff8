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
    names = sorted({name for config in configs for name in config})
    found = (_parameter(name, configs, others) for name in names)
    return tuple(one for one in found if len(set(one.codes)) > 1)


def _parameter(
    name: str,
    configs: Sequence[Mapping[str, ConfigValue]],
    others: Sequence[Mapping[str, ConfigValue]],
) -> Parameter:
    given = [config[name] for config in (*configs, *others) if name in config]
    is_number = all(isinstance(value, int) and not isinstance(value, bool) for value in given)
    texts = {str(value) for value in given}
    ordered = sorted(texts, key=int) if is_number else sorted(texts)
    if any(name not in config for config in configs):
        ordered.append(UNNAMED)
    place = {text: at for at, text in enumerate(ordered)}
    return Parameter(
        name, tuple(ordered), tuple(place[value_of(config, name)] for config in configs), is_number
    )


def value_of(config: Mapping[str, ConfigValue], name: str) -> str:
    """Return a configuration's value of a parameter as text."""
    return str(config.get(name, UNNAMED))
