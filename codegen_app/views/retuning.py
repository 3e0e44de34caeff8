"""The page that confirms what is to be tuned: on which targets, within which budget, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from codegen_app.selectors.measured import measured_targets
from codegen_app.services import retuning
from codegen_app.services.retuning import Pointed, Subject, Wish
from codegen_app.views.permissions import may_retune
from scheduler import targets
from scheduler.outcome import UserError
from scheduler.tuning.budget import Budget, parse_seconds

_BUDGET = "60s"


@dataclass(frozen=True)
class TargetChoice:
    """A target to tick; whether a live worker measures on it."""

    name: str
    here: bool
    chosen: bool


@login_required
@may_retune
@require_http_methods(["GET", "POST"])
def retune(request: HttpRequest) -> HttpResponse:
    """What is pointed at (``?graph= node= kernel= selection= run=``, each repeatable), to confirm.

    By POST with ``why`` it begins.
    """
    given = request.POST if request.method == "POST" else request.GET
    keys = ("graph", "node", "kernel", "selection", "run")
    pointed = Pointed(*(given.getlist(key) for key in keys))
    subjects: tuple[Subject, ...] = ()
    try:
        subjects = retuning.subjects(pointed)
        if "why" in request.POST:
            runs = retuning.start(subjects, _wish(request), cast(AbstractBaseUser, request.user))
            count = (
                f"{len(runs)} runs were asked for." if len(runs) > 1 else "The run is asked for."
            )
            messages.success(request, count)
            return redirect(runs[0]) if len(runs) == 1 else redirect("tuning_runs")
    except UserError as error:
        return _page(request, pointed, subjects, str(error))
    return _page(request, pointed, subjects, "")


def _page(
    request: HttpRequest, pointed: Pointed, subjects: tuple[Subject, ...], error: str
) -> HttpResponse:
    given = request.POST
    live = measured_targets()
    latest = subjects[0].graph.tuning_runs.order_by("-pk").first() if subjects else None
    chosen = given.getlist("target") or [latest.target if latest else "cpu"]
    sizes = latest.bindings if latest else {}
    return render(
        request,
        "pages/retune.html",
        {
            "title": "Tune",
            "pointed": pointed,
            "subjects": subjects,
            "most": retuning.MOST_RUNS,
            "targets": [
                TargetChoice(name, name in live, name in chosen) for name in targets.names()
            ],
            "budget": given.get("budget", _BUDGET),
            "compiles": given.get("compiles", ""),
            "measurements": given.get("measurements", ""),
            "priority": given.get("priority", "0"),
            "sizes": given.get("sizes", " ".join(f"{k}={v}" for k, v in sizes.items())),
            "one_graph": len({subject.graph.pk for subject in subjects}) == 1,
            "why": given.get("why", ""),
            "error": error,
        },
    )


def _wish(request: HttpRequest) -> Wish:
    given = request.POST
    budget = given.get("budget", "").strip()
    return Wish(
        targets=given.getlist("target"),
        budget=Budget(
            seconds=parse_seconds(budget) if budget else None,
            compiles=_number(given.get("compiles", ""), "compiles"),
            measurements=_number(given.get("measurements", ""), "measurements"),
        ),
        why=given.get("why", ""),
        priority=_number(given.get("priority", ""), "priority") or 0,
        bindings=sizes_of(given["sizes"]) if "sizes" in given else None,
    )


def sizes_of(text: str) -> dict[str, int]:
    """``s0=16 s1=32`` as sizes. Raises ``UserError``."""
    sizes = {}
    for part in text.replace(",", " ").split():
        name, separator, value = part.partition("=")
        if not separator or not value.isdecimal() or len(value) > 9:
            raise UserError(f"sizes: {part!r}: write SYMBOL=SIZE, for example s0=16")
        sizes[name] = int(value)
    return sizes


def _number(text: str, name: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not text.removeprefix("-").isdecimal() or len(text) > 7:
        raise UserError(f"{name}: {text!r} is no whole number")
    return int(text)
