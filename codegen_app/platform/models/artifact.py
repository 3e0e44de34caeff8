"""Files by content: listings, code objects, shared libraries, imported graphs."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone


class Artifact(models.Model):
    """One file in Django's default storage, found by the sha256 of its bytes.

    ``path`` is its name in the storage (compressed if it ends in ``.gz``; digest and size are those
    of the content). The same bytes are stored once, whoever wrote them. ``used_at``: an artifact
    that no row needs is deleted some time after.
    """

    digest = models.CharField(
        max_length=64, unique=True, validators=[RegexValidator(r"^[0-9a-f]{64}$")]
    )
    size_bytes = models.PositiveBigIntegerField()
    path = models.CharField(max_length=200, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(default=timezone.now, help_text="When it was last stored")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="artifact_digest_is_sha256", condition=Q(digest__regex=r"^[0-9a-f]{64}$")
            ),
        ]

    def __str__(self) -> str:
        return self.digest[:12]
