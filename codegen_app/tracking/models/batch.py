"""Data sent in one request, and the response: each key is accepted once."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from codegen_app.accounts.models.api_token import ApiToken


class Batch(models.Model):
    """Points that were sent with a token under one idempotency key.

    ``body_digest`` covers the URL's parameters and the whole body: the same request gets ``answer``
    again, any other is refused.
    """

    id = models.AutoField(primary_key=True)  # four bytes in each point
    token = models.ForeignKey(
        ApiToken, null=True, blank=True, on_delete=models.SET_NULL, related_name="batches"
    )
    key = models.CharField(max_length=200)
    body_digest = models.CharField(max_length=64)
    answer = models.JSONField(default=dict)
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-received_at", "-pk"]
        verbose_name_plural = "batches"
        constraints = [
            models.UniqueConstraint(fields=["token", "key"], name="batch_key_once_a_token"),
            models.CheckConstraint(name="batch_has_key", condition=~Q(key="")),
        ]

    def __str__(self) -> str:
        return self.key
