"""Windows: between which revisions something happened, and which changes may be one thing.

Series are not measured at every revision. A change between r1 and r5 in one series and one between
r2 and r6 in another may have one cause, at r3 to r5: the part that both windows share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter

from codegen_app.tracking.models import Alert, AlertState, CauseClass, Change
from scheduler.track.evidence import Cause

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Window:
    """Something happened after ``since``, the place in the history of the revision ``good``, and at
    the latest at ``at``, that of the revision ``bad``. Without an earlier point, at ``bad``."""

    good: int | None
    since: datetime | None
    bad: int
    at: datetime

    @property
    def begin(self) -> datetime:
        """The place after which it begins; always before ``at``."""
        latest = self.at - _MOMENT
        return latest if self.since is None else min(self.since, latest)

    def overlaps(self, other: Window) -> bool:
        """Return whether one revision may be the first bad one of both."""
        return self.bad == other.bad or (self.begin < other.at and other.begin < self.at)

    def narrowed_to(self, other: Window) -> Window:
        """Return the part that both share; this window if they share none."""
        first, last = (
            min(self, other, key=attrgetter("at")),
            max(self, other, key=attrgetter("begin")),
        )
        if last.begin >= first.at:
            return self
        return Window(last.good, last.since, first.bad, first.at)


WINDOW_COLUMNS = ("good_revision_id", "since", "bad_revision_id", "until", "revision_id", "at")
"""The columns of a change for ``window_of``."""


def window_of(
    good: int | None,
    since: datetime | None,
    bad: int | None,
    until: datetime | None,
    revision: int,
    at: datetime,
) -> Window:
    """Return the window of a change: of rows of earlier versions, without the doubt that noise
    leaves."""
    if bad is None or until is None:
        return Window(good, since, revision, at)
    return Window(good, since, bad, until)


def change_window(change: Change) -> Window:
    """Return the window of a change."""
    return window_of(*(getattr(change, name) for name in WINDOW_COLUMNS))


def alert_window(alert: Alert) -> Window:
    """Return the window of an alert of changes, as it is stored."""
    assert alert.revision_id is not None
    return Window(alert.good_revision_id, alert.since, alert.revision_id, alert.at)


def shared_window(windows: Sequence[Window]) -> Window | None:
    """Return the part that all windows share; None without windows."""
    if not windows:
        return None
    shared = windows[0]
    for window in windows[1:]:
        shared = shared.narrowed_to(window)
    return shared


def cause_class(cause: str) -> CauseClass:
    """Return which changes a cause may share an alert with.

    A commit may change code, the tuning choice and the compiler at once, and the environment
    changes without a commit. A change of unknown cause may be part of either.
    """
    if cause == Cause.ENVIRONMENT:
        return CauseClass.ENVIRONMENT
    return CauseClass.UNKNOWN if cause in ("", Cause.UNKNOWN) else CauseClass.CODE


def may_share_alert(one: CauseClass, other: CauseClass) -> bool:
    """Return whether changes of these classes may be in one alert."""
    return one == other or CauseClass.UNKNOWN in (one, other)


Group = tuple[str, str]
"""The kind of an alert, and the repository of its revisions."""


@dataclass
class GroupedAlert:
    """An alert that changes may join, new or stored. ``window`` is None if all its changes were
    withdrawn: the next one decides it. ``is_open``: changes of other revisions may join it."""

    alert: Alert
    window: Window | None
    is_open: bool
    cause_class: CauseClass = CauseClass.UNKNOWN

    def admits(self, window: Window, cause: CauseClass, *, is_old: bool) -> bool:
        """Return whether a change may be part of the alert. What is new does not join history,
        since that sends no notification."""
        if self.alert.state == AlertState.HISTORY and not is_old:
            return False
        if not may_share_alert(cause, self.cause_class):
            return False
        own = self.window or alert_window(self.alert)
        return own.overlaps(window) if self.is_open else own.bad == window.bad

    def admit(self, window: Window, cause: CauseClass) -> None:
        """Narrow the alert's window to what it shares with another."""
        self.window = window if self.window is None else self.window.narrowed_to(window)
        if self.cause_class == CauseClass.UNKNOWN:
            self.cause_class = cause


class AlertGroups:
    """The alerts that changes may join. Most changes of one commit follow each other: the alert
    that the last one joined is tried first, so that thousands take a constant time each."""

    def __init__(self) -> None:
        self._alerts: dict[Group, list[GroupedAlert]] = defaultdict(list)
        self._latest: dict[Group, GroupedAlert] = {}

    def add(self, group: Group, alert: GroupedAlert) -> None:
        self._alerts[group].append(alert)
        self._latest[group] = alert

    def find(
        self, group: Group, window: Window, cause: CauseClass, *, is_old: bool
    ) -> GroupedAlert | None:
        """Return the alert that a change joins: one of the same first bad revision, else the oldest
        whose window overlaps the change's."""
        latest = self._latest.get(group)
        if (
            latest is not None
            and latest.window is not None
            and latest.window.bad == window.bad
            and latest.admits(window, cause, is_old=is_old)
        ):
            return latest
        admitting = [
            alert for alert in self._alerts[group] if alert.admits(window, cause, is_old=is_old)
        ]
        if not admitting:
            return None
        exact = (alert for alert in admitting if alert.window and alert.window.bad == window.bad)
        chosen = next(exact, admitting[0])
        self._latest[group] = chosen
        return chosen
