"""Tuning runs and their ledger: what became of every candidate."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from codegen_app.models.benchmark_result import BenchmarkResult
from codegen_app.models.build import Build
from codegen_app.models.generated_kernel import GeneratedKernel
from codegen_app.models.graph import Graph
from codegen_app.models.template_node import Problem, TemplateNode
from codegen_app.models.work import OPEN_STATES, State, Work


class TuningRun(models.Model):
    """The candidates of a graph (or of one node) timed on one kind of device.

    Its progress is that of its candidates, so that it survives any restart. ``bindings`` gives
    each symbolic size its value; ``note`` says where they are smaller than the model's own and
    why. ``cancelled_at`` is set when somebody cancels; queued candidates are dropped at once.
    """

    graph = models.ForeignKey(Graph, on_delete=models.CASCADE, related_name="tuning_runs")
    template_node = models.ForeignKey(
        TemplateNode, null=True, blank=True, on_delete=models.CASCADE, related_name="tuning_runs"
    )
    device = models.CharField(max_length=32, help_text="cpu, rocm:0 …")
    target = models.CharField(max_length=24, help_text="What the candidates are compiled for")
    bindings = models.JSONField(default=dict)
    note = models.TextField(blank=True)
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    cancelled_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        permissions = [("retune", "Can start and cancel tuning runs")]
        constraints = [
            models.CheckConstraint(
                name="tuningrun_state_known", condition=Q(state__in=State.values)
            ),
            models.CheckConstraint(
                name="tuningrun_finished_when_closed",
                condition=Q(state__in=OPEN_STATES, finished_at__isnull=True)
                | (~Q(state__in=OPEN_STATES) & Q(finished_at__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} of {self.graph_id} on {self.device}"

    def get_absolute_url(self) -> str:
        return reverse("tuning_run", args=[self.pk])

    @property
    def is_open(self) -> bool:
        """Whether candidates are still to be measured."""
        return self.state in OPEN_STATES


class Candidate(Work):
    """One line of the ledger: a kernel (or a refused configuration) for a problem in a run.

    A candidate whose configuration a rule refused has no kernel. Its work is the measurement; it
    is taken when its build is done. ``chosen`` marks the winner of its problem in this run.
    ``template_node`` is the first node of the graph with that problem.
    """

    run = models.ForeignKey(TuningRun, on_delete=models.CASCADE, related_name="candidates")
    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="candidates")
    template_node = models.ForeignKey(
        TemplateNode, on_delete=models.CASCADE, related_name="candidates"
    )
    kernel = models.ForeignKey(
        GeneratedKernel,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="candidates",
    )
    build = models.ForeignKey(
        Build, null=True, blank=True, on_delete=models.PROTECT, related_name="candidates"
    )
    result = models.OneToOneField(
        BenchmarkResult, null=True, blank=True, on_delete=models.PROTECT, related_name="candidate"
    )
    config = models.JSONField(default=dict)
    chosen = models.BooleanField(default=False)

    class Meta(Work.Meta):
        ordering = ["run", "pk"]
        indexes = [models.Index(fields=["state", "-priority", "id"], name="candidate_queue")]
        constraints = [
            *Work.Meta.constraints,
            models.UniqueConstraint(
                fields=["run", "problem", "kernel"], name="candidate_kernel_once_a_problem"
            ),
            models.UniqueConstraint(
                fields=["run", "problem"],
                condition=Q(chosen=True),
                name="candidate_one_chosen_a_problem",
            ),
            models.CheckConstraint(
                name="candidate_done_has_result",
                condition=Q(state=State.DONE, result__isnull=False)
                | (~Q(state=State.DONE) & Q(result__isnull=True)),
            ),
            models.CheckConstraint(
                name="candidate_without_kernel_is_refused",
                condition=Q(kernel__isnull=False, build__isnull=False)
                | Q(kernel__isnull=True, state=State.REJECTED),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kernel_id or 'refused'} in run {self.run_id}"
