"""Tokens with which programs send results and read histories."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils import timezone


class Scope(models.TextChoices):
    """What a token may do; each scope is independent."""

    INGEST = "ingest", "send results"
    READ = "read", "read series and alerts"
    TRIAGE = "triage", "triage alerts, set thresholds, annotate and withdraw points"
    WORKER = "worker", "be a worker: take measurements and send what came of them"


class ApiToken(models.Model):
    """A token, stored only as a keyed hash (``accounts/tokens.py``).

    It acts for ``owner``: it is invalid while that account is closed, or may not have tokens.
    ``requests_left`` and ``points_left`` are the rest of its two rate limits at ``allowed_at``;
    null before the first use. A worker's token is for nothing else: ``worker_name`` is the worker,
    ``worker_queue`` the one queue that it may serve ("": any).
    """

    digest = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=16, help_text="How it begins, to be told by")
    name = models.CharField(max_length=100, help_text="What it is for")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    scopes = ArrayField(models.CharField(max_length=8, choices=Scope.choices))
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True, help_text="To the minute")
    requests_left = models.FloatField(null=True, blank=True)
    points_left = models.FloatField(null=True, blank=True)
    allowed_at = models.DateTimeField(null=True, blank=True)
    worker_name = models.CharField(max_length=60, blank=True)
    worker_queue = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        verbose_name = "API token"
        permissions = [("make_tokens", "Can make and revoke API tokens")]
        constraints = [
            models.CheckConstraint(
                name="apitoken_scopes_known",
                condition=Q(scopes__contained_by=Scope.values) & Q(scopes__len__gte=1),
            ),
            models.CheckConstraint(
                name="apitoken_of_a_worker_is_for_that_alone",
                condition=(Q(scopes=[Scope.WORKER]) & ~Q(worker_name=""))
                | (~Q(scopes__contains=[Scope.WORKER]) & Q(worker_name="", worker_queue="")),
            ),
            models.CheckConstraint(
                name="apitoken_ends_after_it_began",
                condition=Q(expires_at__isnull=True) | Q(expires_at__gt=F("created_at")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def state(self) -> str:
        """Return one word for a list."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= timezone.now():
            return "expired"
        return "valid"
