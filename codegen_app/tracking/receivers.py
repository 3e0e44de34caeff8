"""What tuning runs mean for series: the receiver of their signal."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.dispatch import receiver

from codegen_app.tracking.services import history
from codegen_app.tuning.models import BenchmarkResult
from codegen_app.tuning.signals import result_chosen


@receiver(result_chosen)
def add_to_history(result: BenchmarkResult, measured_at: datetime | None, **_: Any) -> None:
    history.add_chosen(result, measured_at)
