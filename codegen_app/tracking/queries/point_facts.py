"""The recorded facts of a point by name, and those that differ between two points."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from codegen_app.tracking.models import Datum
from scheduler.track.differences import Aspect, shorten_digest
from scheduler.track.facts import (
    ALTERNATIVES,
    HEADERS,
    INNER_LOOP,
    INSTRUCTIONS_DIGEST,
    UNIT,
)

CONFIGURATION = "configuration: "
"""The prefix of a parameter's name."""


@dataclass(frozen=True)
class FactRow:
    """One recorded fact: its name, and its text on each side ("" if unknown). Telemetry varies from
    point to point: by itself it is no difference."""

    name: str
    before: str
    after: str
    is_telemetry: bool = False

    @property
    def differs(self) -> bool:
        is_known = bool(self.before and self.after) and not self.is_telemetry
        return is_known and self.before != self.after

    @property
    def short_before(self) -> str:
        """The text before, a hash shortened."""
        return shorten_digest(self.before)

    @property
    def short_after(self) -> str:
        """The text after, a hash shortened."""
        return shorten_digest(self.after)


def previous_point(datum: Datum) -> Datum | None:
    """Return the point before in the history, with its revision, conditions, kernel and run (1
    query)."""
    earlier = Datum.objects.trunk().filter(series=datum.series_id, at__lte=datum.at)
    return (
        earlier.exclude(at=datum.at, pk__gte=datum.pk)
        .select_related("revision", "conditions", "kernel", "run")
        .defer("samples")
        .order_by("-at", "-id")
        .first()
    )


def compare_facts(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[FactRow, ...]:
    """Return the facts of two points, those that differ first."""
    sides = [dict(fact_texts(facts)) for facts in (before, after)]
    telemetry = {name for facts in (before, after) for name, _ in _telemetry_texts(facts)}
    rows = []
    for name in {**sides[0], **sides[1]}:
        old, new = (side.get(name, _missing_text(name, side)) for side in sides)
        rows.append(FactRow(name, old, new, name in telemetry))
    return tuple(sorted(rows, key=lambda row: not row.differs))


def _missing_text(name: str, side: Mapping[str, str]) -> str:
    """Return the text of a fact that a side lacks: a configuration lists all its parameters."""
    has_configuration = any(other.startswith(CONFIGURATION) for other in side)
    return "not set" if name.startswith(CONFIGURATION) and has_configuration else ""


_TITLES = {
    "toolchain_version": Aspect.COMPILER.value,
    "flags": "compiler flags",
    "driver": Aspect.DRIVER.value,
    "runtime": Aspect.RUNTIME.value,
    "host": Aspect.HOST.value,
    "kernel": "kernel",
    "source_digest": "source hash",
    "code_digest": "code object hash",
}


def fact_texts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the recorded facts of a point with their names, in a fixed order."""
    for name, title in _TITLES.items():
        if facts.get(name):
            yield title, _text(facts[name])
    for name, value in sorted(_mapping(facts.get("config")).items()):
        yield f"{CONFIGURATION}{name}", _text(value)
    yield from _telemetry_texts(facts)
    attributes = _mapping(facts.get("attributes"))
    for kind, count in _mapping(attributes.get(INNER_LOOP)).items():
        yield f"inner loop: {kind}", _text(count)
    for function, figures in _mapping(facts.get("resources")).items():
        for name, value in _mapping(figures).items():
            prefix = f"{function}: " if len(facts["resources"]) > 1 else ""
            yield f"{prefix}{name.replace('_', ' ')}", _text(value)
    for name, value in attributes.items():
        if name == ALTERNATIVES:
            yield "built configurations not selected", str(len(_mapping(value)))
        elif name != INNER_LOOP:
            yield _ATTRIBUTES.get(name, name.replace("_", " ")), _text(value)


def _telemetry_texts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in _mapping(facts.get("clocks")).items():
        yield _clock_text(name, value)
    for name, value in _mapping(facts.get("readings")).items():
        title, unit = _READINGS.get(name, (name.replace("_", " "), ""))
        yield title, f"{_text(value)}{unit}"


_READINGS = {
    "power_w": ("power", " W"),
    "temperature_c": ("temperature", " °C"),
    "ecc_corrected": ("corrected ECC errors", ""),
    "ecc_uncorrected": ("uncorrected ECC errors", ""),
}
_CLOCKS = {"sm": "SM", "gpu": "GPU"}
_ATTRIBUTES = {
    INSTRUCTIONS_DIGEST: "instruction hash",
    HEADERS: "header hash",
    **dict.fromkeys(UNIT, "device serial number"),
}


def _clock_text(name: str, value: Any) -> tuple[str, str]:
    if not isinstance(value, int | float):
        return name, _text(value)
    if name.startswith("throttled_"):
        return f"throttled by {name.removeprefix('throttled_')}", f"{value:.0%} of samples"
    title = name.removesuffix("_mhz").removesuffix("_clock").replace("_", " ")
    return f"{_CLOCKS.get(title, title)} clock", f"{value:g} MHz"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
