"""Kernels in a list, by name."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Count, Q

from codegen_app.models import GeneratedKernel
from scheduler.codegen.languages import language_of

PAGE = 200


@dataclass(frozen=True)
class KernelRow:
    """One kernel in the list."""

    name: str
    url: str
    language: str
    template: str
    config: dict[str, object]
    nodes: int
    builds: int
    results: int


@dataclass(frozen=True)
class KernelList:
    """A page of kernels by name."""

    query: str
    language: str
    languages: tuple[str, ...]
    total: int
    start: int
    kernels: tuple[KernelRow, ...]

    @property
    def previous(self) -> int | None:
        """Where the page before this one starts; None on the first."""
        return max(0, self.start - PAGE) if self.start else None

    @property
    def end(self) -> int:
        """The position behind the last kernel shown."""
        return self.start + len(self.kernels)


def kernel_list(query: str, start: int, language: str = "") -> KernelList:
    """Kernels by name, ``PAGE`` at a time (6 queries); in one language where it is given."""
    kernels = GeneratedKernel.objects.order_by("name")
    files = kernels.order_by().values_list("source_file", flat=True).distinct()
    by_language: dict[str, list[str]] = defaultdict(list)
    for file in files:
        by_language[language_of(file)].append(file)
    if language:
        kernels = kernels.filter(source_file__in=by_language.get(language, []))
    if query:
        kernels = kernels.filter(Q(name__icontains=query) | Q(template__icontains=query))
    shown = list(kernels.only("name", "template", "config", "source_file")[start : start + PAGE])
    ids = [kernel.pk for kernel in shown]

    def count(of: str) -> dict[int, int]:
        rows = GeneratedKernel.objects.filter(pk__in=ids).order_by().values_list("pk")
        return dict(rows.annotate(Count(of, distinct=True)))

    nodes, builds, results = count("uses"), count("builds"), count("results")
    rows = tuple(
        KernelRow(
            name=kernel.name,
            url=kernel.get_absolute_url(),
            language=language_of(kernel.source_file),
            template=kernel.template,
            config=kernel.config,
            nodes=nodes[kernel.pk],
            builds=builds[kernel.pk],
            results=results[kernel.pk],
        )
        for kernel in shown
    )
    return KernelList(query, language, tuple(sorted(by_language)), kernels.count(), start, rows)
