"""Converts the recorded facts of a series' point, from any source, to a point of a side.

Facts are JSON that anyone may have sent. A fact of the wrong form counts as unknown; it is never an
error, and never compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scheduler.errors import UserError
from scheduler.ir.codec import decode, default_codec
from scheduler.isa.occupancy import rules_of
from scheduler.track.resources import target_of
from scheduler.track.sides import Alternative, CodeObject, Compiler, Environment, Point
from scheduler.track.telemetry import SENSOR_NAMES

UNIT = ("uuid", "serial", "unit")
"""Names of the attributes that identify one device among those of a model."""

INSTRUCTIONS_DIGEST, INNER_LOOP, HEADERS = "instructions_digest", "inner_loop", "headers_digest"
"""Attributes of the code object and its compiler."""

ALTERNATIVES = "others"
"""The attribute of tuning's alternatives: ``{configuration: {source_digest, code_digest}}``."""

CODE_FACTS = frozenset({INSTRUCTIONS_DIGEST, INNER_LOOP, HEADERS, ALTERNATIVES})
"""Attributes that say nothing about the environment."""

_NOT_SETTINGS = {*UNIT, *CODE_FACTS, "readings"}
_NUMBER_END = 2**31
_POSITIVE_FIGURES = ("threads", "wavefront")
_MAX_SETTING_CHARS = 200


def point_of(
    facts: Mapping[str, Any],
    *,
    value: float,
    low: float | None,
    high: float | None,
    n: int,
    revision: str,
    target: str,
    device: str,
    toolchain: str,
) -> Point:
    """Return a point whose conditions are ``facts`` (``scheduler.results.points.model``).

    Without an interval, both bounds are the value.
    """
    attributes = _mapping(facts.get("attributes"))
    return Point(
        value=value,
        low=value if low is None else low,
        high=value if high is None else high,
        n=n,
        revision=revision,
        source_digest=_text(facts.get("source_digest")),
        configuration=configuration_of(facts),
        target=target,
        compiler=Compiler(
            toolchain,
            _text(facts.get("toolchain_version")),
            tuple(_text(facts.get("flags")).split()),
            _text(attributes.get(HEADERS)),
        ),
        code=CodeObject(
            digest=_text(facts.get("code_digest")),
            instructions_digest=_text(attributes.get(INSTRUCTIONS_DIGEST)),
            resources=_resources(_mapping(facts.get("resources")), target),
            inner_loop={
                name: count
                for name, count in _mapping(attributes.get(INNER_LOOP)).items()
                if _is_count(count)
            },
        ),
        environment=environment_of(facts, device),
        readings={
            **parse_readings(facts.get("clocks")),
            **parse_sensors(facts.get("readings")),
        },
        others={
            name: Alternative(
                _text(alternative.get("source_digest")), _text(alternative.get("code_digest"))
            )
            for name, alternative in _mapping(attributes.get(ALTERNATIVES)).items()
            if isinstance(alternative, Mapping)
        },
    )


def facts_of(point: Point) -> dict[str, Any]:
    """Return the facts of a point, without unknown ones: ``point_of`` reads them back."""
    code, environment = point.code, point.environment
    attributes = {
        **environment.settings,
        "unit": environment.unit,
        HEADERS: point.compiler.digest,
        INSTRUCTIONS_DIGEST: code.instructions_digest,
        INNER_LOOP: dict(code.inner_loop),
        ALTERNATIVES: {
            name: {
                "source_digest": alternative.source_digest,
                "code_digest": alternative.code_digest,
            }
            for name, alternative in point.others.items()
        },
    }
    config = (part.partition("=") for part in point.configuration.split(", ") if part)
    facts: dict[str, Any] = {
        "toolchain_version": point.compiler.version,
        "flags": " ".join(point.compiler.flags),
        "driver": environment.driver,
        "runtime": environment.runtime,
        "host": environment.host,
        "source_digest": point.source_digest,
        "code_digest": code.digest,
        "config": {name: value for name, _, value in config},
        "resources": {name: dict(figures) for name, figures in code.resources.items()},
        "clocks": {
            name: value for name, value in point.readings.items() if name not in SENSOR_NAMES
        },
        "readings": {name: value for name, value in point.readings.items() if name in SENSOR_NAMES},
        "attributes": {
            name: alternative for name, alternative in attributes.items() if alternative
        },
    }
    return {name: fact for name, fact in facts.items() if fact}


def configuration_of(facts: Mapping[str, Any]) -> str:
    """Return the kernel's configuration as one text; "" if unknown."""
    config = _mapping(facts.get("config"))
    return ", ".join(f"{name}={config[name]}" for name in sorted(config))


def environment_of(facts: Mapping[str, Any], device: str) -> Environment:
    """Return the environment from the facts, on a device of that model."""
    attributes = _mapping(facts.get("attributes"))
    return Environment(
        driver=_text(facts.get("driver")),
        runtime=_text(facts.get("runtime")),
        device=device,
        unit=next((text for name in UNIT if (text := _text(attributes.get(name)))), ""),
        host=_text(facts.get("host")),
        settings={
            name: str(value)[:_MAX_SETTING_CHARS]
            for name, value in attributes.items()
            if name not in _NOT_SETTINGS and isinstance(value, str | int | float | bool)
        },
    )


def parse_readings(clocks: Any) -> dict[str, float]:
    """Return the device's telemetry: clocks in MHz under either name (``sm_clock``,
    ``sm_clock_mhz``), and the shares of samples in which something throttled them."""
    readings = {}
    for name, value in _mapping(clocks).items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if math.isfinite(value) and 0 <= value < _NUMBER_END:
            has_unit = name.startswith("throttled_") or name.endswith("_mhz")
            readings[name if has_unit else f"{name}_mhz"] = float(value)
    return readings


def parse_sensors(readings: Any) -> dict[str, float]:
    """Return power in W, temperature in °C, and ECC errors (``telemetry.SENSOR_NAMES``); others
    are not compared."""
    known = {name: value for name, value in _mapping(readings).items() if name in SENSOR_NAMES}
    return {
        name: float(value)
        for name, value in known.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value < _NUMBER_END
    }


def _resources(functions: Mapping[str, Any], target: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the resources of all device functions, or none."""
    if not functions:
        return {}
    gpu = target_of(target)
    rules = rules_of(gpu) if gpu else None
    kind = rules.figures if rules else None
    for figures in functions.values():
        if not isinstance(figures, Mapping):
            return {}
        if not all(isinstance(value, str) or _is_count(value) for value in figures.values()):
            return {}
        if any(
            not isinstance(figures.get(name, 1), str) and figures.get(name, 1) < 1
            for name in _POSITIVE_FIGURES
        ):
            return {}
        if kind is not None:
            try:
                decode(default_codec(), figures, kind, "resources")
            except UserError:
                return {}
    return functions


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _NUMBER_END


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
