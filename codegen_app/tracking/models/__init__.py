"""Series, points, changes, alerts, notifications."""

from __future__ import annotations

from codegen_app.tracking.models.alert import (
    OPEN_ALERT_STATES,
    QUIET_KINDS,
    UNDOABLE_EVENTS,
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    CauseClass,
    EventKind,
    Relation,
)
from codegen_app.tracking.models.annotation import Annotation
from codegen_app.tracking.models.batch import Batch
from codegen_app.tracking.models.bisection import (
    Bisection,
    BisectionMeans,
    BisectionState,
    SkippedRevision,
)
from codegen_app.tracking.models.change import (
    LARGEST_FIRST,
    LISTED,
    Baseline,
    Change,
    SeriesRule,
)
from codegen_app.tracking.models.day_summary import DaySummary
from codegen_app.tracking.models.machine import MachineFinding
from codegen_app.tracking.models.notification import Channel, ChannelKind, Delivery, DeliveryState
from codegen_app.tracking.models.remeasuring import (
    AlertRun,
    BisectionStep,
    MeasurementRequest,
    RemeasuredPoint,
    Remeasurement,
)
from codegen_app.tracking.models.repository import Repository
from codegen_app.tracking.models.retention import RetentionPolicy
from codegen_app.tracking.models.rule import (
    Budget,
    BudgetStatistic,
    PatternRule,
    PatternSet,
    RuleSweep,
)
from codegen_app.tracking.models.series import (
    VALID,
    Conditions,
    Datum,
    Revision,
    Series,
    Source,
    Withdrawal,
)
from codegen_app.tracking.models.series_finding import SeriesExamination, SeriesFinding

__all__ = [
    "LARGEST_FIRST",
    "LISTED",
    "OPEN_ALERT_STATES",
    "QUIET_KINDS",
    "UNDOABLE_EVENTS",
    "VALID",
    "Alert",
    "AlertEvent",
    "AlertKind",
    "AlertRun",
    "AlertState",
    "Annotation",
    "Baseline",
    "Batch",
    "Bisection",
    "BisectionMeans",
    "BisectionState",
    "BisectionStep",
    "Budget",
    "BudgetStatistic",
    "CauseClass",
    "Change",
    "Channel",
    "ChannelKind",
    "Conditions",
    "Datum",
    "DaySummary",
    "Delivery",
    "DeliveryState",
    "EventKind",
    "MachineFinding",
    "MeasurementRequest",
    "PatternRule",
    "PatternSet",
    "Relation",
    "RemeasuredPoint",
    "Remeasurement",
    "Repository",
    "RetentionPolicy",
    "Revision",
    "RuleSweep",
    "Series",
    "SeriesExamination",
    "SeriesFinding",
    "SeriesRule",
    "SkippedRevision",
    "Source",
    "Withdrawal",
]
