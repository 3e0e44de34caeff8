"""The differences between the two sides of a change, each as a sentence in the field's terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from scheduler.targets.terms import GENERAL
from scheduler.track.alignment import Finding, Relation, Window
from scheduler.track.resources import inner_loop_sentence, resource_differences, target_of
from scheduler.track.sides import Compiler, Point, Side
from scheduler.track.telemetry import has_telemetry_difference, telemetry_differences


class Aspect(StrEnum):
    """The aspect of a difference, in display order."""

    REVISION = "revision"
    SOURCE = "source"
    CONFIGURATION = "configuration"
    COMPILER = "compiler"
    HEADERS = "headers"
    CODE = "code object"
    RESOURCES = "resources"
    INNER_LOOP = "inner loop"
    DRIVER = "driver"
    RUNTIME = "runtime"
    DEVICE = "device"
    UNIT = "unit"
    HOST = "host"
    SETTINGS = "settings"
    READINGS = "readings"


ENVIRONMENT = (
    Aspect.DRIVER,
    Aspect.RUNTIME,
    Aspect.DEVICE,
    Aspect.UNIT,
    Aspect.HOST,
    Aspect.SETTINGS,
    Aspect.READINGS,
)
"""Aspects of the environment: if one differs, the change is never attributed to the code."""


@dataclass(frozen=True)
class Difference:
    """One difference. ``name`` says which item of an aspect with several (a setting, a reading);
    ``here`` whether it changed where the level moved: one that changed at another explains nothing
    but is shown all the same."""

    aspect: Aspect
    before: str
    after: str
    sentence: str
    name: str = ""
    here: bool = True


def differences(before: Side, after: Side) -> tuple[Difference, ...]:
    """Return the differences in ``Aspect``'s order; a value unknown on one side is no
    difference."""
    window = Window(before, after)
    return differences_of(window, findings(window))


def differences_of(window: Window, by_aspect: dict[Aspect, Finding]) -> tuple[Difference, ...]:
    """Return the ``differences`` of sides whose ``findings`` are already known."""
    result: list[Difference] = []
    for aspect, finding in by_aspect.items():
        if finding.relation in {Relation.DIFFERS, Relation.ELSEWHERE}:
            result += _aspect_differences(aspect, finding, window)
            if aspect is Aspect.CODE and finding.relation is Relation.DIFFERS:
                before_point, after_point = finding.before, finding.after
                target = after_point.target if before_point.target == after_point.target else ""
                result += [
                    Difference(
                        Aspect.RESOURCES, figure.before, figure.after, figure.sentence, figure.name
                    )
                    for figure in resource_differences(before_point.code, after_point.code, target)
                ]
                loop_sentence = inner_loop_sentence(before_point.code, after_point.code, target)
                if loop_sentence:
                    result.append(
                        Difference(
                            Aspect.INNER_LOOP,
                            _inner_loop_text(before_point),
                            _inner_loop_text(after_point),
                            loop_sentence,
                        )
                    )
    return (*result, *_telemetry_differences(window))


def environment_differences(
    earlier: Point, later: Point, *, unknown: bool = False
) -> tuple[Difference, ...]:
    """Return the differences between the environments of two points, as ``differences`` does for
    sides of one point each, but fast enough for thousands. With ``unknown`` it includes values
    known for one point only, for callers that must not compare unless everything is known to be
    equal."""
    same_environment = earlier.environment == later.environment
    same_readings = not has_telemetry_difference(earlier, later)
    if same_environment and same_readings:
        return ()
    result: list[Difference] = []
    window = Window(Side((earlier,)), Side((later,)))
    if not same_environment:
        for aspect in ENVIRONMENT:
            label = _LABELS.get(aspect)
            before, after = (label(earlier), label(later)) if label else ("", "")
            if before != after and (unknown or (before and after)):
                result += _aspect_differences(
                    aspect, Finding(Relation.DIFFERS, earlier, later), window
                )
    if not same_readings:
        result += _telemetry_differences(window)
    return tuple(result)


def findings(window: Window) -> dict[Aspect, Finding]:
    """Return the finding of each attribute; resources and readings have none."""
    return {
        aspect: window.finding(_labels(aspect, window), at_boundary=aspect in ENVIRONMENT)
        for aspect in _LABELS
    }


def digest_label(window: Window) -> Callable[[Point], str]:
    """Return the label by which two code objects are the same: the hash of the instructions if both
    sides have one, else that of the files."""
    sides = window.before.near, window.after.near
    if all(any(point.code.instructions_digest for point in side) for side in sides):
        return lambda point: point.code.instructions_digest
    return lambda point: point.code.digest


def _labels(aspect: Aspect, window: Window) -> Callable[[Point], str]:
    return digest_label(window) if aspect is Aspect.CODE else _LABELS[aspect]


_LABELS: dict[Aspect, Callable[[Point], str]] = {
    Aspect.REVISION: lambda point: point.revision,
    Aspect.SOURCE: lambda point: point.source_digest,
    Aspect.CONFIGURATION: lambda point: point.configuration,
    Aspect.COMPILER: lambda point: point.compiler.text,
    Aspect.HEADERS: lambda point: point.compiler.digest,
    Aspect.CODE: lambda point: point.code.digest,
    Aspect.DRIVER: lambda point: point.environment.driver,
    Aspect.RUNTIME: lambda point: point.environment.runtime,
    Aspect.DEVICE: lambda point: point.environment.device,
    Aspect.UNIT: lambda point: point.environment.unit,
    Aspect.HOST: lambda point: point.environment.host,
    Aspect.SETTINGS: lambda point: "; ".join(
        f"{name}={text}" for name, text in sorted(point.environment.settings.items())
    ),
}

_DIGEST = re.compile("[0-9a-f]{40,}")
_DIGEST_DIGITS = 12


def _telemetry_differences(window: Window) -> Iterator[Difference]:
    for reading in telemetry_differences(window.before, window.after):
        before, after = f"{reading.before:g}", f"{reading.after:g}"
        yield Difference(Aspect.READINGS, before, after, reading.sentence, reading.name)


def _aspect_differences(aspect: Aspect, finding: Finding, window: Window) -> Iterator[Difference]:
    is_at_change = finding.relation is Relation.DIFFERS
    suffix = ""
    if not is_at_change:
        count = abs(finding.offset)
        distance = "1 point" if count == 1 else f"{count} points"
        side = "before" if finding.offset < 0 else "after"
        suffix = f" ({distance} {side} the change, not at the change)"
    if aspect is Aspect.SETTINGS:
        before, after = finding.before.environment.settings, finding.after.environment.settings
        for name in sorted(before.keys() | after.keys()):
            before_text, after_text = before.get(name, "not set"), after.get(name, "not set")
            if before_text != after_text:
                yield Difference(
                    aspect,
                    before_text,
                    after_text,
                    f"{name} {before_text} → {after_text}{suffix}",
                    name,
                    is_at_change,
                )
        return
    label = _labels(aspect, window)
    before_text, after_text = label(finding.before), label(finding.after)
    if aspect is Aspect.COMPILER:
        text = _compiler_change(finding.before.compiler, finding.after.compiler)
    elif aspect is Aspect.CONFIGURATION:
        text = _configuration_change(before_text, after_text)
    else:
        title = _TITLES.get(aspect, aspect.value)
        if aspect is Aspect.CODE:
            gpu = target_of(finding.after.target)
            title = gpu.words.image if gpu else GENERAL.image
        text = f"{title} {shorten_digest(before_text)} → {shorten_digest(after_text)}"
    yield Difference(aspect, before_text, after_text, text + suffix, here=is_at_change)


_TITLES = {Aspect.HEADERS: "kernel headers", Aspect.UNIT: "device serial number"}


def _inner_loop_text(point: Point) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in point.code.inner_loop.items())


def shorten_digest(text: str) -> str:
    """Shorten a hash or a commit for display; return other texts unchanged."""
    return text[:_DIGEST_DIGITS] if _DIGEST.fullmatch(text) else text


def _compiler_change(before: Compiler, after: Compiler) -> str:
    if before.name != after.name:
        return f"compiler {before.name} {before.version} → {after.name} {after.version}"
    if before.version != after.version:
        versions = [one.version.removeprefix(f"{one.name} ") for one in (before, after)]
        return f"{before.name} {versions[0]} → {versions[1]}"
    flags = [" ".join(compiler.flags) or "none" for compiler in (before, after)]
    return f"compiler flags {flags[0]} → {flags[1]}"


def _configuration_change(before: str, after: str) -> str:
    """Return the parameters that differ between two configurations (``facts.configuration_of``);
    both as a whole if a value contains their separator."""
    parts = [text.split(", ") for text in (before, after)]
    if not all("=" in part for side in parts for part in side):
        return f"{Aspect.CONFIGURATION.value} {before} → {after}"
    old, new = (dict(part.split("=", 1) for part in side) for side in parts)
    changed = [
        f"{name} {old.get(name, 'not set')} → {new.get(name, 'not set')}"
        for name in sorted({**old, **new})
        if old.get(name) != new.get(name)
    ]
    return f"{Aspect.CONFIGURATION.value} {', '.join(changed)}"
