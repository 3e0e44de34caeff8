"""The model of a board (``scheduler/cycles``) for a tuner's worker processes."""

from __future__ import annotations

from scheduler.codegen.benchmark_request import ScalarArg
from scheduler.cycles.kernel_model import model_kernel
from scheduler.cycles.launch_inputs import prepare_launches
from scheduler.cycles.report import Report
from scheduler.ir.index.functions import evaluate
from scheduler.targets import find
from scheduler.targets.modelled import board_of_device
from scheduler.tuning.modelled.job import ModelJob


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
