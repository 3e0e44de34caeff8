"""A small team's measurements: commits, series measured on machines, and what people then see.

    trunk = commits(40)
    slower = history("gemm", trunk[30:], 125.0, MACHINE.with_code("b"))
    push(history("gemm", trunk[:30], 100.0) + slower)
    assert [(alert.kind, alert.n_series) for alert in alerts()] == [("regression", 1)]

Times are relative to the present, since what is old when it arrives is treated as history.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from codegen_app.tracking.models import Alert, Delivery, Source
from codegen_app.tracking.queries.alert_rows import open_regressions
from codegen_app.tracking.services import alert_pipeline, point_storage
from scheduler.results.points.model import Point, RevisionKey, SeriesKey

DAY = timedelta(days=1)
TRUNK, REPOSITORY = "main", "https://github.com/team/kernels"


@dataclass(frozen=True)
class Machine:
    """What a point is measured on and of: all that a cause needs."""

    device: str = "NVIDIA H200"
    host: str = "host-1"
    driver: str = "580.95"
    compiler: str = "13.0"
    code: str = "a"

    def with_code(self, code: str) -> Machine:
        return replace(self, code=code)

    @property
    def conditions(self) -> dict[str, str]:
        return {
            "host": self.host,
            "driver": self.driver,
            "toolchain_version": self.compiler,
            "code_digest": f"{self.code} {self.compiler}",
            "source_digest": self.code,
        }


MACHINE = Machine()


def commits(
    count: int,
    *,
    prefix: str = "c",
    branch: str = TRUNK,
    repository: str = REPOSITORY,
    every: timedelta = timedelta(hours=1),
    last: datetime | None = None,
) -> list[RevisionKey]:
    """Commits of a branch, in order; the last of them an hour ago, or at ``last``."""
    end = last or datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    return [
        RevisionKey(f"{prefix}{n}", end - every * (count - 1 - n), branch, repository)
        for n in range(count)
    ]


def point(
    problem: str,
    revision: RevisionKey,
    value: float,
    machine: Machine = MACHINE,
    *,
    noise: float = 0.005,
    measured_at: datetime | None = None,
) -> Point:
    """One value of a problem's time, with noise that its names decide."""
    draw = random.Random(f"{problem} {revision.name} {revision.branch} {machine.host}")
    moment = measured_at or revision.at
    assert moment is not None, "state when it was measured"
    return Point(
        SeriesKey(problem, {}, "sm_90", machine.device, "nvcc", "time", "ns"),
        value * draw.gauss(1, noise),
        moment,
        revision,
        conditions=machine.conditions,
    )


def history(
    problem: str,
    revisions: Iterable[RevisionKey],
    value: float,
    machine: Machine = MACHINE,
    *,
    noise: float = 0.005,
) -> list[Point]:
    """One value at each of these revisions."""
    return [point(problem, revision, value, machine, noise=noise) for revision in revisions]


def push(points: Sequence[Point], source: Source = Source.API) -> None:
    """Store points as a client sends them, and let the workers find what they change."""
    point_storage.store(points, source)
    alert_pipeline.process_pending()


def push_by_revision(points: Sequence[Point]) -> None:
    """Push the points of each revision by themselves, in the order of the history."""
    for name in dict.fromkeys(one.revision.name for one in sorted(points, key=lambda one: one.at)):
        push([one for one in points if one.revision.name == name])


def alerts(*states: str) -> list[Alert]:
    """All alerts, or those in these states, the oldest first."""
    rows = Alert.objects.select_related("revision").order_by("pk")
    return list(rows.filter(state__in=states) if states else rows)


def messages() -> list[tuple[int, str]]:
    """The messages due or sent: the alert's number, and why."""
    rows = Delivery.objects.exclude(event=None).order_by("pk")
    return [(alert or 0, kind) for alert, kind in rows.values_list("event__alert", "event__kind")]


def open_count() -> int:
    """The number beside “Alerts” in the bar of every page."""
    return open_regressions()
