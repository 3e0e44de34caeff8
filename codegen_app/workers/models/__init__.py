"""Work and workers."""

from __future__ import annotations

from codegen_app.workers.models.work import OPEN_STATES, State, Work
from codegen_app.workers.models.worker import Control, Worker

__all__ = [
    "OPEN_STATES",
    "Control",
    "State",
    "Work",
    "Worker",
]
