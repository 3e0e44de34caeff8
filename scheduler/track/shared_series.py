"""Finds the host that changed among several that measure one series in turn.

The level of such a series does not change if one of its hosts becomes slower: every fourth value is
slow, and the detector takes these for spikes. Each host's values are therefore compared with the
others' values next to them, which were measured of the same or of neighbouring revisions. So code
that changes for all hosts is no change of a host.

Not found: a host with fewer than ``MIN_VALUES`` values among the last ones of a series; one that
has always been slower, which is an offset and not a change; and a change of half of the hosts or
more at the same time, since the others' level is then no reference (of two hosts: one that
changes together with the code).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.stats.changes import find_changes

MIN_VALUES = 12
"""The fewest values of a host: eight of one level and four of the next."""

_MIN_OTHERS = 8
_NEIGHBOURS = 6
_LATEST, _NEAREST, _EARLIER = 4, 8, 30
_LEAST_NOISE, _LEAST_EFFECT = 0.001, 0.005
_CLEAR = 3.0
_SHARE_OF_LARGEST = 0.75
_STILL = 0.25  # a fraction of the distance

_Floats = npt.NDArray[np.float64]
_Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class HostShift:
    """A host whose values moved against the others' values. ``places`` are those of its values in
    the series, ``ratios`` those to the others' values next to them; from the index ``first`` on
    these differ, by ``errors`` standard errors."""

    host: str
    places: _Places
    ratios: _Floats
    first: int
    errors: float

    @property
    def distance(self) -> float:
        """How far it moved, as a logarithm."""
        earlier = self.ratios[max(0, self.first - _EARLIER) : self.first]
        return float(np.log(np.median(self.ratios[self.first :]) / np.median(earlier)))


def host_shifts(values: _Floats, hosts: Sequence[str]) -> tuple[HostShift, ...]:
    """Return the hosts whose latest values moved against the others'; "" is no known host. Values
    are above 0, in the order of the history.

    If one host moves, each other one moves against it as well: of three or more hosts by less, so
    that those with the largest distance remain. Of two hosts, the one remains whose own values
    moved while the other's did not.
    """
    logs, names = np.log(values), np.asarray(hosts)
    shifts = [
        shift
        for host in dict.fromkeys(hosts)
        if host and (shift := _shift(logs, names, host)) is not None
    ]
    if len(set(hosts)) == 2:
        return tuple(shift for shift in shifts if _moved_alone(shift, logs))
    largest = max((abs(shift.distance) for shift in shifts), default=0.0)
    return tuple(shift for shift in shifts if abs(shift.distance) >= _SHARE_OF_LARGEST * largest)


def _shift(logs: _Floats, names: npt.NDArray[np.str_], host: str) -> HostShift | None:
    places, others = np.flatnonzero(names == host), np.flatnonzero(names != host)
    if places.size < MIN_VALUES or others.size < _MIN_OTHERS:
        return None
    offsets = logs[places] - _neighbour_levels(logs[others], others, places)
    if not _may_have_moved(offsets):
        return None
    ratios = np.exp(offsets)
    changes = find_changes(ratios.tolist())
    if not changes:
        return None
    change = changes[-1][1]
    return HostShift(host, places, ratios, change.index, change.errors)


def _neighbour_levels(logs: _Floats, others: _Places, places: _Places) -> _Floats:
    """Return for each place the median of the values of others that are nearest to it, as many
    before as after it, except at the ends."""
    starts = np.searchsorted(others, places) - _NEIGHBOURS // 2
    starts = np.clip(starts, 0, others.size - _NEIGHBOURS)
    levels: _Floats = np.median(logs[starts[:, None] + np.arange(_NEIGHBOURS)], axis=1)
    return levels


def _may_have_moved(offsets: _Floats) -> bool:
    """Return whether the latest offsets all lie clearly on one side of those before: quick, since
    most do not."""
    latest, earlier = offsets[-_LATEST:], offsets[-_LATEST - _EARLIER : -_LATEST]
    centre = float(np.median(earlier))
    noise = max(1.4826 * float(np.median(np.abs(earlier - centre))), _LEAST_NOISE)
    least = max(_CLEAR * noise, _LEAST_EFFECT)
    return bool((latest - centre > least).all() or (centre - latest > least).all())


def _moved_alone(shift: HostShift, logs: _Floats) -> bool:
    """Return whether the values of one of two hosts moved, and those of the other did not."""
    start = shift.places[shift.first]
    others = np.setdiff1d(np.arange(logs.size), shift.places)
    moved = []
    for places in (shift.places, others):
        first = int(np.searchsorted(places, start))
        earlier, later = logs[places[max(0, first - _NEAREST) : first]], logs[places[first:]]
        if not later.size or not earlier.size:
            return False
        moved.append(float(np.median(later) - np.median(earlier)) / shift.distance)
    return moved[0] >= 1 - _STILL and abs(moved[1]) <= _STILL
