"""Measured times, their environments, and modelled times."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from codegen_app.admin import columns
from codegen_app.admin.actions import CancelMixin, ReleaseMixin
from codegen_app.admin.filters import target_filter
from codegen_app.admin.readonly import ReadOnlyAdmin
from codegen_app.kernels.models import ForeignKernel, Modelling
from codegen_app.tuning.models import BenchmarkResult, Environment
from codegen_app.web.templatetags import kiln
from scheduler.stats.intervals import bounds_cell, bounds_of


def _interval(row: Any) -> str:
    n = len(row.samples_ns)
    if not bounds_of(n):
        return "n/a (one sample)"
    return bounds_cell(n, kiln.us(row.low_ns), kiln.us(row.high_ns))


def _band(row: Any) -> str:
    if row.low_us is None or row.high_us is None:
        return ""
    return f"{kiln.microseconds(row.low_us)} \N{EN DASH} {kiln.microseconds(row.high_us)}"


_BAND = columns.computed("Band, µs", _band, "band", number=True)


@admin.register(BenchmarkResult)
class BenchmarkResultAdmin(ReadOnlyAdmin):
    """Measurements."""

    list_display = (
        columns.code("kernel__name", "Kernel", 48),
        columns.nanoseconds("median_ns", "Median, µs"),
        columns.computed("Interval, µs", _interval, "interval", number=True),
        columns.computed("n", lambda row: str(len(row.samples_ns)), "n", number=True),
        columns.pairs("bindings", "Sizes"),
        columns.text("environment__device_name", "Device", 30),
        columns.text("environment__target", "Target"),
        "emulated",
        columns.number("check_ratio", "Error / bound", 2),
        columns.moment("created_at", "Measured"),
    )
    list_filter = ("emulated", target_filter("environment__target"))
    list_select_related = ("kernel", "environment")
    list_defer = ("kernel__source", "kernel__launches", "rejected_samples", "check_detail")
    search_fields = ("kernel__name", "environment__device_name")
    search_help_text = "Kernel or device"
    ordering = ("-pk",)


@admin.register(Environment)
class EnvironmentAdmin(ReadOnlyAdmin):
    """Environments of measurements."""

    list_display = (
        "device_name",
        "device",
        "target",
        columns.text("driver", "Driver", 30),
        columns.text("runtime", "Runtime", 30),
        columns.text("compiler", "Compiler", 30),
        columns.number("compute_units", "Compute units"),
        columns.computed(
            "Memory, GiB", lambda row: kiln.gib(row.memory_bytes), "memory", number=True
        ),
        "emulated",
        columns.moment("first_seen_at", "First seen"),
    )
    list_filter = ("emulated", "target")
    search_fields = ("device_name", "driver")
    ordering = ("-pk",)


@admin.register(Modelling)
class ModellingAdmin(ReleaseMixin, CancelMixin, ReadOnlyAdmin):
    """Modelled times of builds on boards."""

    list_display = (
        columns.code("build__kernel__name", "Kernel", 48),
        "board",
        columns.pairs("sizes", "Sizes"),
        columns.state(),
        columns.microseconds("time_us", "Modelled, µs"),
        _BAND,
        columns.text("sentence", "Summary"),
        columns.text("reason", "Reason"),
    )
    list_filter = ("state", "board")
    list_select_related = ("build__kernel",)
    list_defer = (
        *("build__kernel__source", "build__kernel__launches", "build__log", "build__resources"),
        *("build__detail", "build__diagnostics", "detail"),
    )
    search_fields = ("build__kernel__name",)
    ordering = ("-pk",)
    actions = ("cancel", "release")


@admin.register(ForeignKernel)
class ForeignKernelAdmin(ReleaseMixin, CancelMixin, ReadOnlyAdmin):
    """External kernels that people analysed."""

    is_deletable = True
    list_display = (
        columns.text("name", "File", 48),
        "board",
        columns.state(),
        columns.microseconds("time_us", "Modelled, µs"),
        _BAND,
        columns.text("sentence", "Summary"),
        columns.text("reason", "Reason"),
        columns.text("requested_by", "Requested by", 20),
    )
    list_filter = ("state", "board")
    list_select_related = ("requested_by",)
    list_defer = ("launch", "detail")
    search_fields = ("name", "function")
    ordering = ("-pk",)
    actions = ("cancel", "release")
