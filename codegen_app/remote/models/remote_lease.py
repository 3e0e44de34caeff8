"""The leases of remote workers."""

from __future__ import annotations

from django.db import models

from codegen_app.tracking.models.remeasuring import Remeasurement
from codegen_app.tuning.models.tuning_run import TuningTask
from codegen_app.workers.models.work import Work
from codegen_app.workers.models.worker import Worker


class LeaseEnd(models.TextChoices):
    """How the lease of a remote worker ended."""

    FINISHED = "finished", "its outcome is recorded"
    GIVEN_BACK = "given back", "the worker was stopped"
    FAILED = "failed", "the worker could not do it"
    EXPIRED = "expired", "the work was cancelled, or given to another"


class RemoteLease(models.Model):
    """A tuning task, or a remeasurement, of a worker that has no database.

    ``key`` is the worker's name for it, ``claim`` that of the work: as long as it is the row's, the
    lease holds. ``device`` is the worker's measuring device, ``results`` how many candidates the
    worker reported something new about, ``spent_s`` the seconds of work that it reported.

    For a run with a budget ``offered`` has, by kernel, the position and the configuration of each
    candidate; null until a worker that compiles has prepared it. ``asked`` are the kernels among
    these whose builds the worker requested, and that are still to be built.
    """

    key = models.CharField(max_length=32, unique=True)
    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="leases")
    task = models.ForeignKey(
        TuningTask, null=True, blank=True, on_delete=models.CASCADE, related_name="leases"
    )
    remeasurement = models.ForeignKey(
        Remeasurement, null=True, blank=True, on_delete=models.CASCADE, related_name="leases"
    )
    claim = models.CharField(max_length=160)
    device = models.CharField(max_length=32, blank=True)
    results = models.PositiveIntegerField(default=0)
    spent_s = models.FloatField(default=0)
    offered = models.JSONField(null=True, blank=True, default=dict)
    asked = models.JSONField(default=list, blank=True)
    begun_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    end = models.CharField(max_length=12, choices=LeaseEnd.choices, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["worker"],
                condition=models.Q(ended_at__isnull=True),
                name="remotelease_one_a_worker",
            ),
            models.CheckConstraint(
                name="remotelease_end_known",
                condition=models.Q(end="", ended_at__isnull=True)
                | models.Q(end__in=LeaseEnd.values, ended_at__isnull=False),
            ),
            models.CheckConstraint(
                name="remotelease_of_one",
                condition=models.Q(task__isnull=False, remeasurement__isnull=True)
                | models.Q(task__isnull=True, remeasurement__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.work} at {self.worker_id}"

    @property
    def work(self) -> Work:
        """Return the row that it is a claim on."""
        row = self.task or self.remeasurement
        assert row is not None
        return row

    @property
    def tuning_task(self) -> TuningTask:
        """Return the tuning task of a lease that is known to be on one."""
        assert self.task is not None
        return self.task
