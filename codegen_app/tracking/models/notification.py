"""Channels for alerts and their deliveries: an outbox that outlives every process."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from codegen_app.tracking.models.alert import AlertEvent, AlertKind


class ChannelKind(models.TextChoices):
    WEBHOOK = "webhook", "webhook"
    SLACK = "slack", "Slack"
    TEAMS = "teams", "Microsoft Teams"
    EMAIL = "email", "e-mail"

    @property
    def is_posted(self) -> bool:
        """Return whether its messages are HTTP requests to one URL."""
        return self is not ChannelKind.EMAIL


class Channel(models.Model):
    """A destination: the address of a webhook, in one of three formats, or e-mail addresses one per
    line.

    ``alerts`` are the kinds of alerts that are sent; ``search`` narrows them to series whose
    problem or device contains these words. The signing key of a webhook in Kiln's own format is
    derived from ``key_salt`` and the site's secret: it is shown to those who may change the channel
    and stored nowhere.

    With a ``weekday``, the channel gets one e-mail a week on that day and at ``hour``, instead of
    one for each event: the digest of the time since ``digest_until``, where its last one ended.
    """

    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=8, choices=ChannelKind.choices)
    address = models.TextField()
    alerts = ArrayField(models.CharField(max_length=12, choices=AlertKind.choices))
    search = models.CharField(max_length=200, blank=True)
    active = models.BooleanField(default=True)
    weekday = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Monday is 0")
    hour = models.PositiveSmallIntegerField(default=8, db_default=8)
    digest_until = models.DateTimeField(null=True, blank=True)
    key_salt = models.CharField(max_length=32, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["name"]
        permissions = [("notify", "Can say who is told of alerts")]
        constraints = [
            models.CheckConstraint(
                name="channel_kind_known", condition=Q(kind__in=ChannelKind.values)
            ),
            models.CheckConstraint(
                name="channel_digests_are_emails",
                condition=Q(weekday__isnull=True) | Q(kind="email", weekday__lte=6),
            ),
            models.CheckConstraint(name="channel_hour_known", condition=Q(hour__lte=23)),
            models.CheckConstraint(
                name="channel_alerts_known",
                condition=Q(alerts__contained_by=AlertKind.values) & Q(alerts__len__gte=1),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class DeliveryState(models.TextChoices):
    PENDING = "pending", "pending"
    DELIVERED = "delivered", "delivered"
    FAILED = "failed", "failed"


class Delivery(models.Model):
    """One event for one channel, once: written in the transaction of the event, sent afterwards.
    Without an event it is a weekly digest from ``digest_since`` to ``digest_until``, or without
    these a test, which a person requested.

    ``attempts`` is counted when one begins, which moves ``next_at`` behind a lease: only the last
    attempt may record its result (``tracking/notifying/sender.py``). A temporary failure is retried
    at ``next_at``; a permanent one, or too many attempts, is ``failed`` with ``error`` in one line.
    ``key`` is sent along, so that a receiver can detect a duplicate after a sender died between
    sending and recording.
    """

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    event = models.ForeignKey(
        AlertEvent, null=True, blank=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    key = models.UUIDField(unique=True)
    state = models.CharField(
        max_length=10, choices=DeliveryState.choices, default=DeliveryState.PENDING.value
    )
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField()
    status = models.PositiveIntegerField(null=True, blank=True, help_text="HTTP's, of a webhook")
    error = models.CharField(max_length=500, blank=True)
    digest_since = models.DateTimeField(null=True, blank=True)
    digest_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(fields=["next_at"], condition=Q(state="pending"), name="delivery_due"),
            models.Index(fields=["channel", "-id"], name="delivery_of_channel"),
            models.Index(
                fields=["ended_at"],
                condition=Q(state__in=("delivered", "failed")),
                name="delivery_ended",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["channel", "event"], name="delivery_once"),
            models.UniqueConstraint(
                fields=["channel", "digest_until"],
                condition=Q(digest_until__isnull=False),
                name="delivery_digest_once",
            ),
            models.CheckConstraint(
                name="delivery_of_event_or_digest",
                condition=Q(event__isnull=True) | Q(digest_until__isnull=True),
            ),
            models.CheckConstraint(
                name="delivery_state_known", condition=Q(state__in=DeliveryState.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event or 'test'} to {self.channel}"
