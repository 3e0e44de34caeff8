"""The rows, one aggregate per file; the database enforces their constraints."""

from __future__ import annotations

from codegen_app.models.alert import (
    OPEN_ALERT_STATES,
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    EventKind,
    Relation,
)
from codegen_app.models.api_token import ApiToken, Scope
from codegen_app.models.artifact import Artifact
from codegen_app.models.audit import AuditEntry
from codegen_app.models.batch import Batch
from codegen_app.models.benchmark_result import BenchmarkResult, Environment
from codegen_app.models.build import Build
from codegen_app.models.change import Baseline, Change, SeriesRule
from codegen_app.models.foreign_kernel import ForeignKernel
from codegen_app.models.generated_kernel import GeneratedKernel, KernelUse
from codegen_app.models.graph import Graph, GraphNode
from codegen_app.models.identity import Identity
from codegen_app.models.instruction import InstructionUse, Mnemonic
from codegen_app.models.message import Message, Round
from codegen_app.models.modelling import Modelling
from codegen_app.models.notification import Channel, ChannelKind, Delivery, DeliveryState
from codegen_app.models.packing import Packing
from codegen_app.models.problem_work import ProblemWork
from codegen_app.models.remeasuring import (
    AlertRun,
    MeasurementRequest,
    RemeasuredPoint,
    Remeasurement,
)
from codegen_app.models.remote_lease import LeaseEnd, RemoteLease
from codegen_app.models.result_import import ResultImport
from codegen_app.models.retention import RetentionPolicy
from codegen_app.models.retune_schedule import Occasion, RetuneSchedule
from codegen_app.models.selection import Selection
from codegen_app.models.series import VALID, Conditions, Datum, Revision, Series, Source, Withdrawal
from codegen_app.models.template_node import Problem, TemplateNode
from codegen_app.models.torch_comparison import TorchComparison
from codegen_app.models.tuning_run import Candidate, TuningRun, TuningTask
from codegen_app.models.work import OPEN_STATES, State, Work
from codegen_app.models.worker import Control, Worker

__all__ = [
    "OPEN_ALERT_STATES",
    "OPEN_STATES",
    "VALID",
    "Alert",
    "AlertEvent",
    "AlertKind",
    "AlertRun",
    "AlertState",
    "ApiToken",
    "Artifact",
    "AuditEntry",
    "Baseline",
    "Batch",
    "BenchmarkResult",
    "Build",
    "Candidate",
    "Change",
    "Channel",
    "ChannelKind",
    "Conditions",
    "Control",
    "Datum",
    "Delivery",
    "DeliveryState",
    "Environment",
    "EventKind",
    "ForeignKernel",
    "GeneratedKernel",
    "Graph",
    "GraphNode",
    "Identity",
    "InstructionUse",
    "KernelUse",
    "LeaseEnd",
    "MeasurementRequest",
    "Message",
    "Mnemonic",
    "Modelling",
    "Occasion",
    "Packing",
    "Problem",
    "ProblemWork",
    "Relation",
    "RemeasuredPoint",
    "Remeasurement",
    "RemoteLease",
    "ResultImport",
    "RetentionPolicy",
    "RetuneSchedule",
    "Revision",
    "Round",
    "Scope",
    "Selection",
    "Series",
    "SeriesRule",
    "Source",
    "State",
    "TemplateNode",
    "TorchComparison",
    "TuningRun",
    "TuningTask",
    "Withdrawal",
    "Work",
    "Worker",
]
