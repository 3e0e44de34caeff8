"""A generated history: series of kernels over revisions, with every kind of cause injected.

Nothing in it was measured. Every series says so: ``LABEL`` begins its name, its hosts and its
revisions, and every view shows it. The rules of ``causes`` are tested against it, since the true
cause of every change is known, and the demo shows it next to real histories.

Machines change under the series that run on them (driver, compiler, clocks, the device itself);
kernels change by commits and by tuning. Most commits and some upgrades make no difference to most
kernels. Resources follow the makers' occupancy rules, so that a kernel that slows down because of
its registers shows registers over a boundary.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from scheduler.track.evidence import Cause
from scheduler.track.generated_code import KernelCode, Rig, edit_code, rigs
from scheduler.track.generated_label import LABEL
from scheduler.track.sides import (
    Alternative,
    CodeObject,
    Compiler,
    Environment,
    Point,
    Side,
    sides_at,
)

REVISIONS = 150
_SLOT_REVISIONS = 25  # revisions from one possible event to the next
_CONFIGURATIONS = 4
_SHOWN_BEFORE, _SHOWN_AFTER = 18, 10  # points of each level that a detector gets
_NEUTRAL_COMMITS = 0.15  # fraction of all revisions, for one kernel
_DRIFT_REVISIONS = 24


class InjectedKind(StrEnum):
    """The kind of an injected event."""

    REGISTERS = "code: registers over a boundary"
    SPILLS = "code: spills"
    INSTRUCTIONS = "code: other instructions in the inner loop"
    TUNING = "another configuration chosen"
    COMPILER = "compiler upgraded"
    DRIVER = "driver upgraded"
    CLOCKS = "clocks throttled"
    DEVICE = "device swapped"
    NOTHING = "nothing"
    MODE = "noise of another level"
    SPIKE = "spike"
    DRIFT = "drift"


CODE = (InjectedKind.REGISTERS, InjectedKind.SPILLS, InjectedKind.INSTRUCTIONS)
MACHINE = (InjectedKind.COMPILER, InjectedKind.DRIVER, InjectedKind.CLOCKS, InjectedKind.DEVICE)
_EDITS = {
    InjectedKind.REGISTERS: "registers",
    InjectedKind.SPILLS: "spills",
    InjectedKind.INSTRUCTIONS: "instructions",
}
_CAUSES = {
    **dict.fromkeys(CODE, Cause.CODE),
    InjectedKind.TUNING: Cause.TUNING,
    InjectedKind.COMPILER: Cause.COMPILER,
    **dict.fromkeys(
        (InjectedKind.DRIVER, InjectedKind.CLOCKS, InjectedKind.DEVICE), Cause.ENVIRONMENT
    ),
    **dict.fromkeys(
        (InjectedKind.NOTHING, InjectedKind.MODE, InjectedKind.SPIKE, InjectedKind.DRIFT),
        Cause.NOISE,
    ),
}


@dataclass(frozen=True)
class Injection:
    """An event at a revision: its kinds, how far it moved the times (1: not at all), the expected
    answer, and the candidates if that is UNKNOWN."""

    index: int
    kinds: tuple[InjectedKind, ...]
    ratio: float
    cause: Cause
    candidates: tuple[Cause, ...]


@dataclass(frozen=True)
class GeneratedSeries:
    """``name`` begins with ``LABEL``; ``points`` has one per revision, times in nanoseconds."""

    name: str
    target: str
    points: tuple[Point, ...]
    injected: tuple[Injection, ...]
    generated: bool = field(default=True, init=False)


def generate_history(series: int = 60, seed: int = 0) -> tuple[GeneratedSeries, ...]:
    """Generate that many series on a few machines, the same for the same seed."""
    rng = np.random.default_rng(seed)
    slots = range(_SLOT_REVISIONS, REVISIONS - _SHOWN_AFTER, _SLOT_REVISIONS)
    machines = [
        (
            rig,
            {  # one event at about half of the slots
                slot + int(rng.integers(-2, 3)): MACHINE[int(rng.integers(len(MACHINE)))]
                for slot in slots
                if rng.random() < 0.5
            },
        )
        for rig in rigs()
    ]
    return tuple(
        _Writer(
            number, *machines[number % len(machines)], np.random.default_rng([seed, number])
        ).write()
        for number in range(series)
    )


def sides_of(series: GeneratedSeries, injected: Injection) -> tuple[Side, Side]:
    """Return the two sides that a detector would show: the level before and a few points of the one
    after, split where a single step fits the values best."""
    first = max(0, injected.index - _SHOWN_BEFORE)
    points = series.points[first : injected.index + _SHOWN_AFTER]
    split = injected.index - first
    if InjectedKind.SPIKE not in injected.kinds and injected.ratio != 1:
        logs = np.log([point.value for point in points])
        nearby = range(max(2, split - 4), min(len(points) - 2, split + 4) + 1)
        split = min(nearby, key=lambda index: _residual(logs[:index]) + _residual(logs[index:]))
    return sides_at(points, split)


def _residual(logs: npt.NDArray[np.float64]) -> float:
    return float(np.abs(logs - np.median(logs)).sum())


class _Writer:
    """Writes one series, revision by revision."""

    def __init__(
        self, number: int, rig: Rig, machine: dict[int, InjectedKind], rng: np.random.Generator
    ) -> None:
        self.rig, self.rng = rig, rng
        self.name = f"{LABEL}: kernel {number} on {rig.device}"
        self.machine = machine
        self.own = self._own_events()
        self.level = float(rng.uniform(15e3, 900e3))
        self.noise = float(rng.choice([0.003, 0.006, 0.012, 0.018]))
        self.edition = self.comment = self.configuration = 0
        self.compiler = self.driver = self.unit = 0
        self.code = KernelCode.sample(rig, rng)
        self.throttled = 0.0
        self.drift = (0, 1.0)  # remaining points, ratio of each
        self.injected: list[Injection] = []

    def write(self) -> GeneratedSeries:
        points = tuple(self._revision(index) for index in range(REVISIONS))
        return GeneratedSeries(self.name, self.rig.target, points, tuple(self.injected))

    def _own_events(self) -> dict[int, InjectedKind]:
        """Return the kernel's own events, at the machine's slots or at others."""
        kinds = (
            *CODE,
            InjectedKind.TUNING,
            InjectedKind.TUNING,
            InjectedKind.NOTHING,
            InjectedKind.MODE,
            InjectedKind.SPIKE,
            InjectedKind.DRIFT,
        )
        events: dict[int, InjectedKind] = {}
        for slot in range(_SLOT_REVISIONS, REVISIONS - _SHOWN_AFTER, _SLOT_REVISIONS):
            nearby = [index for index in self.machine if abs(index - slot) <= 2]
            if nearby and self.rng.random() < 0.7:
                continue
            index = nearby[0] if nearby else slot + int(self.rng.integers(-2, 3))
            kind = kinds[int(self.rng.integers(len(kinds)))]
            if not nearby or kind not in {
                InjectedKind.SPIKE,
                InjectedKind.DRIFT,
                InjectedKind.MODE,
            }:
                events[index] = kind
        return events

    def _revision(self, index: int) -> Point:
        events = [kind for kind in (self.machine.get(index), self.own.get(index)) if kind]
        neutral = not events and self.rng.random() < _NEUTRAL_COMMITS
        if neutral and self.rng.random() < 0.5:
            self.comment += 1
        elif neutral:  # other instructions that take the same time
            self.edition += 1
        if events:
            # Half of a drift lies before the middle, where its change is shown.
            visible_at = index + _DRIFT_REVISIONS // 2 if InjectedKind.DRIFT in events else index
            ratio = float(np.prod([self._apply_kind(kind) for kind in events]))
            cause, candidates = _expected_answer(events, ratio, self.noise)
            self.injected.append(Injection(visible_at, tuple(events), ratio, cause, candidates))
        if self.drift[0]:
            self.level *= self.drift[1]
            self.drift = (self.drift[0] - 1, self.drift[1])
        return self._point(index, spike=InjectedKind.SPIKE in events)

    def _apply_kind(self, kind: InjectedKind) -> float:
        """Apply an event; return the ratio by which it moves the times."""
        if kind in _EDITS:
            self.edition += 1
            self.code, ratio = edit_code(self.code, _EDITS[kind], self.rng, 4 * self.noise)
            self.level *= ratio
            return ratio
        if kind is InjectedKind.CLOCKS:  # throttled, or released
            before = 1 - 0.3 * self.throttled
            self.throttled = 0.0 if self.throttled else float(self.rng.uniform(0.3, 0.6))
            ratio = float(before / (1 - 0.3 * self.throttled))
            self.level *= ratio
            return ratio
        if kind is InjectedKind.DRIFT:
            total = self._step(0.06, 0.15)
            self.drift = (_DRIFT_REVISIONS, float(total ** (1 / _DRIFT_REVISIONS)))
            return total
        if kind is InjectedKind.TUNING:
            step = 1 + int(self.rng.integers(_CONFIGURATIONS - 1))
            self.configuration = (self.configuration + step) % _CONFIGURATIONS
        elif kind is InjectedKind.COMPILER:
            self.compiler += 1
        elif kind is InjectedKind.DRIVER:
            self.driver += 1
        elif kind is InjectedKind.DEVICE:
            self.unit += 1
        if kind in {InjectedKind.NOTHING, InjectedKind.SPIKE}:
            return 1.0
        is_unaffected = (
            kind in {InjectedKind.COMPILER, InjectedKind.DRIVER, InjectedKind.DEVICE}
            and self.rng.random() < 0.4
        )
        ratio = 1.0 if is_unaffected else self._step(0.03, 0.25)
        self.level *= ratio
        return ratio

    def _step(self, min_size: float, max_size: float) -> float:
        size = max(float(self.rng.uniform(min_size, max_size)), 4 * self.noise)
        return float(np.exp(size if self.rng.random() < 0.6 else -size))

    def _point(self, index: int, *, spike: bool) -> Point:
        value = self.level * float(np.exp(self.rng.normal(0, self.noise)))
        if spike or self.rng.random() < 0.01:
            value *= float(self.rng.uniform(1.15, 2))
        value = round(value / 32) * 32.0  # the resolution of an event timer
        half_width = value * self.noise * 0.6
        clock = self.rig.clock_mhz * (1 - 0.3 * self.throttled) + float(
            self.rng.choice([-15, 0, 0, 0])
        )
        return Point(
            value=value,
            low=value - half_width,
            high=value + half_width,
            n=20,
            revision=f"{LABEL}-{index:04d}",
            source_digest=self._source(self.configuration),
            configuration=_configuration(self.configuration),
            target=self.rig.target,
            compiler=Compiler(
                self.rig.compiler,
                self.rig.compiler_versions[self.compiler % 8],
                ("-O3",),
                "headers",
            ),
            code=CodeObject(
                self._code(self.configuration),
                _digest(self.name, self.edition, self.configuration, self.compiler),
                {"kernel": self.code.resources},
                self.code.inner_loop,
            ),
            environment=Environment(
                driver=self.rig.drivers[self.driver % 8],
                runtime=self.rig.runtime,
                device=self.rig.device,
                unit=f"{LABEL} unit {self.unit}",
                host=f"{LABEL} host",
            ),
            readings={
                self.rig.clock: float(round(clock / 15) * 15),
                "throttled_power": round(self.throttled, 2),
            },
            others={
                _configuration(n): Alternative(self._source(n), self._code(n))
                for n in range(_CONFIGURATIONS)
            },
        )

    def _source(self, configuration: int) -> str:
        return _digest(self.name, self.edition, self.comment, configuration, "source")

    def _code(self, configuration: int) -> str:
        return _digest(self.name, self.edition, self.comment, configuration, self.compiler, "file")


def _expected_answer(
    events: list[InjectedKind], ratio: float, noise: float
) -> tuple[Cause, tuple[Cause, ...]]:
    """Return the expected answer: one cause if only one thing changed, the candidates if several
    did, noise if they cancel each other out to within the noise of a point."""
    causes = tuple(dict.fromkeys(_CAUSES[kind] for kind in events))
    changing = tuple(cause for cause in causes if cause is not Cause.NOISE)
    if abs(np.log(ratio)) < noise or not changing:
        return Cause.NOISE, (Cause.NOISE,)
    if len(changing) == 1:
        return changing[0], changing
    return Cause.UNKNOWN, changing


def _configuration(number: int) -> str:
    return f"BLOCK_M={64 << number % 2}, BLOCK_N={64 << number // 2}"


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
