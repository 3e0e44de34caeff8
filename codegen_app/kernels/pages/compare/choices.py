"""What can be compared: builds that a search finds, recent ones, and the rivals of a build."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.urls import reverse

from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.models.build import WITH_FIGURES
from codegen_app.kernels.pages.compare.sides import Side, full_label, make_sides
from codegen_app.kernels.pages.compare.verdict import comparable_times
from codegen_app.tuning.models import BenchmarkResult, Selection

_MAX_FOUND = 40
_MAX_SUGGESTIONS = 6
_MAX_BUILDS_OF_KERNEL = 8
_DEFAULT, _FASTEST, _SECOND = "the default", "the fastest measured", "the second best"


@dataclass(frozen=True)
class Choice:
    """A build that can be added to a comparison: ``title`` says how it relates to the first side,
    ``label`` which one it is; ``ratio`` is its time over the first side's, None if unknown."""

    title: str
    build: int
    label: str
    ratio: float | None = None


@dataclass(frozen=True)
class Suggestion:
    """A selected kernel with the rivals to compare it with."""

    problem: str
    device: str
    kernel: str
    build: int
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class ComparedChoices:
    """The page where sides are picked: the ``picked`` ones, those that ``words`` find (the newest
    for no words), choices for the first picked one, and suggestions if none is."""

    words: str
    picked: tuple[Side, ...]
    found: tuple[Side, ...]
    is_cut: bool
    choices: tuple[Choice, ...]
    suggestions: tuple[Suggestion, ...]

    @property
    def url(self) -> str:
        """The address of the comparison of the picked sides."""
        return compare_url(side.build for side in self.picked)

    @property
    def without_urls(self) -> tuple[str, ...]:
        """For each picked side, this page without it."""
        numbers = [side.build for side in self.picked]
        return tuple(
            compare_url(other for other in numbers if other != number) for number in numbers
        )


def choices_page(words: str, picked: Sequence[int]) -> ComparedChoices:
    """Return what can be compared (at most 10 queries). Raises ``Build.DoesNotExist``."""
    by_number = Build.objects.select_related("kernel").in_bulk(picked)
    for number in picked:
        if number not in by_number:
            raise Build.DoesNotExist(f"there is no build {number}")
    rows = [by_number[number] for number in picked]
    found = list(_search(words).exclude(pk__in=picked).select_related("kernel")[: _MAX_FOUND + 1])
    shown = found[:_MAX_FOUND]
    times = comparable_times([*rows, *shown])
    return ComparedChoices(
        words=words,
        picked=make_sides(rows, times) if rows else (),
        found=make_sides(shown, times) if shown else (),
        is_cut=len(found) > _MAX_FOUND,
        choices=choices_for(rows[0], picked) if rows else (),
        suggestions=() if rows or words else _suggestions(),
    )


def _search(words: str) -> QuerySet[Build]:
    """Return the builds whose kernel, target, flags or parameters have each word, newest first."""
    builds = Build.objects.filter(WITH_FIGURES)
    for word in words.split():
        name, _, value = word.partition("=")
        matching = Q(kernel__name__icontains=word) | Q(target__icontains=word)
        matching |= Q(flags__icontains=word) | Q(kernel__template__icontains=word)
        if value:
            values: list[Any] = [value]
            with suppress(ValueError):
                values.append(json.loads(value.lower()))
            for each in values:
                matching |= Q(kernel__config__contains={name: each})
        builds = builds.filter(matching)
    return builds.order_by("-pk")


def choices_for(build: Build, sides: Iterable[int] = ()) -> tuple[Choice, ...]:
    """Return what a build is usually compared with, without those in ``sides`` (3 queries): its
    problem's default and fastest kernels, and its kernel's other targets and flags."""
    result = BenchmarkResult.objects.filter(build=build).order_by("-created_at", "-pk").first()
    choices = _rivals([result])[result.pk] if result else []
    others = Build.objects.filter(WITH_FIGURES, kernel=build.kernel_id).exclude(pk=build.pk)
    for other in others.select_related("kernel").order_by("target", "pk")[:_MAX_BUILDS_OF_KERNEL]:
        flags = " ".join(other.flags)
        title = f"on {other.target}" if other.target != build.target else f"with {flags}"
        choices.append(Choice(title, other.pk, full_label(other)))
    present = {build.pk, *sides}
    return tuple(choice for choice in choices if choice.build not in present)


def _rivals(results: Sequence[BenchmarkResult]) -> dict[int, list[Choice]]:
    """Return, for each result, the default and the fastest other kernels that were measured for its
    problem in its environment and sizes (2 queries)."""
    problems = {result.problem_id for result in results}
    environments = {result.environment_id for result in results}
    uses = KernelUse.objects.filter(is_default=True, template_node__problem__in=problems)
    defaults = set(uses.values_list("template_node__problem", "kernel"))
    measured = (
        BenchmarkResult.objects.filter(problem__in=problems, environment__in=environments)
        .select_related("build__kernel")
        .only(
            *("problem_id", "environment_id", "bindings", "median_ns", "kernel_id"),
            *("build__target", "build__flags", "build__kernel__name"),
        )
        .order_by("median_ns", "-pk")
    )
    rows = list(measured)
    choices: dict[int, list[Choice]] = {}
    for result in results:
        ranked = {
            row.kernel_id: row
            for row in reversed(rows)
            if (row.problem_id, row.environment_id, row.bindings)
            == (result.problem_id, result.environment_id, result.bindings)
        }
        fastest = sorted(ranked.values(), key=lambda row: row.median_ns)[:2]
        titled = [
            *(
                (_DEFAULT, row)
                for row in ranked.values()
                if (row.problem_id, row.kernel_id) in defaults
            ),
            *zip((_FASTEST, _SECOND), fastest, strict=False),
        ]
        others = {}
        for title, row in titled:
            if row.kernel_id != result.kernel_id and row.build_id not in others:
                ratio = row.median_ns / result.median_ns
                others[row.build_id] = Choice(title, row.build_id, full_label(row.build), ratio)
        choices[result.pk] = list(others.values())
    return choices


def _suggestions() -> tuple[Suggestion, ...]:
    """Return the latest selected kernels that have rivals (3 queries)."""
    selections = (
        Selection.objects.filter(until=None, result__isnull=False)
        .select_related("result", "kernel", "problem")
        .order_by("result__emulated", "-since", "-pk")[: 2 * _MAX_SUGGESTIONS]
    )
    rows = [row for row in selections if row.result is not None]
    rivals = _rivals([row.result for row in rows if row.result is not None]) if rows else {}
    suggestions = [
        Suggestion(
            row.problem.summary,
            row.device_name,
            row.kernel.name,
            row.result.build_id,
            tuple(rivals[row.result.pk]),
        )
        for row in rows
        if row.result is not None and rivals[row.result.pk]
    ]
    return tuple(suggestions[:_MAX_SUGGESTIONS])


def compare_url(builds: Iterable[int]) -> str:
    """Return the address of a comparison."""
    query = urlencode({"build": list(builds)}, doseq=True)
    return f"{reverse('compare')}?{query}" if query else reverse("compare")
