"""Queues and targets that live workers serve."""

from __future__ import annotations

from codegen_app.workers.models import Worker


def served_queues() -> frozenset[str]:
    """Return the queues that a live worker takes work from: for a pinned worker its own queue, for
    a paused or drained one none (1 query)."""
    return frozenset(
        queue for worker in _live_workers() for queue in worker.queues if worker.accepts(queue)
    )


def live_targets() -> frozenset[str]:
    """Return the targets whose queue a live worker serves (1 query)."""
    return frozenset(
        queue.removeprefix("measure.")
        for worker in _live_workers()
        for queue in worker.queues
        if queue.startswith("measure.")
    )


def _live_workers() -> list[Worker]:
    return [worker for worker in Worker.objects.all() if worker.is_alive]
