"""The queue's messages if the database carries them, and the turns of the periodic work."""

from __future__ import annotations

from django.db import models


class Message(models.Model):
    """One message of the default broker; only ``platform/broker/session.py`` writes and reads it.

    ``session`` is the number of the database session that has it; null while it waits.
    """

    queue = models.CharField(max_length=200)
    body = models.TextField()
    session = models.IntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["queue", "id"],
                name="message_waiting",
                condition=models.Q(session__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"message {self.pk} for {self.queue}"


class Round(models.Model):
    """When a periodic job was last begun, by whichever worker."""

    name = models.CharField(max_length=40, unique=True)
    begun_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
