"""The worker processes, their devices, and the leases of remote ones."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.accounts.models.api_token import ApiToken

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
    it names, for others torch's, if it is installed. ``repositories`` is ``[{name, minutes}]``:
    those whose revisions it builds and measures for bisections, and the limit of one revision.
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
    repositories = models.JSONField(default=list, db_default=[])

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
