"""Who did what, and from where: every login and every change that a person requested."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    """One action. ``actor`` is null for the system itself, and for anonymous users.

    ``what`` names the row in words; ``actor_name`` stays when the account is deleted. The database
    refuses to change an entry, and to delete a recent one (``migrations/``).
    """

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    actor_name = models.CharField(max_length=150, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)
    user_agent = models.CharField(max_length=200, blank=True)
    action = models.CharField(max_length=40)
    what = models.CharField(max_length=200)
    why = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-at", "-pk"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} {self.what}"
