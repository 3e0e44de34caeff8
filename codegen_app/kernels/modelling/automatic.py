"""Kernels that are modelled automatically: the selected ones where most of the time goes.

This takes seconds of a worker each, after all builds: the default of each product, convolution and
attention once it is compiled, and each kernel that a tuning run selects, on its target's first
board. All others are modelled on request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import Build, KernelUse, Modelling
from codegen_app.workers import queue
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.cycles.report import VERSION
from scheduler.ir.operations import GroupKind
from scheduler.targets.modelled import TARGETS

KINDS = (
    GroupKind.GEMM,
    GroupKind.CONVOLUTION,
    GroupKind.DEPTHWISE,
    GroupKind.ATTENTION,
)
_PRIORITY = -10  # after requested modellings


def model_default(build: Build) -> None:
    """Model a finished build if its kernel is a node's default; in its transaction."""
    if not _is_modelled(build.target) or build.flags != list(DEFAULT_FLAGS.values):
        return
    uses = KernelUse.objects.filter(
        kernel=build.kernel_id, is_default=True, template_node__kind__in=KINDS
    )
    for use in uses.select_related("template_node__problem").order_by("pk"):
        if use.template_node.problem is not None:
            symbols = use.template_node.problem.symbols
            sizes = {name: symbol["hint"] for name, symbol in symbols.items()}
            _request(build, use, targets.boards(build.target)[0].name, sizes)


def model_selected(
    build: Build, problem: Problem, bindings: Mapping[str, int], target: str, device_name: str
) -> None:
    """Model the kernel of a build that a run selected for a problem, on the board and at the sizes
    of its measurement; in its transaction."""
    if not _is_modelled(target) or build.state != State.DONE or build.listing_id is None:
        return
    board = targets.board_of(target, device_name) or targets.boards(target)[0]
    use = KernelUse.objects.filter(kernel=build.kernel_id, template_node__problem=problem).first()
    if use is not None:
        symbols: Mapping[str, Any] = problem.symbols
        sizes = {name: bindings.get(name, symbols[name]["hint"]) for name in sorted(symbols)}
        _request(build, use, board.name, sizes)


def _is_modelled(target: str) -> bool:
    return bool(settings.MODEL_AUTOMATICALLY) and target in TARGETS


def _request(build: Build, use: KernelUse, board: str, sizes: Mapping[str, int]) -> None:
    _, is_new = Modelling.objects.get_or_create(
        build=build,
        board=board,
        sizes=dict(sizes),
        version=VERSION,
        defaults={"use": use, "priority": _PRIORITY},
    )
    if is_new:
        queue.notify(queue.Kind.COMPILE)  # its workers model kernels
