"""The identity of a person at the provider for signing in."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Identity(models.Model):
    """An account's identity at a provider: its issuer and subject, which it gives to nobody else.
    Names and e-mail addresses are not part of it: they change hands."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities"
    )
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "identities"
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="identity_is_of_one_account")
        ]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"
