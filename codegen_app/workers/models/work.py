"""The common columns of rows that are worked on: a state, a claim with a lease, and the outcome.

The database is the truth about who works on what. A worker claims a row by one conditional UPDATE
(``workers/work.py``), keeps the lease alive with heartbeats, and loses the row when it dies: the
lease expires and the row is queued again. A row over which processes die again and again, while
others are done, is quarantined.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class State(models.TextChoices):
    """The state of a row's work. ``rejected`` comes with its stage and reason."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    QUARANTINED = "quarantined"


OPEN_STATES = (State.QUEUED, State.RUNNING)


class Work(models.Model):
    """Claim, lease and outcome.

    ``attempts`` counts the claims, ``faults`` consecutive claims that a machine failure ended (no
    space, a worker gone), ``deaths`` those that this row may have caused (only the process that
    worked on it ended). ``claim`` is the name of the one claim that holds now: a worker that lost
    its lease cannot finish the row. ``reason`` is one line for a table; for a queued row, why it is
    retried. ``detail`` has the log or the numbers behind it.
    """

    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    priority = models.SmallIntegerField(default=0, help_text="Higher is taken first.")
    claim = models.CharField(max_length=160, blank=True)
    worker = models.CharField(max_length=120, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    deaths = models.PositiveSmallIntegerField(default=0)
    faults = models.PositiveSmallIntegerField(default=0)
    again_at = models.DateTimeField(null=True, blank=True, help_text="Not tried before")
    stage = models.CharField(max_length=16, blank=True, help_text="Where it was rejected.")
    reason = models.CharField(max_length=500, blank=True)
    detail = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(
                name="%(class)s_state_known", condition=Q(state__in=State.values)
            ),
            models.CheckConstraint(
                name="%(class)s_lease_while_running",
                condition=Q(state=State.RUNNING, lease_until__isnull=False)
                | (~Q(state=State.RUNNING) & Q(lease_until__isnull=True)),
            ),
            models.CheckConstraint(
                name="%(class)s_loss_has_reason",
                condition=~Q(state__in=[State.REJECTED, State.QUARANTINED]) | ~Q(reason=""),
            ),
        ]

    @property
    def is_open(self) -> bool:
        """Return whether a worker works on it, or will."""
        return self.state in OPEN_STATES
