"""Explains why a series moved: a table of rules, in order; the first that applies decides.

Two guarantees hold for all rules. If the same code object ran on both sides, the code is never the
cause. If the environments differ, or are not known to be equal, the code is never named as the only
cause: both are named, and how to tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from scheduler.track.differences import Aspect, Difference, shorten_digest
from scheduler.track.evidence import Cause, Evidence
from scheduler.track.sides import Side
from scheduler.track.telemetry import (
    TelemetryDifference,
    sensor_differences,
    telemetry_differences,
)

_T = TypeVar("_T")


@dataclass(frozen=True)
class Explanation:
    """``cause``, the ``rule`` that decided, and its reasons in sentences, the rule's own first.

    ``candidates`` are the remaining possible causes, just one unless ``cause`` is UNKNOWN;
    ``next_step`` says what to measure then. ``feeds_noise_floor``: the code and the environment are
    the same, so the distance of the sides is noise by definition. ``ratio`` is after by before.
    ``may_be_machine``: the same code moved and nothing but telemetry differs, so that the change is
    the machine's if other series on it moved too (``machines``). ``readings`` says what telemetry
    differs, ``hosts`` which were recorded.
    """

    cause: Cause
    rule: str
    reasons: tuple[str, ...]
    candidates: tuple[Cause, ...]
    next_step: str
    feeds_noise_floor: bool
    ratio: float
    differences: tuple[Difference, ...]
    may_be_machine: bool = False
    hosts: tuple[str, ...] = ()
    readings: tuple[TelemetryDifference, ...] = ()


@dataclass(frozen=True)
class Rule:
    """``candidates`` is empty if ``cause`` is the only one. A text is a function where it depends
    on the evidence."""

    name: str
    applies: Callable[[Evidence], bool]
    cause: Cause
    reason: str | Callable[[Evidence], str]
    candidates: tuple[Cause, ...] | Callable[[Evidence], tuple[Cause, ...]] = ()
    next_step: str | Callable[[Evidence], str] = ""


def explain(before: Side, after: Side) -> Explanation:
    """Explain why the series moved from one side to the other."""
    evidence = Evidence(before, after)
    rule = next(rule for rule in RULES if rule.applies(evidence))
    cause, candidates = rule.cause, _resolve(rule.candidates, evidence) or (rule.cause,)
    differences = evidence.code_differences if cause is not Cause.NOISE else ()
    reasons = [_resolve(rule.reason, evidence)]
    reasons += [difference.sentence for difference in (*differences, *evidence.environment)]
    if evidence.has_clock_change:
        possible, measured = evidence.clock_ratio, evidence.ratio
        reasons.append(
            f"clocks changed in the opposite direction; the ratio is {measured:.3f} nevertheless"
            if (possible - 1) * (measured - 1) <= 0
            else f"clocks alone explain a ratio of at most {possible:.3f}; {measured:.3f} was"
            " measured"
        )
    if evidence.same_code is not None and not evidence.is_known(Aspect.CODE):
        reasons.append("code objects are not recorded: their inputs were compared instead")
    if evidence.same_environment and not evidence.clocks_known:
        reasons.append("clocks are not recorded: they may differ")
    return Explanation(
        cause=cause,
        rule=rule.name,
        reasons=tuple(reasons),
        candidates=candidates,
        next_step=_resolve(rule.next_step, evidence),
        feeds_noise_floor=evidence.same_code is True and evidence.same_environment is True,
        ratio=evidence.ratio,
        differences=evidence.differences,
        may_be_machine=evidence.may_be_machine,
        hosts=evidence.hosts,
        readings=(
            *telemetry_differences(before, after),
            *sensor_differences(before, after),
        ),
    )


def _resolve(part: _T | Callable[[Evidence], _T], evidence: Evidence) -> _T:
    return part(evidence) if callable(part) else part


def _names(differences: tuple[Difference, ...]) -> str:
    return ", ".join(
        dict.fromkeys(difference.name or difference.aspect.value for difference in differences)
    )


def _code_or_parts(evidence: Evidence) -> tuple[Cause, ...]:
    return evidence.code_causes or (Cause.CODE,)


def _measure_again(evidence: Evidence) -> str:
    earlier = shorten_digest(evidence.before.nearest.revision) or "the earlier code"
    later = shorten_digest(evidence.after.nearest.revision) or "the later code"
    if evidence.environment and evidence.only_telemetry:
        return (
            f"measure {earlier} and {later} again with locked clocks: code that draws more power"
            " may cause the throttling"
        )
    return (
        f"measure {earlier} again in the later environment: the remaining difference is due to the"
        " code"
    )


def _separate(evidence: Evidence) -> str:
    before = evidence.before.nearest
    if Cause.COMPILER in evidence.code_causes:
        compiler = evidence.after.nearest.compiler
        return (
            f"build {shorten_digest(before.revision) or 'the earlier source'} with {compiler.name} "
            f"{compiler.version}, and measure both builds"
        )
    return (
        f"measure the earlier configuration ({before.configuration}) at "
        f"{shorten_digest(evidence.after.nearest.revision) or 'the later revision'}"
    )


RULES = (
    Rule(
        "no difference",
        lambda e: not e.is_shown,
        Cause.NOISE,
        "the median of one side lies in the interval of the other: no difference is shown",
    ),
    Rule(
        "drift",
        lambda e: e.is_drift and e.same_environment is not False,
        Cause.NOISE,
        "the values drift before and after the change, which explains the step",
    ),
    Rule(
        "same code, same environment",
        lambda e: e.same_code is True and e.same_environment is True,
        Cause.NOISE,
        "the code and the environment are the same: the difference is run-to-run noise",
    ),
    Rule(
        "same code, other environment",
        lambda e: e.same_code is True and e.same_environment is False,
        Cause.ENVIRONMENT,
        lambda e: f"the code is the same, the environment differs: {_names(e.environment)}",
    ),
    Rule(
        "same code, environment not known",
        lambda e: e.same_code is True,
        Cause.UNKNOWN,
        "the code is the same, the environment is not recorded",
        (Cause.ENVIRONMENT, Cause.NOISE),
        "record device and driver with each result",
    ),
    Rule(
        "code and environment",
        lambda e: e.same_code is False and e.same_environment is False,
        Cause.UNKNOWN,
        lambda e: (
            f"code and environment ({_names(e.environment)}) both differ: either can be the cause"
        ),
        lambda e: (*_code_or_parts(e), Cause.ENVIRONMENT),
        _measure_again,
    ),
    Rule(
        "code not known, other environment",
        lambda e: e.same_environment is False,
        Cause.UNKNOWN,
        lambda e: f"{_names(e.environment)} differ, and the code is not recorded",
        (Cause.CODE, Cause.ENVIRONMENT),
        _measure_again,
    ),
    Rule(
        "environment not known",
        lambda e: e.same_environment is None,
        Cause.UNKNOWN,
        "device or driver of one side is not recorded: the environment may differ",
        lambda e: (
            *_code_or_parts(e),
            Cause.ENVIRONMENT,
            *([] if e.code_differences else [Cause.NOISE]),
        ),
        "record device and driver with each result, or measure both revisions again",
    ),
    Rule(
        "code not known",
        lambda e: e.same_code is None,
        Cause.UNKNOWN,
        "the environment is the same, the code is not recorded",
        (Cause.CODE, Cause.TUNING, Cause.COMPILER, Cause.NOISE),
        "send the code object hash, or source hash and compiler version, with each result",
    ),
    Rule(
        "several changed together",
        lambda e: len(e.code_causes) > 1,
        Cause.UNKNOWN,
        lambda e: f"{' and '.join(e.code_causes)} changed together, in the same environment",
        _code_or_parts,
        _separate,
    ),
    Rule(
        "partly recorded",
        lambda e: bool(e.unrecorded_causes),
        Cause.UNKNOWN,
        "the code differs in the same environment, and its inputs are only partly recorded",
        lambda e: (*e.code_causes, *e.unrecorded_causes),
        "send source, configuration and compiler version with each result",
    ),
    Rule(
        "another choice",
        lambda e: e.code_causes == (Cause.TUNING,),
        Cause.TUNING,
        "tuning selected another configuration, in the same environment",
    ),
    Rule(
        "another compiler",
        lambda e: e.code_causes == (Cause.COMPILER,),
        Cause.COMPILER,
        "the same source was compiled differently, in the same environment",
    ),
    Rule(
        "another source",
        lambda e: e.code_causes == (Cause.CODE,),
        Cause.CODE,
        "the source differs; compiler, configuration and environment are the same",
    ),
    Rule(
        "code object without a reason",
        lambda _: True,
        Cause.UNKNOWN,
        "the code objects differ, but none of their recorded inputs do",
        (Cause.CODE, Cause.COMPILER),
        "build both revisions twice: the build may not be reproducible",
    ),
)
"""In the order in which they are tried; the last always applies."""
