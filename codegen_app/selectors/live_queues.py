"""What can be measured on now, and which work is taken."""

from __future__ import annotations

from codegen_app.models import Worker


def served_queues() -> frozenset[str]:
    """Queues that a live worker takes work from: of a pinned one that one, of one that is paused
    or drained none (1 query)."""
    return frozenset(
        queue for worker in _live_workers() for queue in worker.queues if worker.accepts(queue)
    )


def live_targets() -> frozenset[str]:
    """Targets whose queue a live worker serves (1 query)."""
    return frozenset(
        queue.removeprefix("measure.")
        for worker in _live_workers()
        for queue in worker.queues
        if queue.startswith("measure.")
    )


def _live_workers() -> list[Worker]:
    return [worker for worker in Worker.objects.all() if worker.is_alive]
