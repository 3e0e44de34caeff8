"""Compares two code objects, in the field's terms and by the maker's own rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from scheduler.errors import UserError
from scheduler.isa.instructions import Kind, kind_titles
from scheduler.isa.occupancy import OccupancyRules, Resources, rules_of
from scheduler.targets import Target, find
from scheduler.targets.terms import GENERAL, Terms, plural
from scheduler.track.sides import CodeObject

_UNIT_NAMES = {"B": "bytes"}


@dataclass(frozen=True)
class FigureDifference:
    """A resource figure on both sides, as texts, and its sentence."""

    name: str
    before: str
    after: str
    suffix: str = ""
    """The rest of the sentence: the unit, a boundary that it crosses."""

    @property
    def sentence(self) -> str:
        return f"{self.name} {self.before} → {self.after}{self.suffix}"


def resource_differences(
    before: CodeObject, after: CodeObject, target: str
) -> tuple[FigureDifference, ...]:
    """Return the figures that differ, the waves that the device holds first; device functions are
    compared in order. Empty if either side's resources are unknown."""
    if not before.resources or not after.resources:
        return ()
    gpu = target_of(target)
    rules = rules_of(gpu) if gpu else None
    if len(before.resources) != len(after.resources):
        counts = str(len(before.resources)), str(len(after.resources))
        return (FigureDifference("device functions", *counts),)
    result: list[FigureDifference] = []
    for number, (old, new) in enumerate(
        zip(before.resources.values(), after.resources.values(), strict=True), 1
    ):
        function = f"device function {number}: " if len(before.resources) > 1 else ""
        if gpu and rules:
            figures = list(_rule_differences(old, new, gpu, rules))
        else:
            names = (name for name in sorted(old.keys() & new.keys()) if old[name] != new[name])
            figures = [FigureDifference(name, str(old[name]), str(new[name])) for name in names]
        result += [replace(figure, name=f"{function}{figure.name}") for figure in figures]
    return tuple(result)


def inner_loop_sentence(before: CodeObject, after: CodeObject, target: str) -> str:
    """Return what the inner loop does more or less of; "" if nothing, or if it is unknown."""
    if not before.inner_loop or not after.inner_loop:
        return ""
    gpu = target_of(target)
    names = kind_titles(gpu.words if gpu else GENERAL)
    counts = [
        (kind, before.inner_loop.get(kind.value, 0), after.inner_loop.get(kind.value, 0))
        for kind in Kind
    ]
    parts = [
        f"{names[kind]} {before_count} → {after_count}"
        for kind, before_count, after_count in counts
        if before_count != after_count
    ]
    return f"inner loop instructions: {', '.join(parts)}" if parts else ""


def target_of(name: str) -> Target | None:
    """Return the target of that name; None if no backend here has it."""
    try:
        return find(name)
    except UserError:
        return None


def is_emulated(target: str) -> bool:
    """Return whether the times of a target are those of the CPU emulation."""
    gpu = target_of(target)
    return gpu is not None and bool(gpu.emulates)


def _rule_differences(
    old: Resources, new: Resources, target: Target, rules: OccupancyRules
) -> Iterator[FigureDifference]:
    before, after = rules.waves(old), rules.waves(new)
    if before != after:
        limiter = (new if after < before else old).get("limiter", "")
        limiter_note = f", limited by {limiter} {'now' if after < before else 'before'}"
        suffix = f" {_occupancy_unit(target.words, rules)}{limiter_note * bool(limiter)}"
        yield FigureDifference("occupancy", str(before), str(after), suffix)
    registers = rules.common.get("registers", "")
    ordered = sorted(rules.columns, key=lambda column: registers not in column.figures)
    for column in ordered:
        if all(old.get(name) == new.get(name) for name in column.figures):
            continue
        if any(old.get(name) is None or new.get(name) is None for name in column.figures):
            continue  # the Kiln that recorded one of them did not read it
        if registers in column.figures:
            yield _register_difference(old, new, target, rules)
        else:
            before_text, after_text = (
                ", ".join(f"{figures[name]:,}" for name in column.figures) for figures in (old, new)
            )
            unit = _UNIT_NAMES.get(column.unit, column.unit)
            yield FigureDifference(column.heading, before_text, after_text, f" {unit}".rstrip())


def _register_difference(
    old: Resources, new: Resources, target: Target, rules: OccupancyRules
) -> FigureDifference:
    title = plural(target.words.register)
    counts = str(rules.registers(old)), str(rules.registers(new))
    before, after = (rules.waves_by_registers(figures, target) for figures in (old, new))
    if before == after:
        return FigureDifference(title, *counts)
    boundary = f", crossing the limit of {before} → {after} {_occupancy_unit(target.words, rules)}"
    if (rules.waves(old), rules.waves(new)) != (before, after):
        boundary += " allowed by registers alone"
    return FigureDifference(title, *counts, boundary)


def _occupancy_unit(words: Terms, rules: OccupancyRules) -> str:
    holder = rules.waves_heading[1].split()[-1]
    return f"{plural(words.wave)} per {holder}"
