"""Rows of histories for tests: series, points, changes, alerts."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from codegen_app.tracking.models import (
    Alert,
    AlertKind,
    Budget,
    Change,
    Channel,
    ChannelKind,
    Conditions,
    Datum,
    PatternRule,
    Revision,
    Series,
    Source,
)
from codegen_app.tracking.notifying import signing
from tests.app import factories


def series(**fields: Any) -> Series:
    """A series without points: nanoseconds, fewer are better."""
    defaults = {
        "digest": factories.digest(),
        "problem": "gemm",
        "device_name": "NVIDIA H200",
        "target": "sm_90",
        "metric": "time",
        "unit": "ns",
    }
    return Series.objects.create(**defaults | fields)


def rule(**fields: Any) -> PatternRule:
    """A rule at the end of the list, for every series unless patterns are given."""
    position = PatternRule.objects.count() + 1
    defaults = {"sets_thresholds": True, "least_effect": 0.02, "reason": "a noisy host"}
    return PatternRule.objects.create(**{"position": position, **defaults} | fields)


def budget(**fields: Any) -> Budget:
    """A budget of every series, unless patterns are given."""
    name = f"budget {Budget.objects.count() + 1}"
    return Budget.objects.create(
        **{"name": name, "statistic": "p50", "limit": 120.0, "unit": "ns"} | fields
    )


def revision(**fields: Any) -> Revision:
    """Another commit at each call."""
    return Revision.objects.create(
        **{"name": factories.digest()[:40], "at": timezone.now()} | fields
    )


def datum(**fields: Any) -> Datum:
    """A point, of a series of its own unless one is given."""
    conditions, _ = Conditions.objects.get_or_create(digest="0" * 64)
    defaults = {"value": 100.0, "at": timezone.now(), "conditions": conditions}
    made = defaults | {"source": Source.API} | fields
    made.setdefault("series", None)
    made["series"] = made["series"] or series()
    made["revision"] = made.get("revision") or revision()
    made.setdefault("measured_at", made["at"])
    return Datum.objects.create(**made)


def change(problem: str = "gemm", **fields: Any) -> Change:
    """A series of that problem became slower by a quarter, because of its code."""
    of = fields.pop("series", None) or series(problem=problem)
    at_revision = fields.pop("revision", None) or revision()
    after = fields.pop("after", 125.0)
    point = datum(series=of, revision=at_revision, value=after)
    defaults = {
        "series": of,
        "datum": point,
        "at": point.at,
        "revision": at_revision,
        "previous": fields.pop("previous", None) or revision(),
        "before": 100.0,
        "after": after,
        "low": after / 100 - 0.02,
        "high": after / 100 + 0.02,
        "n_before": 12,
        "n_after": 5,
        "errors": 9.5,
        "worse": after > 100,
        "cause": "code",
    }
    return Change.objects.create(**defaults | fields)


def regression(*problems: str, **fields: Any) -> Alert:
    """An alert of a change of each of these problems at one revision."""
    at = revision()
    defaults = {
        "kind": AlertKind.REGRESSION,
        "revision": at,
        "at": at.at,
        "n_series": len(problems),
        "worst_ratio": 1.25,
        "cause": "code",
    }
    made = Alert.objects.create(**defaults | fields)
    for number, problem in enumerate(problems):
        change(problem, alert=made, revision=at, after=125.0 - number)
    return made


def missing(**fields: Any) -> Alert:
    """An alert of a series whose points stopped coming; the fields are the series'."""
    return Alert.objects.create(
        kind=AlertKind.MISSING, series=series(**fields), at=timezone.now(), n_series=1
    )


def channel(name: str = "team", **fields: Any) -> Channel:
    """A webhook's, for regressions."""
    wanted = {
        "kind": ChannelKind.WEBHOOK,
        "address": "http://receiver.example/",
        "alerts": [AlertKind.REGRESSION],
        "key_salt": signing.new_salt(),
    }
    return Channel.objects.create(name=name, **wanted | fields)
