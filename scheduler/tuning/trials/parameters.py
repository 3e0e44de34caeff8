"""The parameters in which trials differ, each with its values in order, and every trial's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.codegen.kernel import ConfigValue

#: A configuration that leaves a parameter to the kernel.
UNNAMED = "not named"


@dataclass(frozen=True)
class Parameter:
    """A parameter: its values as text, the smallest first where they are numbers, and of each trial
    the place of its value among them. ``is_number``: every value that is named is a number."""

    name: str
    values: tuple[str, ...]
    codes: tuple[int, ...]
    is_number: bool


def varying_parameters(
    configs: Sequence[Mapping[str, ConfigValue]],
    others: Sequence[Mapping[str, ConfigValue]] = (),
) -> tuple[Parameter, ...]:
    """The parameters of which the ``configs`` have several values (to name none is one, too), by
    name. Values that only ``others`` have are among the values."""
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
    """A configuration's value of a parameter as text."""
    return str(config.get(name, UNNAMED))
