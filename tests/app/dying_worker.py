"""Workers that die: ``python -m tests.app.dying_worker``, for tests.

Each line of standard input names places, one a worker; all of them begin at once, in processes of
their own, and do all that waits. A worker kills itself (SIGKILL) at its place; at ``-`` it lives.
Their exit codes are written on one line. Forked from one process, since Python starts slowly.
"""

from __future__ import annotations

import os
import pkgutil
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

PLACES = {
    "a graph is claimed": ("codegen_app.kernels.services.engine.scheduled", "before"),
    "a graph is recorded and not committed": (
        "codegen_app.kernels.services.builds.request_defaults",
        "after",
    ),
    "a graph is committed and nothing announced": ("codegen_app.workers.queue._send", "before"),
    "a build is claimed": ("scheduler.build.compile.build", "before"),
    "a build is compiled and nothing stored": ("scheduler.build.compile.build", "after"),
    "a part of a build is stored": ("codegen_app.platform.artifacts.store_file", "after"),
    "a build is recorded and not committed": (
        "codegen_app.tuning.services.ledger.on_build_finished",
        "after",
    ),
    "a task is claimed": ("codegen_app.tuning.services.devices.hold_device", "before"),
    "a device is held": ("codegen_app.tuning.services.search.begin_task", "after"),
    "a candidate is checked": ("scheduler.tuning.evaluator.BenchEvaluator.check", "after"),
    "candidates are measured and not recorded": (
        "codegen_app.tuning.services.search.record_decision",
        "before",
    ),
    "a choice is recorded and not committed": (
        "codegen_app.tuning.services.candidate_results.choose",
        "after",
    ),
}
SEARCHING = {
    "a candidate is asked for": (
        "codegen_app.tuning.services.search.CandidateBuilds.request_build",
        "after",
    ),
    "a candidate is recorded": ("codegen_app.tuning.services.search._DatabaseHost.note", "after"),
    "a search is over and not recorded": (
        "codegen_app.tuning.services.search.record_decision",
        "before",
    ),
}
TRACKING = {
    "a message is taken": ("codegen_app.tracking.services.detection.unchecked_series", "before"),
    "changes are written and not committed": (
        "codegen_app.tracking.detector.writer.Writer.write",
        "after",
    ),
    "changes are committed and not explained": (
        "codegen_app.tracking.services.explanations.unexplained_changes",
        "before",
    ),
    "causes are found and not written": (
        "codegen_app.tracking.detector.sides.change_sides",
        "after",
    ),
    "causes are committed and nothing is raised": (
        "codegen_app.tracking.alerting.creation.pending_changes",
        "before",
    ),
    "an alert is made and nobody is to be told": (
        "codegen_app.tracking.alerting.links.link_new",
        "after",
    ),
    "deliveries are written and not committed": (
        "codegen_app.tracking.notifying.outbox.enqueue",
        "after",
    ),
    "deliveries are committed and nothing is announced": (
        "codegen_app.workers.queue._send",
        "before",
    ),
}
SENDING = {
    "a delivery waits": ("codegen_app.tracking.notifying.sender.claim", "before"),
    "a delivery is claimed": ("codegen_app.tracking.notifying.sender.claim", "after"),
    "a message is made and not sent": ("codegen_app.tracking.notifying.webhook.post", "before"),
    "a message is sent and nobody has noted it": (
        "codegen_app.tracking.notifying.webhook.post",
        "after",
    ),
}


def dies(function: Callable[..., Any], when: str) -> Callable[..., Any]:
    """The function; whoever calls it is killed."""

    def killed(*args: Any, **kwargs: Any) -> Any:
        if when == "after":
            function(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    return killed


def work(place: str) -> None:
    """Do all that waits, as Celery's worker does message by message; die at the place."""
    from codegen_app import tasks
    from codegen_app.graphs.models import Graph
    from codegen_app.tuning.models import TuningRun
    from codegen_app.workers.models.work import OPEN_STATES

    if place != "-":
        target, when = (PLACES | SEARCHING | TRACKING | SENDING)[place]
        module, _, name = target.rpartition(".")
        owner = pkgutil.resolve_name(module)
        setattr(owner, name, dies(getattr(owner, name), when))
    while (
        Graph.objects.filter(state__in=OPEN_STATES).exists()
        or TuningRun.objects.filter(state__in=OPEN_STATES).exists()
    ):
        tasks.prepare()
        tasks.compile()
        tasks.measure("cpu")
    tasks.detect()
    tasks.notify()


def fork(place: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work(place)
        code = 0
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


def main() -> None:
    import django

    django.setup()
    import codegen_app.tasks  # noqa: F401 - before forking, once

    for line in sys.stdin:
        workers = [fork(place) for place in line.strip().split("; ")]
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in workers]
        sys.stdout.write(" ".join(map(str, codes)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
