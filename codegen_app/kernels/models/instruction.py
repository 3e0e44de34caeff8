"""Which instructions a build has: counted from its listing, for searching."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from codegen_app.kernels.models.build import Build


class Mnemonic(models.Model):
    """An instruction's name (``v_mfma_f32_32x32x8_f16``): as many rows as instruction sets have."""

    name = models.CharField(max_length=100, unique=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(name="mnemonic_has_name", condition=~Q(name=""))]

    def __str__(self) -> str:
        return self.name


class InstructionUse(models.Model):
    """How often an instruction occurs in a build's listing."""

    mnemonic = models.ForeignKey(Mnemonic, on_delete=models.PROTECT, related_name="uses")
    build = models.ForeignKey(Build, on_delete=models.CASCADE, related_name="instruction_uses")
    count = models.PositiveIntegerField()

    class Meta:
        ordering = ["build", "-count"]
        constraints = [
            models.UniqueConstraint(
                fields=["mnemonic", "build"], name="instructionuse_once_a_build"
            ),
            models.CheckConstraint(name="instructionuse_is_there", condition=Q(count__gt=0)),
        ]

    def __str__(self) -> str:
        return f"{self.count} {self.mnemonic_id} in {self.build_id}"
