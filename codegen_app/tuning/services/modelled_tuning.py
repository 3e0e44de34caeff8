"""Tuning by modelled times, for rows: the tools of a run on a modelled device, and a measured run's
warm start from a modelled one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.kernels.services import builds
from codegen_app.kernels.services.remote_builds import RemoteBuilds
from codegen_app.platform import artifacts
from codegen_app.tuning.models import Candidate, TuningTask
from codegen_app.tuning.queries.ledger import modelled_result
from codegen_app.workers import compilers
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.build.model import Build as Built
from scheduler.build.recipe import recipe_of
from scheduler.codegen.caller import TemplateCaller
from scheduler.runtime.device import DeviceInfo
from scheduler.targets.modelled import DEVICE_PREFIX
from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.modelled.cache import ModelCache
from scheduler.tuning.modelled.timer import ModelTools
from scheduler.tuning.modelled.workers import ModelWorkers
from scheduler.tuning.modelled_time import ModelledTime
from scheduler.tuning.run import emulation_for, max_model_workers
from scheduler.tuning.warm_start import COLD_START, LedgerLine, WarmStart, build_warm_start

_PRIORITY = 25  # the same as for builds that a tuning run waits for


@contextmanager
def open_tools(device: DeviceInfo) -> Iterator[ModelTools]:
    """Yield the tools of a modelled run; closed at the end."""
    emulation = emulation_for(device).name

    def request(caller: TemplateCaller) -> Build:
        kernel = GeneratedKernel.objects.get(name=caller.name)  # recorded for the GPU just before
        return builds.request_builds([kernel], emulation, priority=_PRIORITY)[kernel.pk]

    cache = ModelCache(compilers.code_cache().root)
    models = ModelWorkers(
        settings.MODEL_PROCESSES or max_model_workers(), cache, settings.MODEL_LIMIT_S
    )
    tools = ModelTools(RemoteBuilds(request), models, listing_of)
    with closing(tools):
        yield tools


def listing_of(build: Built) -> Path:
    """Return the listing of a build, on this host. Raises ``FileNotFoundError`` if the storage has
    lost it."""
    rows = Build.objects.filter(
        *(Q(target=build.target), Q(code_digest=build.code_digest), Q(listing__isnull=False)),
        kernel__source_digest=build.source_digest,
    )
    row = rows.select_related("listing").order_by("-pk").first()
    if row is None or row.listing is None:
        raise FileNotFoundError(f"the listing of {build.code_digest[:12]} for {build.target}")
    name = recipe_of(targets.find(build.target), build.source_file).listing_file
    return artifacts.local_folder(row.listing, name) / name


def warm_start(task: TuningTask) -> WarmStart:
    """Return the latest modelled times of a task's problem at its sizes, for its target; the task
    then records which run they are from."""
    source, lines = warm_start_lines(task)
    return build_warm_start(source, lines) if source else COLD_START


def warm_start_lines(task: TuningTask) -> tuple[str, list[LedgerLine]]:
    """Return the same lines from the rows, with the label of their run; "" and no lines if there is
    none."""
    if task.begins_with is None:
        earlier_tasks = TuningTask.objects.filter(
            problem=task.problem_id,
            state=State.DONE,
            run__target=task.run.target,
            run__bindings=task.run.bindings,
            run__device__startswith=DEVICE_PREFIX,
            candidates__modelled__isnull=False,
        )
        task.begins_with = earlier_tasks.order_by("-pk").first()
        if task.begins_with is None:
            return "", []
        TuningTask.objects.filter(pk=task.pk).update(begins_with=task.begins_with)
    earlier = task.begins_with
    rows = Candidate.objects.filter(task=earlier, state=State.DONE, modelled__isnull=False)
    lines = [
        LedgerLine(
            problem=earlier.title,
            bindings=earlier.run.bindings,
            kernel=row.kernel.name,
            template=row.kernel.template,
            config=row.config,
            state=CandidateState.MODELLED,
            modelled=modelled,
        )
        for row in rows.select_related("kernel")
        if row.kernel is not None and (modelled := modelled_result(row)) is not None
    ]
    return f"run {earlier.run_id}", lines


def modelled_time(task: TuningTask, kernel: str) -> ModelledTime | None:
    """Return the modelled time of one kernel that the task's order came from."""
    if task.begins_with_id is None:
        return None
    row = Candidate.objects.filter(
        task=task.begins_with_id, state=State.DONE, kernel__name=kernel
    ).first()
    return modelled_result(row) if row is not None else None
