"""The worker processes, their devices, and the leases of remote ones."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.models.api_token import ApiToken
from codegen_app.models.remeasuring import Remeasurement
from codegen_app.models.tuning_run import TuningTask
from codegen_app.models.work import Work

# The interval of a worker's heartbeat; after three missed ones it counts as gone.
HEARTBEAT_INTERVAL = timedelta(seconds=10)


class Control(models.TextChoices):
    """What people requested of a worker."""

    GO = "go", "takes work"
    PAUSE = "pause", "paused"
    DRAIN = "drain", "draining"


class Worker(models.Model):
    """One worker process and its last heartbeat.

    ``devices`` is ``[{id, target, name, driver, runtime, compute_units, memory_bytes, emulated}]``
    and ``absent`` ``[{kind, reason}]``: what could not be used there, and why. ``fence`` is
    ``[{name, in_force, note, needed}]``: the parts of the sandbox for kernels and compilers there.

    ``control`` is what people requested of it, who, when and why; it applies to any process of that
    name, after restarts, too. ``pinned_to`` is the one of its queues that it may take work of ("":
    all). A ``remote`` one has no database: it holds ``token`` and the ``session`` that it got when
    it joined (stored as its digest). ``versions`` are those of packages: for a remote one all that
    it names, for others torch's, if it is installed.
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
    control = models.CharField(max_length=8, choices=Control.choices, default=Control.GO)
    pinned_to = models.CharField(max_length=40, blank=True, help_text="Of its queues, if one alone")
    control_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    control_at = models.DateTimeField(null=True, blank=True)
    control_why = models.CharField(max_length=500, blank=True)
    remote = models.BooleanField(default=False, help_text="Without the database, over HTTPS")
    token = models.ForeignKey(
        ApiToken, null=True, blank=True, on_delete=models.SET_NULL, related_name="workers"
    )
    session = models.CharField(max_length=64, blank=True)
    versions = models.JSONField(default=dict)

    class Meta:
        ordering = ["name"]
        permissions = [("steer_workers", "Can pause, drain and pin workers")]
        constraints = [
            models.CheckConstraint(
                name="worker_control_known", condition=models.Q(control__in=Control.values)
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_alive(self) -> bool:
        """Return whether it was seen recently and did not sign off. A heartbeat in the future comes
        from a clock that was set back."""
        ago = abs(timezone.now() - self.seen_at)
        return self.stopped_at is None and ago < 3 * HEARTBEAT_INTERVAL

    @classmethod
    def alive_with_torch(cls) -> models.QuerySet[Worker]:
        """Return the live local workers that compare graphs with torch."""
        return cls.objects.filter(
            remote=False,
            stopped_at=None,
            seen_at__gt=Now() - 3 * HEARTBEAT_INTERVAL,
            queues__contains="prepare",
            versions__has_key="torch",
        )

    def accepts(self, queue: str) -> bool:
        """Return whether it takes work of a queue, as people requested."""
        return self.control == Control.GO and self.pinned_to in ("", queue)


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
