"""Rules by patterns and budgets in the API: what is sent, and what it answers."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from ninja import Schema
from pydantic import ConfigDict, Field

from codegen_app.tracking.models.rule import MAX_EFFECT, MIN_EFFECT
from codegen_app.tracking.rules.book import MAX_RULES
from scheduler.track.patterns import MAX_PATTERNS

_PATTERNS = "Alternatives; empty: every series. * is any text, ? one character."
_EXAMPLE: dict[str, Any] = {
    "problem": ["attention*"],
    "device": ["*H200*"],
    "thresholds": {"least_effect": 0.02},
    "owner": "ada",
    "reason": "noisy kernels of ada's team",
}


class Patterns(Schema):
    """The series that a rule or a budget selects."""

    repository: list[str] = Field([], max_length=MAX_PATTERNS, description=_PATTERNS)
    problem: list[str] = Field([], max_length=MAX_PATTERNS, description=_PATTERNS)
    device: list[str] = Field([], max_length=MAX_PATTERNS, description=_PATTERNS)
    metric: list[str] = Field([], max_length=MAX_PATTERNS, description=_PATTERNS)
    path: list[str] = Field(
        [], max_length=MAX_PATTERNS, description="Paths of the source, as in CODEOWNERS."
    )


class RuleThresholds(Schema):
    """The thresholds that a rule sets."""

    model_config = ConfigDict(extra="forbid")

    least_effect: float | None = Field(
        None,
        ge=MIN_EFFECT,
        le=MAX_EFFECT,
        description="The minimum effect as a fraction of the level. Null: the default.",
    )
    muted: bool = Field(False, description="Detect changes, raise no alerts.")
    stale_after: timedelta | None = Field(
        None,
        gt=timedelta(0),
        le=timedelta(days=3650),
        description="Data are missing after this duration (ISO 8601). Null: automatic.",
    )


class RuleProposal(Patterns):
    """A rule: the series that it matches, and what it decides for them."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_EXAMPLE]})

    thresholds: RuleThresholds | None = Field(
        None, description="Null: the rule does not decide thresholds."
    )
    owner: str | None = Field(
        None,
        max_length=150,
        description="A user name; empty: no owner. Null: the rule does not decide the owner.",
    )
    position: int | None = Field(
        None, ge=1, le=MAX_RULES, description="The position in the list, from 1. Null: the end."
    )
    reason: str = Field(min_length=1, max_length=500)


class RuleItem(Patterns):
    """A rule. The first that matches a series and decides something counts."""

    id: int
    url: str
    position: int
    thresholds: RuleThresholds | None
    owner: str | None
    import_name: str = Field(description="The CODEOWNERS file that it comes from; empty if none.")
    reason: str
    changed_at: datetime
    changed_by: str | None


class RulesList(Schema):
    """The rules in their order."""

    rules: list[RuleItem]
    unfinished: bool = Field(
        description="Workers are still applying the latest change of the rules to the series."
    )


class RulePosition(Schema):
    """A position in the list."""

    model_config = ConfigDict(extra="forbid")

    position: int = Field(ge=1, le=MAX_RULES)


class TriedSeriesRow(Schema):
    """A series that a rule would affect."""

    series: int
    name: str
    gone: int
    new: int
    kept: int


class RuleTrialAnswer(Schema):
    """What a rule would do. Nothing was stored."""

    matching: int = Field(description="The series that match.")
    decided: int = Field(description="The series whose thresholds it would decide.")
    owned: int = Field(description="The series whose owner it would decide.")
    affected: int = Field(description="The series that would have other thresholds than now.")
    muted: int
    unmuted: int
    gone: int = Field(description="The changes that would be gone in the series that were tried.")
    new: int = Field(description="The changes that would be new in them.")
    compared: int | None = Field(description="The series that were looked at; null: all.")
    tried: list[TriedSeriesRow]


class BudgetItem(Patterns):
    """A budget with its current value, null for the reason."""

    id: int
    url: str
    name: str
    statistic: str
    limit: float
    unit: str
    due: date | None
    value: float | None
    reason: str
    met: bool | None = Field(description="Null if there is no value.")
    n_series: int
    generated: bool = Field(description="The values were generated, not measured.")
    emulated: bool = Field(description="The values were measured in an emulation of the target.")


class BudgetsList(Schema):
    """All budgets."""

    budgets: list[BudgetItem]
