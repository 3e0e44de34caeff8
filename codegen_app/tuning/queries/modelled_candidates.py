"""Modelled times of a node's candidates, for one board and one binding of the sizes.

They have two sources: reports requested on kernels' pages, and the figures of tuning runs on
modelled devices. A report has more detail, so it is preferred if both exist.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import F

from codegen_app.kernels.modelled.rows import modelled_rows_of_builds
from codegen_app.tuning.models import Candidate
from codegen_app.tuning.queries.ledger import modelled_result
from codegen_app.web.row import build_row
from codegen_app.workers.models import State
from scheduler.cycles.report import VERSION
from scheduler.targets.modelled import DEVICE_PREFIX


@dataclass(frozen=True)
class BoardSizes:
    """The board and sizes of modelled times: times of different ones are never compared."""

    target: str
    board: str
    sizes: Mapping[str, int]

    @property
    def where(self) -> str:
        """The board and sizes for titles."""
        sizes = " ".join(f"{name}={value}" for name, value in self.sizes.items())
        return f"{self.board} at {sizes}" if sizes else self.board


@dataclass(frozen=True)
class ModelledTime:
    """Microseconds at the low, middle and high values of the model's constants."""

    low_us: float
    time_us: float
    high_us: float
    sentence: str
    unknown: Mapping[str, int]
    url: str


def modelled_times(
    builds: Mapping[int, Collection[int]],
    target: str = "",
    device: str = "",
    sizes: Mapping[str, int] | None = None,
    problem: int | None = None,
) -> tuple[BoardSizes | None, dict[int, ModelledTime]]:
    """Return the board and sizes, and the modelled times of kernels by key, given their builds (2
    queries). Times from tuning runs are limited to those of the ``problem`` with this key.

    Among the boards and sizes with times, the one of the ``target`` and ``device`` at these sizes
    (where the measured times come from) is chosen, else the one with the most kernels.
    """
    groups: dict[tuple[str, str, str], dict[int, ModelledTime]] = defaultdict(dict)
    kernel_of = {pk: kernel for kernel, pks in builds.items() for pk in pks}
    for report in modelled_rows_of_builds(kernel_of):  # the newest first
        if report.low_us is None or report.time_us is None or report.high_us is None:
            continue
        time = build_row(ModelledTime, report)
        key = report.target, report.board, _sizes_key(report.sizes)
        groups[key].setdefault(kernel_of[report.build], time)
    # Times from runs, for code that was not rebuilt since; the newest first.
    rows = Candidate.objects.filter(
        kernel__in=builds,
        task__problem=problem,
        state=State.DONE,
        modelled__version=VERSION,
        task__run__device__startswith=DEVICE_PREFIX,
        build__finished_at__lte=F("finished_at"),
    )
    for row in rows.select_related("task__run", "task__problem").order_by("-finished_at", "-pk"):
        if (modelled := modelled_result(row)) is None:
            continue
        assert row.kernel_id is not None, "by one of the kernels"
        run, symbols = row.task.run, row.task.problem.symbols
        band = modelled.time_ns
        used = {name: size for name, size in run.bindings.items() if name in symbols}
        time = ModelledTime(
            low_us=band.low / 1000,
            time_us=band.mid / 1000,
            high_us=band.high / 1000,
            sentence=modelled.sentence,
            unknown=modelled.unknown,
            url=run.get_absolute_url(),
        )
        key = run.target, modelled.board, _sizes_key(used)
        groups[key].setdefault(row.kernel_id, time)
    if not groups:
        return None, {}

    def nearness(key: tuple[str, str, str]) -> tuple[bool, bool, bool, int]:
        row_target, board, at = key
        known = json.loads(at)
        same = sizes is not None and all(sizes.get(name) == known[name] for name in known)
        return row_target == target, board in device, same, len(groups[key])

    best = max(sorted(groups), key=nearness)
    return BoardSizes(best[0], best[1], json.loads(best[2])), groups[best]


def _sizes_key(sizes: Mapping[str, int]) -> str:
    return json.dumps(sizes, sort_keys=True)
