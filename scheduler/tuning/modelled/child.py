"""The program that models kernels; ``workers.py`` calls it.

It runs in a separate process because modelling some kernels takes long and may be ended at any
moment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scheduler.codegen.benchmark_request import ScalarArg
from scheduler.cycles.kernel_model import model_kernel
from scheduler.cycles.launch_inputs import prepare_launches
from scheduler.cycles.report import Report
from scheduler.errors import UserError
from scheduler.ir.index.functions import evaluate
from scheduler.sandbox.rpc import Handler
from scheduler.targets import find
from scheduler.targets.modelled import board_of_device
from scheduler.targets.registry import load_part
from scheduler.tuning.modelled.job import Model, ModelJob, pack_answer


def model(job: ModelJob, listing: str) -> Report:
    """Return the report of a job's kernel, with random inputs. Raises ``UserError`` if the model
    cannot run it."""
    request = job.request
    scalars = {arg.name: arg.value for arg in request.args if isinstance(arg, ScalarArg)}
    launches, memory = prepare_launches(
        job.launches,
        request,
        index_limits=job.index_limits,
        workspace_bytes=evaluate(job.workspace_bytes, dict(request.bindings) | scalars),
    )
    return model_kernel(
        listing,
        find(request.target),
        board_of_device(job.device),
        launches,
        memory,
        kernel=request.kernel,
        sizes=request.bindings,
    )


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
