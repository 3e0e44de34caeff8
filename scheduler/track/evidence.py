"""The evidence for the rules of ``causes``: the two sides, and how each attribute compares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from scheduler.track.alignment import Finding, Relation, Window
from scheduler.track.differences import ENVIRONMENT, Aspect, Difference, differences_of, findings
from scheduler.track.drift import is_ramp
from scheduler.track.sides import Side
from scheduler.track.telemetry import clock_changes, has_clocks, telemetry_differences

_MIN_ERRORS = 3.0
"""The distance of two sides' medians, in standard errors, from which they differ."""

_MIN_POINTS = 3
"""The fewest points of a side from which their spread is estimated."""

_MEDIAN_ERROR_RATIO = 1.2533
"""The standard error of a median over that of a mean, for normal noise."""

_INTERVAL_ERRORS = 2 * 1.96
"""The width of a 95% interval in standard errors."""


class Cause(StrEnum):
    """Why a series moved. UNKNOWN is an answer: the records do not decide."""

    CODE = "code"
    TUNING = "tuning choice"
    COMPILER = "compiler"
    ENVIRONMENT = "environment"
    NOISE = "noise"
    UNKNOWN = "cannot be said"


def cause_text(cause: str) -> str:
    """Return a cause as pages and messages show it; the stored value is another for UNKNOWN."""
    return "unknown" if cause == Cause.UNKNOWN else cause


@dataclass(frozen=True)
class Evidence:
    """``before`` and ``after`` and everything derived from them."""

    before: Side
    after: Side

    @cached_property
    def window(self) -> Window:
        return Window(self.before, self.after)

    @cached_property
    def findings(self) -> dict[Aspect, Finding]:
        return findings(self.window)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        return differences_of(self.window, self.findings)

    @property
    def ratio(self) -> float:
        """The after side's median over the before side's."""
        return self.after.level / self.before.level

    @property
    def is_shown(self) -> bool:
        """Whether the sides' medians lie further apart than chance allows: by the points' spread
        about their side's median, or by a single point's own interval."""
        sizes = [len(side.points) for side in (self.before, self.after)]
        if min(sizes) >= _MIN_POINTS:
            errors = [_MEDIAN_ERROR_RATIO * self.window.noise / math.sqrt(size) for size in sizes]
        else:
            intervals = [side.interval for side in (self.before, self.after)]
            errors = [
                (interval.high - interval.low) / interval.median / _INTERVAL_ERRORS
                for interval in intervals
            ]
        return abs(math.log(self.ratio)) > _MIN_ERRORS * math.hypot(*errors)

    @cached_property
    def is_drift(self) -> bool:
        """Whether the values drifted from one level to the other over many points, not in a
        step."""
        return is_ramp(self.before, self.after)

    def differs(self, aspect: Aspect) -> bool:
        return self.findings[aspect].relation is Relation.DIFFERS

    def is_known(self, aspect: Aspect) -> bool:
        return self.findings[aspect].relation is not Relation.UNKNOWN

    @cached_property
    def same_code(self) -> bool | None:
        """Whether the same code ran where the level moved; without code objects, its inputs decide.
        None if neither is known."""
        if self.is_known(Aspect.CODE):
            return not self.differs(Aspect.CODE)
        inputs = (Aspect.SOURCE, Aspect.CONFIGURATION, Aspect.COMPILER, Aspect.HEADERS)
        if any(self.differs(aspect) for aspect in inputs):
            return False
        required = (Aspect.SOURCE, Aspect.COMPILER)
        return True if all(self.is_known(aspect) for aspect in required) else None

    @cached_property
    def same_environment(self) -> bool | None:
        """None if a side's device, or its driver and runtime, are unknown, or if one of these is
        known on one side only."""
        if self.environment:
            return False
        has_device = self.is_known(Aspect.DEVICE) and (
            self.is_known(Aspect.DRIVER) or self.is_known(Aspect.RUNTIME)
        )
        versions = (
            {bool(point.environment.driver) for point in self.window.points},
            {bool(point.environment.runtime) for point in self.window.points},
        )
        is_complete = all(len(recorded) == 1 for recorded in versions)
        return True if has_device and is_complete else None

    @cached_property
    def environment(self) -> tuple[Difference, ...]:
        """The environment's differences where the level moved."""
        return tuple(
            difference
            for difference in self.differences
            if difference.here and difference.aspect in ENVIRONMENT
        )

    @cached_property
    def code_differences(self) -> tuple[Difference, ...]:
        """The code's differences where the level moved."""
        return tuple(
            difference
            for difference in self.differences
            if difference.here and difference.aspect not in ENVIRONMENT
        )

    @cached_property
    def code_causes(self) -> tuple[Cause, ...]:
        """The causes that made the code different: all inputs of the code objects that differ."""
        causes = []
        # The source differs by more than the configuration that it is rendered from.
        is_edited = self.differs(Aspect.SOURCE)
        if self.differs(Aspect.HEADERS) and not self.differs(Aspect.COMPILER):
            is_edited = True
        elif self.differs(Aspect.CONFIGURATION):
            unchanged = self.earlier_choice_unchanged
            by_commit = is_edited and self.differs(Aspect.REVISION)
            is_edited = by_commit if unchanged is None else not unchanged
        if is_edited:
            causes.append(Cause.CODE)
        if self.differs(Aspect.CONFIGURATION):
            causes.append(Cause.TUNING)
        if self.differs(Aspect.COMPILER):
            causes.append(Cause.COMPILER)
        return tuple(causes)

    @cached_property
    def unrecorded_causes(self) -> tuple[Cause, ...]:
        """Further possible causes: inputs that are not recorded. Without a configuration on either
        side, tuning is not among them."""
        configured = any(point.configuration for point in self.window.points)
        causes = []
        if not self.is_known(Aspect.SOURCE):
            causes.append(Cause.CODE)
        if configured and not self.is_known(Aspect.CONFIGURATION):
            causes.append(Cause.TUNING)
        if not self.is_known(Aspect.COMPILER):
            causes.append(Cause.COMPILER)
        return tuple(cause for cause in causes if cause not in self.code_causes)

    @cached_property
    def earlier_choice_unchanged(self) -> bool | None:
        """Whether a configuration of one side, where the other side built but did not select it,
        has the same source or code there; None if that is unknown."""
        finding = self.findings[Aspect.CONFIGURATION]
        pairs = ((finding.before, finding.after), (finding.after, finding.before))
        unchanged = []
        for selected, alternative_point in pairs:
            alternative = alternative_point.others.get(selected.configuration)
            if alternative is None:
                continue
            digests = (
                (alternative.source_digest, selected.source_digest),
                (alternative.code_digest, selected.code.digest),
            )
            equal = [
                alternative_digest == selected_digest
                for alternative_digest, selected_digest in digests
                if alternative_digest and selected_digest
            ]
            if equal:
                unchanged.append(any(equal))
        return all(unchanged) if unchanged else None

    @property
    def clocks_known(self) -> bool:
        return has_clocks(self.before, self.after)

    @property
    def only_telemetry(self) -> bool:
        """Whether the environment differs only in clocks and throttling."""
        return all(difference.aspect is Aspect.READINGS for difference in self.environment)

    @property
    def may_be_machine(self) -> bool:
        """Whether the machine itself may have changed: the same code moved in a step, and nothing
        recorded of the environment differs but telemetry."""
        is_step = self.is_shown and not self.is_drift
        return is_step and self.same_code is True and self.only_telemetry

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The recorded hosts of the points near the change."""
        hosts = {point.environment.host for point in self.window.points}
        return tuple(sorted(hosts - {""}))

    @property
    def clock_ratio(self) -> float:
        """How much slower (above 1) or faster the clocks alone could have made a kernel."""
        changes = clock_changes(self.before, self.after)
        return 1 / min(changes) if self.ratio > 1 else 1 / max(changes)

    @property
    def has_clock_change(self) -> bool:
        readings = telemetry_differences(self.before, self.after)
        return any(difference.name.endswith("_mhz") for difference in readings)
