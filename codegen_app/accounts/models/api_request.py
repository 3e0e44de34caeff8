"""Answers to requests that a program may repeat."""

from __future__ import annotations

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from codegen_app.accounts.models.api_token import ApiToken


class ApiRequest(models.Model):
    """A request that was sent with a key, and its answer: the same request again gets the same
    answer and changes nothing (``accounts/idempotency.py``)."""

    token = models.ForeignKey(
        ApiToken, on_delete=models.CASCADE, related_name="requests", db_index=False
    )
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, help_text="Of the address and the body")
    answer = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        verbose_name = "API request"
        constraints = [
            models.UniqueConstraint(fields=["token", "key"], name="apirequest_once_a_key"),
        ]

    def __str__(self) -> str:
        return self.key
