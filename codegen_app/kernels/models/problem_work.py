"""A problem's work at some sizes on any device: bytes to move, operations to do."""

from __future__ import annotations

from django.db import models

from codegen_app.graphs.models.template_node import Problem


class ProblemWork(models.Model):
    """Lower bounds (``scheduler.tuning.work.Work``) at one binding of the symbols that the
    problem uses; ``vector_ops`` alone is an estimate."""

    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="works")
    bindings = models.JSONField(default=dict)
    read_bytes = models.PositiveBigIntegerField()
    written_bytes = models.PositiveBigIntegerField()
    matrix_flops = models.PositiveBigIntegerField()
    matrix_dtype = models.CharField(max_length=8, blank=True)
    vector_ops = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["problem", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["problem", "bindings"], name="problemwork_once"),
        ]

    def __str__(self) -> str:
        return f"{self.problem_id} at {self.bindings}"
