"""Comparisons of graphs with torch: they check the reference, which kernels are checked against."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from codegen_app.graphs.models.graph import Graph
from codegen_app.workers.models.work import State, Work


class TorchComparison(Work):
    """The reference's outputs compared with torch's own run of the graph's file, at ``bindings``.

    ``oracle`` is torch with its version (``torch 2.13.0``). ``findings`` has one entry per output
    and written input, ``[{output, passed, max_error, bound, ratio, detail}]``: ``passed`` is null
    if it could not be compared, an error or a ratio is null if it is not finite, and a finding
    without an ``output`` is of the whole graph. A difference is a result: the row is done. It is
    rejected if torch did not run.
    """

    graph = models.OneToOneField(Graph, on_delete=models.CASCADE, related_name="torch_comparison")
    oracle = models.CharField(max_length=60, blank=True)
    bindings = models.JSONField(default=dict)
    findings = models.JSONField(default=list)

    class Meta(Work.Meta):
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state", "-priority", "id"], name="torch_comparison_queue")]
        constraints = [
            *Work.Meta.constraints,
            models.CheckConstraint(
                name="torch_comparison_done_has_oracle",
                condition=~Q(state=State.DONE) | ~Q(oracle=""),
            ),
        ]

    def __str__(self) -> str:
        return f"comparison of graph {self.graph_id} with torch"
