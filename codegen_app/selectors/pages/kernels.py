"""Kernels in a list, by name."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q

from codegen_app.models import GeneratedKernel

PAGE = 200


@dataclass(frozen=True)
class KernelRow:
    """One kernel in the list."""

    name: str
    url: str
    template: str
    config: dict[str, object]
    nodes: int
    builds: int
    results: int


@dataclass(frozen=True)
class KernelList:
    """A page of kernels by name."""

    query: str
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


def kernel_list(query: str, start: int) -> KernelList:
    """Kernels by name, ``PAGE`` at a time (5 queries)."""
    kernels = GeneratedKernel.objects.order_by("name")
    if query:
        kernels = kernels.filter(Q(name__icontains=query) | Q(template__icontains=query))
    shown = list(kernels.only("name", "template", "config")[start : start + PAGE])
    ids = [kernel.pk for kernel in shown]

    def count(of: str) -> dict[int, int]:
        rows = GeneratedKernel.objects.filter(pk__in=ids).order_by().values_list("pk")
        return dict(rows.annotate(Count(of, distinct=True)))

    nodes, builds, results = count("uses"), count("builds"), count("results")
    rows = tuple(
        KernelRow(
            name=kernel.name,
            url=kernel.get_absolute_url(),
            template=kernel.template,
            config=kernel.config,
            nodes=nodes[kernel.pk],
            builds=builds[kernel.pk],
            results=results[kernel.pk],
        )
        for kernel in shown
    )
    return KernelList(query, kernels.count(), start, rows)
