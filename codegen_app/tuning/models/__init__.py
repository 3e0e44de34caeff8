"""Tuning runs, candidates, measurements, selections, schedules."""

from __future__ import annotations

from codegen_app.tuning.models.benchmark_result import BenchmarkResult, Environment
from codegen_app.tuning.models.result_import import ResultImport
from codegen_app.tuning.models.retune_schedule import Occasion, RetuneSchedule
from codegen_app.tuning.models.selection import Selection
from codegen_app.tuning.models.tuning_run import Candidate, TuningRun, TuningTask

__all__ = [
    "BenchmarkResult",
    "Candidate",
    "Environment",
    "Occasion",
    "ResultImport",
    "RetuneSchedule",
    "Selection",
    "TuningRun",
    "TuningTask",
]
