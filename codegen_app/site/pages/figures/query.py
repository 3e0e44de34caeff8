"""The kinds of figures, and where those of this site come from."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Max

from codegen_app.kernels.models import Modelling
from codegen_app.tracking.models import Revision
from codegen_app.tuning.models import Environment, ResultImport
from codegen_app.tuning.models.benchmark_result import IMPORTED
from codegen_app.web.figures import (
    EMULATED,
    FIGURE_KINDS,
    GENERATED,
    MEASURED,
    MODELLED,
    RECORDED,
    FigureKind,
)
from codegen_app.workers.models import State
from scheduler.track.generated_label import LABEL

_MAX_NAMES = 6


@dataclass(frozen=True)
class KindHere:
    """A kind of figure; ``sources`` are the devices and boards that this site has such figures of,
    () if it has none."""

    kind: FigureKind
    sources: tuple[str, ...]


@dataclass(frozen=True)
class FiguresPage:
    """The legend of the kinds of figures."""

    kinds: tuple[KindHere, ...]


def figures_page() -> FiguresPage:
    """Return the legend (4 queries)."""
    return FiguresPage(kinds_here())


def kinds_here() -> tuple[KindHere, ...]:
    """Return every kind with its sources on this site (4 queries), at most ``_MAX_NAMES`` each."""
    names: dict[bool, list[str]] = {True: [], False: []}
    environments = Environment.objects.exclude(device_name__endswith=IMPORTED).order_by()
    for emulated, name in environments.values_list("emulated", "device_name").distinct():
        names[emulated].append(name)
    imports = ResultImport.objects.order_by().values_list("device_name")
    boards = Modelling.objects.filter(state=State.DONE).order_by().values_list("board", flat=True)
    generated = Revision.objects.filter(repository__startswith=LABEL).exists()
    sources = {
        MEASURED: sorted(names[False]),
        RECORDED: [
            f"{name} ({measured_at:%Y-%m-%d})"
            for name, measured_at in imports.annotate(Max("measured_at")).order_by("device_name")
        ],
        EMULATED: sorted(names[True]),
        MODELLED: sorted(boards.distinct()),
        GENERATED: ["a history"] if generated else [],
    }
    return tuple(KindHere(kind, tuple(sources[kind][:_MAX_NAMES])) for kind in FIGURE_KINDS)
