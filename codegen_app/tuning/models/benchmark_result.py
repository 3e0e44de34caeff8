"""Measurements and their environments, with every sample."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from codegen_app.graphs.models.template_node import Problem
from codegen_app.kernels.models.build import Build
from codegen_app.kernels.models.generated_kernel import GeneratedKernel
from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.metrics import TIME, Metric

#: The suffix of a device's name for imported results, which have their own buckets.
IMPORTED = " (imported)"

#: The ``select_related`` path that ``BenchmarkResult.origin`` needs.
WITH_ORIGIN = "task__run__imported"


class Environment(models.Model):
    """Device, driver, runtime, compiler: hashed, so that equal environments are one row."""

    digest = models.CharField(max_length=64, unique=True)
    device = models.CharField(max_length=32, help_text="cpu, rocm:0 …")
    device_name = models.CharField(max_length=200)
    target = models.CharField(max_length=24)
    driver = models.CharField(max_length=200, blank=True)
    runtime = models.CharField(max_length=200, blank=True)
    compiler = models.CharField(max_length=200)
    compute_units = models.PositiveIntegerField()
    memory_bytes = models.PositiveBigIntegerField()
    emulated = models.BooleanField()
    attributes = models.JSONField(default=dict)
    first_seen_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.device_name} ({self.target})"


class BenchmarkResult(models.Model):
    """One kernel at one binding of the symbolic sizes; times in nanoseconds per launch.

    A task has one result per kernel: the final rounds' result replaces the first one.
    ``samples_ns`` are all accepted samples (``batch`` launches timed together each),
    ``rejected_samples`` ``[[ns, reason]]`` the others. ``low_ns`` and ``high_ns`` bound the median
    (bootstrap interval). ``metrics`` are all others, ``{name: {value, low, high, unit, n}}``;
    ``readings`` the device's telemetry, ``{name: [one value per sample]}``. The check is the
    correctness gate's: the largest error over its bound; a failed check gives no result and is not
    stored here. ``emulated`` times are those of the CPU emulation and say nothing about a GPU.
    """

    kernel = models.ForeignKey(GeneratedKernel, on_delete=models.PROTECT, related_name="results")
    build = models.ForeignKey(Build, on_delete=models.PROTECT, related_name="results")
    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="results")
    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="results")
    task = models.ForeignKey(
        "codegen_app.TuningTask",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="results",
    )
    bindings = models.JSONField(default=dict)
    samples_ns = ArrayField(models.FloatField())
    batch = models.PositiveIntegerField()
    median_ns = models.FloatField()
    low_ns = models.FloatField()
    high_ns = models.FloatField()
    metrics = models.JSONField(default=dict)
    readings = models.JSONField(default=dict)
    rejected_samples = models.JSONField(default=list)
    check_max_error = models.FloatField()
    check_bound = models.FloatField()
    check_ratio = models.FloatField()
    check_detail = models.TextField(blank=True)
    emulated = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [models.Index(fields=["problem", "median_ns"], name="result_by_problem")]
        constraints = [
            models.UniqueConstraint(fields=["task", "kernel"], name="benchmarkresult_once_a_task"),
            models.CheckConstraint(
                name="benchmarkresult_interval_holds_median",
                condition=Q(low_ns__lte=F("median_ns")) & Q(high_ns__gte=F("median_ns")),
            ),
            models.CheckConstraint(
                name="benchmarkresult_times_are_positive",
                condition=Q(low_ns__gt=0) & Q(batch__gte=1) & Q(samples_ns__len__gte=1),
            ),
            models.CheckConstraint(
                name="benchmarkresult_check_passed", condition=Q(check_ratio__lte=1)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kernel_id}: {self.median_ns:.0f} ns"

    @property
    def origin(self) -> str:
        """Return an imported result's device, driver, date and commit; else "". For many rows, load
        them with ``WITH_ORIGIN``."""
        return str(getattr(self.task.run, "imported", "")) if self.task else ""

    @staticmethod
    def fields_of(measured: Measurement) -> dict[str, Any]:
        """Return the columns that hold a measurement."""
        return {
            "bindings": dict(measured.bindings),
            "samples_ns": list(measured.samples_ns),
            "batch": measured.batch,
            "median_ns": measured.median_ns,
            "low_ns": measured.low_ns,
            "high_ns": measured.high_ns,
            "metrics": {
                name: asdict(metric) for name, metric in measured.metrics.items() if name != TIME
            },
            "readings": {name: list(values) for name, values in measured.readings.items()},
            "rejected_samples": [list(sample) for sample in measured.rejected],
            "check_max_error": measured.check.max_error,
            "check_bound": measured.check.bound,
            "check_ratio": measured.check.ratio,
            "check_detail": measured.check.detail,
            "emulated": measured.emulated,
        }

    @property
    def all_metrics(self) -> dict[str, Metric]:
        """Every metric by name, the time first."""
        time = Metric(self.median_ns, self.low_ns, self.high_ns, "ns", len(self.samples_ns))
        return {TIME: time} | {name: Metric(**each) for name, each in self.metrics.items()}

    def measurement(self, kernel: str, device: str) -> Measurement:
        """Return the measurement as the engine represents it, for that kernel and device."""
        return Measurement(
            kernel=kernel,
            device=device,
            bindings=self.bindings,
            samples_ns=tuple(self.samples_ns),
            batch=self.batch,
            metrics=self.all_metrics,
            rejected=tuple((ns, reason) for ns, reason in self.rejected_samples),
            check=Check(
                passed=True,
                max_error=self.check_max_error,
                bound=self.check_bound,
                ratio=self.check_ratio,
                guard_intact=True,
                detail=self.check_detail,
            ),
            emulated=self.emulated,
            readings={name: tuple(values) for name, values in self.readings.items()},
        )
