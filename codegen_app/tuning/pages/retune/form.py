"""Request tuning runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.forms.boundfield import BoundWidget

from codegen_app.tuning.pages.retune.query import TargetChoice
from codegen_app.tuning.services.retuning import Subject, TuningRequest, subjects
from codegen_app.tuning.services.run_requests import MAX_PRIORITY
from codegen_app.web.forms.fields import RepeatedField, SizesField, TargetsField, TimeField
from scheduler.ir.bindings import format_bindings
from scheduler.runtime.devices import modelled_devices
from scheduler.targets.modelled import DEVICE_PREFIX
from scheduler.tuning.budget import Budget
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY, STRATEGIES

_MAX_COUNT = 10**6


class SubjectForm(forms.Form):
    """The subjects of tuning: rows that a page, or the admin, refers to."""

    graph = RepeatedField(keys=True)
    node = RepeatedField(keys=True)
    kernel = RepeatedField()
    selection = RepeatedField(keys=True)
    run = RepeatedField(keys=True)

    def subjects(self) -> tuple[Subject, ...]:
        """Return what these rows refer to; invalid keys are ignored."""
        return subjects(**{f"{name}s": keys for name, keys in self.cleaned_data.items()})


def _limit_field(label: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        required=False,
        min_value=1,
        max_value=_MAX_COUNT,
        widget=forms.NumberInput(attrs={"placeholder": "no limit"}),
        error_messages={"invalid": "Enter a whole number, or leave it empty for no limit."},
    )


class RetuneForm(forms.Form):
    """The targets, the budget, the strategy, and the reason."""

    target = TargetsField(
        label="Targets",
        none_chosen="Choose at least one target.",
        others=[device.id for device in modelled_devices()],
    )
    budget = TimeField(
        label="Time per run",
        required=False,
        initial="60s",
        widget=forms.TextInput(attrs={"placeholder": "60s, 5m, 1h"}),
    )
    compiles = _limit_field("Maximum compiles")
    measurements = _limit_field("Maximum measurements")
    priority = forms.IntegerField(
        label=f"Priority, -{MAX_PRIORITY} to {MAX_PRIORITY}",
        required=False,
        min_value=-MAX_PRIORITY,
        max_value=MAX_PRIORITY,
        initial=0,
        error_messages={"invalid": "Enter a whole number."},
    )
    strategy = forms.ChoiceField(
        label="Search strategy",
        required=False,
        choices=lambda: [(name, f"{name}: {row.summary}") for name, row in STRATEGIES.items()],
        initial=DEFAULT_STRATEGY,
        error_messages={"invalid_choice": "Unknown search strategy: %(value)s."},
    )
    sizes = SizesField(
        required=False,
        widget=forms.TextInput(
            attrs={
                "placeholder": "s0=16; empty: the model\N{RIGHT SINGLE QUOTATION MARK}s defaults"
            }
        ),
    )
    why = forms.CharField(
        label="Reason",
        max_length=500,
        widget=forms.TextInput(attrs={"placeholder": "recorded in the audit log"}),
        error_messages={"required": "Enter a reason for the audit log."},
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        subjects: Sequence[Subject],
        initial_targets: Sequence[str] = (),
    ) -> None:
        """Without ``initial_targets``, that of the graph's latest run is chosen at first: of a
        measured one, if there is any."""
        target, sizes, latest = "cpu", {}, None
        if subjects:
            runs = subjects[0].graph.tuning_runs.filter(imported=None).order_by("-pk")
            measured = runs.exclude(device__startswith=DEVICE_PREFIX)
            latest = measured.first() or runs.first()
        if latest is not None:
            target = latest.device if latest.is_modelled else latest.target
            sizes = latest.bindings
        initial = {"target": list(initial_targets) or [target], "sizes": format_bindings(sizes)}
        super().__init__(data, initial=initial)
        if len({subject.graph.pk for subject in subjects}) > 1:
            del self.fields["sizes"]  # each graph keeps those of its latest run

    def boxes(self, targets: Iterable[TargetChoice]) -> list[tuple[BoundWidget, TargetChoice]]:
        """Return the checkbox of each target."""
        return list(zip(self["target"].subwidgets, targets, strict=True))

    @property
    def target_names(self) -> list[str]:
        """The targets that can be chosen."""
        return [str(box.data["value"]) for box in self["target"].subwidgets]

    def limits(self) -> list[forms.BoundField]:
        """Return the fields of the run's budget and schedule."""
        return [self[name] for name in ("budget", "compiles", "measurements", "priority")]

    def request(self) -> TuningRequest:
        """Return the valid request. Sizes that were not given default to those of the graph's
        latest run."""
        cleaned = self.cleaned_data
        return TuningRequest(
            targets=cleaned["target"],
            budget=Budget(cleaned["budget"], cleaned["compiles"], cleaned["measurements"]),
            why=cleaned["why"],
            priority=cleaned["priority"] or 0,
            strategy=cleaned["strategy"] or DEFAULT_STRATEGY,
            bindings=cleaned["sizes"] if "sizes" in self.data and "sizes" in cleaned else None,
        )
