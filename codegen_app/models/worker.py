"""The worker processes that there are, and the devices each of them found."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.utils import timezone

# A worker says that it is alive this often; three missed signs and it counts as gone.
HEARTBEAT_INTERVAL = timedelta(seconds=10)


class Worker(models.Model):
    """One worker process and its last sign of life.

    ``devices`` is ``[{id, target, name, driver, runtime, compute_units, memory_bytes, emulated}]``
    and ``absent`` ``[{kind, reason}]``: what could not be used there, and why. ``fence`` is
    ``[{name, in_force, note, needed}]``: what keeps kernels and compilers to their own there.
    """

    name = models.CharField(max_length=120, unique=True)
    host = models.CharField(max_length=120)
    pid = models.PositiveIntegerField()
    queues = models.JSONField(default=list)
    devices = models.JSONField(default=list)
    absent = models.JSONField(default=list)
    toolchains = models.JSONField(default=list)
    fence = models.JSONField(default=list)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_alive(self) -> bool:
        """Whether it was seen lately and did not say good-bye. A sign of the future comes from a
        clock that was set back."""
        ago = abs(timezone.now() - self.seen_at)
        return self.stopped_at is None and ago < 3 * HEARTBEAT_INTERVAL
