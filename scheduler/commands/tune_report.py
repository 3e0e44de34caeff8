"""The output of ``tune``: a line for each candidate, the decisions at the end."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from scheduler.bundle.manifest import TimeSource
from scheduler.commands.output import print_json, print_progress, print_table
from scheduler.errors import Rejected
from scheduler.tuning.autotune_log import band_text
from scheduler.tuning.budget import Meter
from scheduler.tuning.ledger import Entry, best_of_backends, legacy_state
from scheduler.tuning.tuner import Event, ProblemResult, TuningResult


def run_header(result: TuningResult) -> dict[str, Any]:
    """Return what a run spent, and why it ended."""
    return {
        "seconds": round(result.seconds, 3),
        "compiles": result.compiles,
        "measurements": result.measurements,
        "ended": result.ended,
        **({"known": result.from_cache} if result.from_cache else {}),
    }


def progress_printer(arguments: argparse.Namespace) -> Callable[[Event], None]:
    """Return a function that prints a line for each candidate; with ``--json``, nothing."""

    def print_event(event: Event) -> None:
        entry = event.entry
        text = f"{entry.median_ns / 1e6:.4f} ms" if entry.median_ns is not None else entry.reason
        if entry.is_modelled and entry.modelled is not None:
            text = ", ".join(filter(None, (band_text(entry.modelled), entry.modelled.obstacle)))
        print_progress(
            f"[{event.seconds:5.1f} s, {event.tried}/{event.total}] {entry.node} {entry.state}:"
            f" {text} ({entry.description})"
        )

    return (lambda _: None) if arguments.json else print_event


def print_report(
    arguments: argparse.Namespace,
    result: TuningResult,
    failed: dict[str, Rejected],
    meter: Meter,
    times: TimeSource,
) -> None:
    """Print the decisions, as a table or as JSON; modelled times are called so in both."""
    for kernel, rejected in failed.items():
        print_progress(f"{kernel}: {rejected.reason}")
    is_modelled = times is TimeSource.MODELLED
    if arguments.json:
        facts = run_header(result) | {"total_seconds": round(meter.seconds, 3)}
        header = {"bundle": None if failed else str(arguments.out), "times": times, **facts}
        problems = [
            _problem_json(problem_result, is_modelled=is_modelled)
            for problem_result in result.problems
        ]
        print_json(header | {"problems": problems})
        return
    ms = "ms, modelled" if is_modelled else "ms"
    columns = ("node", "problem", "calls", "candidates", f"default {ms}", f"selected {ms}")
    rows = []
    for problem_result in result.problems:
        chosen = problem_result.chosen
        states = Counter(str(entry.state) for entry in problem_result.entries)
        rows.append(
            (
                *(
                    problem_result.problem.node.name,
                    problem_result.problem.title,
                    len(problem_result.problem.nodes),
                    _text(states),
                ),
                *(_time_text(entry, is_modelled) for entry in (problem_result.entries[0], chosen)),
                "default" if chosen is None else _text(chosen.config),
                "tied" if chosen is not None and chosen.tied else "",
            )
        )
    print_table((*columns, "configuration", ""), rows)
    for problem_result in result.problems:
        if is_modelled and (reason := _decision_text(problem_result)):
            print_progress(f"{problem_result.problem.node.name}: {reason}")
        backends = best_of_backends(problem_result.entries)
        if len(backends) > 1:
            print_progress(f"{problem_result.problem.node.name}: {', '.join(map(str, backends))}")
    cache_note = f" ({result.from_cache} from earlier runs)" if result.from_cache else ""
    print_progress(
        f"{result.measurements} {times}{cache_note}, {result.compiles} compiled in"
        f" {meter.seconds:.1f} s" + (f"; {result.ended}" if result.ended else "")
    )


def _problem_json(result: ProblemResult, *, is_modelled: bool) -> dict[str, Any]:
    """Return one problem's decision; ``fates`` are the states as the first versions spelled
    them."""
    default, chosen = result.entries[0], result.chosen
    states = Counter(entry.state for entry in result.entries)
    facts = {
        "node": result.problem.node.name,
        "problem": result.problem.title,
        "calls": len(result.problem.nodes),
        "states": {str(state): count for state, count in states.items()},
        "default_ns": default.median_ns,
        "chosen_ns": None if chosen is None else chosen.median_ns,
        "config": None if chosen is None else dict(chosen.config),
        "tied": "tied" if chosen is not None and chosen.tied else "",
        "backends": [asdict(best) for best in best_of_backends(result.entries)],
    }
    if is_modelled:
        for key, entry in (("default_modelled_ns", default), ("chosen_modelled_ns", chosen)):
            modelled = None if entry is None else entry.modelled
            facts[key] = None if modelled is None else asdict(modelled.time_ns)
        facts["reason"] = _decision_text(result)
    facts["fates"] = {legacy_state(state): count for state, count in states.items()}
    return facts


def _time_text(entry: Entry | None, is_modelled: bool) -> str:
    """Return a time in ms, without the unit; "" without a time."""
    if is_modelled:
        modelled = None if entry is None else entry.modelled
        return "" if modelled is None else band_text(modelled).replace(" ms", "")
    median_ns = None if entry is None else entry.median_ns
    return "" if median_ns is None else f"{median_ns / 1e6:.4f}"


def _text(facts: Mapping[str, object]) -> str:
    return " ".join(f"{key}={value}" for key, value in facts.items())


def _decision_text(result: ProblemResult) -> str:
    """Return why a run with modelled times keeps the default; "" if it selected another
    candidate."""
    if result.chosen is not None:
        return result.chosen.reason
    return f"default kept: {result.entries[0].reason or 'no candidate could be compared'}"
