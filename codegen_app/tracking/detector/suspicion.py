"""Steps at the end of histories that are too short to be changes yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from django.conf import settings

from codegen_app.tracking.detector.replay import DetectedChange, ReplayWindow
from scheduler.stats.prediction import MAX_HISTORY, History
from scheduler.stats.suspicion import MAX_SUSPECTED, suspected_steps

_WINDOW = MAX_HISTORY + MAX_SUSPECTED


@dataclass(frozen=True)
class SuspectedStep:
    """The last ``n`` points of a history lie off its level by ``ratio``, the first of them at
    ``since``."""

    ratio: float
    n: int
    since: datetime


def suspected(
    windows: Sequence[ReplayWindow],
    changes: Sequence[Sequence[DetectedChange]],
    now: datetime,
) -> list[SuspectedStep | None]:
    """Return for each history the step at its end. ``changes`` are those that the run has found in
    them. What was measured more than ``KILN_HISTORY_DAYS`` ago is not suspected."""
    recent = [index for index, window in enumerate(windows) if _is_recent(window, now)]
    histories = [_history(windows[index], changes[index]) for index in recent]
    min_effects = np.array([windows[index].settings.least_effect for index in recent])
    min_noise = windows[recent[0]].settings.min_noise if recent else 0.0
    steps: list[SuspectedStep | None] = [None] * len(windows)
    for index, step in zip(recent, suspected_steps(histories, min_effects, min_noise), strict=True):
        if step is not None:
            points = windows[index].points
            steps[index] = SuspectedStep(step.ratio, step.n, points[len(points) - step.n].at)
    return steps


def _is_recent(window: ReplayWindow, now: datetime) -> bool:
    if not len(window.points):
        return False
    oldest = now - timedelta(days=settings.HISTORY_DAYS)
    return not settings.HISTORY_DAYS or window.points.last_measured_at >= oldest


def _history(window: ReplayWindow, changes: Sequence[DetectedChange]) -> History:
    """Return the last points, and where their levels begin: at changes and baselines."""
    points = window.points
    first = max(0, len(points) - _WINDOW)
    starts = [window.level, *map(points.index_from, window.baselines)]
    starts += [index for change in changes if (index := points.index_of(change.datum_id))]
    relative = {start - first for start in starts if first < start < len(points)}
    return History(points.values[first:], (0, *sorted(relative)))
