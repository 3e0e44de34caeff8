"""Tuning runs and their ledger: the result of every candidate."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from codegen_app.graphs.models.graph import Graph
from codegen_app.graphs.models.template_node import Problem, TemplateNode
from codegen_app.kernels.models.build import Build
from codegen_app.kernels.models.generated_kernel import GeneratedKernel
from codegen_app.tuning.models.benchmark_result import BenchmarkResult
from codegen_app.workers.models.work import OPEN_STATES, State, Work
from scheduler.targets.modelled import is_modelled
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY


class TuningRun(models.Model):
    """The candidates of a graph (or of one node) timed on one kind of device.

    Its progress is that of its tasks and their candidates, so that it survives any restart. A
    worker creates them once the graph is prepared (``planned_at``). ``bindings`` gives each
    symbolic size its value; ``note`` says where they are smaller than the model's own and why.
    ``cancelled_at`` is set when somebody cancels; queued candidates are dropped at once.

    A run with a budget (``budget_s`` seconds of work on its tasks, compiles, measurements: null is
    no limit) searches all that the generator has, in the order of its ``strategy`` (a name of the
    engine's registry); one without tries a sample of the same (``tuning/services/sampling.py``).
    ``why`` is the reason that a person or a schedule gave. On a device ``model:…`` nothing is
    measured: candidates get modelled times, which select nothing and are in no history.
    """

    graph = models.ForeignKey(Graph, on_delete=models.CASCADE, related_name="tuning_runs")
    template_node = models.ForeignKey(
        TemplateNode, null=True, blank=True, on_delete=models.CASCADE, related_name="tuning_runs"
    )
    device = models.CharField(max_length=32, help_text="cpu, rocm:0, model:MI300X …")
    target = models.CharField(max_length=24, help_text="What the candidates are compiled for")
    bindings = models.JSONField(default=dict)
    note = models.TextField(blank=True)
    kinds = models.JSONField(default=list, help_text="Of nodes; none stands for all")
    candidate_limit = models.PositiveIntegerField(
        null=True, blank=True, help_text="At most so many candidates a problem, the default first"
    )
    budget_s = models.FloatField(null=True, blank=True)
    max_compiles = models.PositiveIntegerField(null=True, blank=True)
    max_measurements = models.PositiveIntegerField(null=True, blank=True)
    strategy = models.CharField(
        max_length=24, default=DEFAULT_STRATEGY, help_text="In which order a search tries"
    )
    priority = models.SmallIntegerField(default=0, help_text="Higher is taken first.")
    why = models.CharField(max_length=500, blank=True)
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    reason = models.CharField(
        max_length=500, blank=True, help_text="What was not measured and why, once it is over"
    )
    cancelled_at = models.DateTimeField(null=True, blank=True)
    planned_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when its tasks and their candidates are all there"
    )
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
            models.CheckConstraint(
                name="tuningrun_budget_is_positive",
                condition=(Q(budget_s__isnull=True) | Q(budget_s__gt=0))
                & (Q(max_compiles__isnull=True) | Q(max_compiles__gt=0))
                & (Q(max_measurements__isnull=True) | Q(max_measurements__gt=0)),
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} of graph {self.graph_id} on {self.device}"

    def get_absolute_url(self) -> str:
        return reverse("tuning_run", args=[self.pk])

    @property
    def is_open(self) -> bool:
        """Return whether candidates are still to be measured."""
        return self.state in OPEN_STATES

    @property
    def has_budget(self) -> bool:
        """Return whether candidates are searched for, within limits."""
        limits = (self.budget_s, self.max_compiles, self.max_measurements)
        return any(limit is not None for limit in limits)

    @property
    def is_modelled(self) -> bool:
        """Return whether its times are modelled, and nothing is measured."""
        return is_modelled(self.device)


class TuningTask(Work):
    """One problem of a run: its candidates are checked and timed together, interleaved.

    The unit that a measuring worker claims, once every build of its candidates is over. Its
    candidates are as many of the generator's for the run's target as the run may try.
    ``template_node`` is the first node of the graph with that problem. ``title`` and ``operands``
    (``[{dtype, size, stride}]``) are the call as the autotune log shows it, known once it is
    measured, ``shape`` (``{template, dtypes, extents}``) says which problems are near it;
    ``spent_s`` is how long a worker had it on a device, interrupted attempts included; for remote
    workers without the time in which they waited for builds. ``begins_with`` is the task whose
    modelled times decide what is measured first.
    """

    run = models.ForeignKey(TuningRun, on_delete=models.CASCADE, related_name="tasks")
    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="tasks")
    template_node = models.ForeignKey(TemplateNode, on_delete=models.CASCADE, related_name="tasks")
    title = models.CharField(max_length=300, blank=True)
    operands = models.JSONField(default=list)
    shape = models.JSONField(default=dict)
    spent_s = models.FloatField(default=0)
    begins_with = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta(Work.Meta):
        ordering = ["run", "pk"]
        indexes = [models.Index(fields=["state", "-priority", "id"], name="tuningtask_queue")]
        constraints = [
            *Work.Meta.constraints,
            models.UniqueConstraint(fields=["run", "problem"], name="tuningtask_problem_once"),
        ]

    def __str__(self) -> str:
        return f"{self.problem_id} in run {self.run_id}"


class Candidate(models.Model):
    """One line of the ledger: a kernel (or a rejected configuration) for a problem in a run.

    A candidate whose configuration a legality rule rejected, or that the budget left untried
    (``cancelled``), has no kernel. ``state`` is running while its task is measured; ``stage``,
    ``reason`` and ``detail`` say why it was rejected; the chosen one's ``reason`` says what decided
    and whether it is selected. ``chosen`` marks the winner of its problem in this run, ``tied`` all
    that are not slower than the fastest by the test: both are the tuner's decision. ``modelled`` is
    its modelled time (``scheduler/tuning/modelled_time.py``): in a run of modelled times in place
    of a result, in a measured one the source of its order.
    """

    task = models.ForeignKey(TuningTask, on_delete=models.CASCADE, related_name="candidates")
    position = models.PositiveIntegerField(help_text="The default first, then as offered")
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
    modelled = models.JSONField(null=True, blank=True)
    config = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    stage = models.CharField(max_length=16, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    detail = models.TextField(blank=True)
    chosen = models.BooleanField(default=False)
    tied = models.BooleanField(
        default=False, help_text="Within the noise of the fastest, as others are"
    )
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["task", "position"]
        constraints = [
            models.UniqueConstraint(fields=["task", "position"], name="candidate_position_once"),
            models.UniqueConstraint(fields=["task", "kernel"], name="candidate_kernel_once"),
            models.UniqueConstraint(
                fields=["task"], condition=Q(chosen=True), name="candidate_one_chosen"
            ),
            models.CheckConstraint(
                name="candidate_state_known", condition=Q(state__in=State.values)
            ),
            models.CheckConstraint(
                name="candidate_loss_has_reason",
                condition=~Q(state__in=[State.REJECTED, State.QUARANTINED]) | ~Q(reason=""),
            ),
            models.CheckConstraint(
                name="candidate_done_has_result",
                condition=Q(state=State.DONE, result__isnull=False)
                | Q(state=State.DONE, modelled__isnull=False)
                | (~Q(state=State.DONE) & Q(result__isnull=True)),
            ),
            models.CheckConstraint(
                name="candidate_without_build_is_over",
                condition=Q(kernel__isnull=False, build__isnull=False)
                | Q(build__isnull=True, state__in=[State.REJECTED, State.CANCELLED]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kernel_id or 'no kernel'} of task {self.task_id}"
