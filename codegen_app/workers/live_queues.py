"""Queues and targets that live workers serve."""

from __future__ import annotations

from dataclasses import dataclass

from codegen_app.workers.models import Worker
from codegen_app.workers.queue import Kind


def served_queues() -> frozenset[str]:
    """Return the queues that a live worker takes work from: for a pinned worker its own queue, for
    a paused or drained one none (1 query)."""
    return frozenset(
        queue for worker in _live_workers() for queue in worker.queues if worker.accepts(queue)
    )


@dataclass(frozen=True)
class RepositoryBuilders:
    """The live workers that build revisions of a repository, and the longest time of one."""

    workers: tuple[str, ...]
    minutes: int


def repository_builders() -> dict[str, RepositoryBuilders]:
    """Return by repository who builds its revisions now (1 query)."""
    found: dict[str, RepositoryBuilders] = {}
    for worker in _live_workers():
        for row in worker.repositories if worker.accepts(Kind.BISECT) else ():
            known = found.get(row["name"], RepositoryBuilders((), 0))
            found[row["name"]] = RepositoryBuilders(
                (*known.workers, worker.name), max(known.minutes, row["minutes"])
            )
    return found


def _live_workers() -> list[Worker]:
    return [worker for worker in Worker.objects.all() if worker.is_alive]
