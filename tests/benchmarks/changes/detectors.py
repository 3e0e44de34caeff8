"""Detectors that are compared, each as it would be used while a series grows.

A ``Stream`` is a series that grows. Those that look at everything again at each value give every
change that they see then; what was named before (within a few positions) is no new alarm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from scheduler.stats.changes import Level, append_value
from scheduler.stats.settings import Settings
from tests.benchmarks.changes import perfherder
from tests.benchmarks.changes.series import Array

WINDOW = Settings().before + Settings().after
"""Values that ruptures is given, the last ones: as many as ours looks at."""


class Stream(ABC):
    def fill(self, values: Array, revisions: Sequence[str]) -> list[int]:
        """Values that were there before; gives the changes seen in them."""
        found: list[int] = []
        for value, revision in zip(values, revisions, strict=True):
            found += self.append(float(value), revision)
        return found

    @abstractmethod
    def append(self, value: float, revision: str) -> list[int]:
        """The positions of the changes that are seen now."""


class Kiln(Stream):
    def __init__(self) -> None:
        self.level = Level()

    def append(self, value: float, revision: str) -> list[int]:
        self.level, detection = append_value(self.level, value, revision)
        return [detection.change.index] if detection.change is not None else []


class Again(Stream):
    """Looks at all of it, or its end, at each value."""

    def __init__(self) -> None:
        self.values = np.empty(0)

    def fill(self, values: Array, revisions: Sequence[str]) -> list[int]:
        self.values = values
        return self.find()

    def append(self, value: float, revision: str) -> list[int]:
        self.values = np.append(self.values, value)
        return self.find()

    @abstractmethod
    def find(self) -> list[int]: ...


class Otava(Again):
    """Apache Otava's defaults (windows of 50, p 0.001), with what it keeps between appends."""

    most_p = 0.001

    def __init__(self) -> None:
        super().__init__()
        self.weak = None

    def find(self) -> list[int]:
        from otava.analysis import compute_change_points

        new = None if self.weak is None else 1
        found, self.weak = compute_change_points(
            list(self.values), max_pvalue=self.most_p, new_data=new, old_weak_cp=self.weak
        )
        return [point.index for point in found]


class Ruptures(Again):
    """Pelt in its form in C, which finds what the one in Python does, some fifty times as fast."""

    kernel = ""

    def penalty(self, logs: Array) -> float:
        raise NotImplementedError

    def find(self) -> list[int]:
        import ruptures

        logs = np.log(self.values[-WINDOW:])
        if logs.size < 4 or not np.ptp(logs):
            return []  # its kernels divide by the distances of values, which equal ones have not
        search = ruptures.KernelCPD(kernel=self.kernel, min_size=2).fit(logs)
        start = self.values.size - logs.size
        return [start + int(at) for at in search.predict(pen=self.penalty(logs))[:-1]]


class RupturesL2(Ruptures):
    """Means, with the penalty of the Bayesian information criterion."""

    kernel = "linear"
    times = 1

    def penalty(self, logs: Array) -> float:
        noise = 1.4826 * float(np.median(np.abs(np.diff(logs)))) / np.sqrt(2)
        return float(self.times * 2 * max(noise, 1e-3) ** 2 * np.log(logs.size))


class RupturesRbf(Ruptures):
    """Distributions, with the penalty of its documentation's first example."""

    kernel = "rbf"
    fixed = 10.0

    def penalty(self, logs: Array) -> float:
        return self.fixed


class Perfherder(Again):
    threshold = perfherder.THRESHOLD

    def find(self) -> list[int]:
        return perfherder.changes(self.values, self.threshold)


class QuietOtava(Otava):
    most_p = 1e-20


class QuietRupturesL2(RupturesL2):
    times = 200


class QuietRupturesRbf(RupturesRbf):
    fixed = 15.0


class QuietPerfherder(Perfherder):
    threshold = 10.0


USUAL: dict[str, type[Stream]] = {
    "otava": Otava,
    "ruptures-l2": RupturesL2,
    "ruptures-rbf": RupturesRbf,
    "perfherder": Perfherder,
}
QUIET: dict[str, type[Stream]] = {
    "otava, p 1e-20": QuietOtava,
    "l2, 200 times": QuietRupturesL2,
    "rbf, penalty 15": QuietRupturesRbf,
    "perfherder, t 10": QuietPerfherder,
}
"""The same, each with what it asks for raised until it is about as quiet as ours (or as near as it
comes while it finds anything): chosen on seed 1, of some settings each."""

MISSING = [name for name in ("otava", "ruptures") if find_spec(name) is None]
"""Packages of other detectors that are not installed: these detectors are left out."""


def _is_installed(detector: type[Stream]) -> bool:
    package = {Otava: "otava", Ruptures: "ruptures"}
    return not any(issubclass(detector, kind) and package[kind] in MISSING for kind in package)


DETECTORS: dict[str, type[Stream]] = {
    name: detector
    for name, detector in ({"kiln": Kiln} | USUAL | QUIET).items()
    if _is_installed(detector)
}
