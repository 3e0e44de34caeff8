"""The program that models kernels; ``workers.py`` calls it.

It runs in a process of its own because modelling some kernels takes long and may be ended at any
moment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scheduler.errors import UserError
from scheduler.sandbox.rpc import Handler
from scheduler.targets.registry import load_part
from scheduler.tuning.modelled.job import Model, ModelJob, pack_answer


def make_handler(model_name: str) -> Handler:
    """Return the handler of requests: a ``job`` and the path of its ``listing``."""
    model: Model = load_part(model_name)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        listing = Path(request["listing"]).read_text(errors="replace")
        try:
            return pack_answer(model(ModelJob.from_json(request["job"]), listing))
        except UserError as error:
            return {"refused": str(error)}

    return answer
