"""What ``tune`` prints: a line for each candidate, the decisions at the end."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from scheduler.bundle.manifest import TimeSource
from scheduler.commands.output import print_json, print_progress, print_table
from scheduler.errors import Rejected
from scheduler.tuning.budget import Meter
from scheduler.tuning.ledger import CandidateState, Entry, best_of_backends, legacy_state
from scheduler.tuning.modelled.log import band_text
from scheduler.tuning.tuner import Event, ProblemResult, TuningResult


def run_facts(result: TuningResult) -> dict[str, Any]:
    """What a run spent, and why it ended."""
    return {
        "seconds": round(result.seconds, 3),
        "compiles": result.compiles,
        "measurements": result.measurements,
        "ended": result.ended,
        **({"known": result.from_cache} if result.from_cache else {}),
    }


def _print_progress(event: Event) -> None:
    entry = event.entry
    what = f"{entry.median_ns / 1e6:.4f} ms" if entry.median_ns is not None else entry.reason
    if entry.is_modelled and entry.modelled is not None:
        obstacle = entry.modelled.obstacle
        what = band_text(entry.modelled) + (f", {obstacle}" if obstacle else "")
    print_progress(
        f"[{event.seconds:5.1f} s, {event.tried}/{event.total}] {entry.node} {entry.state}: {what}"
        f" ({entry.description})"
    )


def progress_printer(arguments: argparse.Namespace) -> Callable[[Event], None]:
    """What prints a line for each candidate; nothing where only JSON is asked for."""
    return (lambda _: None) if arguments.json else _print_progress


def print_report(
    arguments: argparse.Namespace,
    result: TuningResult,
    failed: dict[str, Rejected],
    meter: Meter,
    times: TimeSource,
) -> None:
    """The decisions, as a table or as JSON; modelled times are called so in both."""
    rows = [_row(problem) for problem in result.problems]
    for kernel, rejected in failed.items():
        print_progress(f"{kernel}: {rejected.reason}")
    if arguments.json:
        keys = ("node", "problem", "calls", "states", "default_ns", "chosen_ns", "config", "tied")
        facts = run_facts(result) | {"total_seconds": round(meter.seconds, 3)}
        out = {"bundle": None if failed else str(arguments.out), "times": times, **facts}
        problems = [
            dict(zip(keys, row, strict=True))
            | {"backends": [asdict(best) for best in best_of_backends(problem.entries)]}
            | (_modelled(problem) if times is TimeSource.MODELLED else {})
            for row, problem in zip(rows, result.problems, strict=True)
        ]
        print_json(
            out | {"problems": [one | {"fates": _legacy_states(one["states"])} for one in problems]}
        )
        return
    word, figures = "", [(_ms(row[4]), _ms(row[5])) for row in rows]
    if times is TimeSource.MODELLED:
        word, figures = ", modelled", [_modelled_texts(one) for one in result.problems]
    print_table(
        (
            *("node", "problem", "calls", "candidates", f"default ms{word}", f"selected ms{word}"),
            *("configuration", ""),
        ),
        [
            (*row[:3], _text(row[3]), *figure, _text(row[6]), row[7])
            for row, figure in zip(rows, figures, strict=True)
        ],
    )
    for problem in result.problems:
        if times is TimeSource.MODELLED and (why := _why(problem)):
            print_progress(f"{problem.problem.node.name}: {why}")
        backends = best_of_backends(problem.entries)
        if len(backends) > 1:
            print_progress(f"{problem.problem.node.name}: {', '.join(map(str, backends))}")
    known = f" ({result.from_cache} from earlier runs)" if result.from_cache else ""
    print_progress(
        f"{result.measurements} {times}{known}, {result.compiles} compiled in {meter.seconds:.1f} s"
        + (f"; {result.ended}" if result.ended else "")
    )


def _row(result: ProblemResult) -> tuple[Any, ...]:
    default = result.entries[0].median_ns
    chosen, problem = result.chosen, result.problem
    return (
        problem.node.name,
        problem.title,
        len(problem.nodes),
        dict(Counter(str(entry.state) for entry in result.entries)),
        default,
        None if chosen is None else chosen.median_ns,
        None if chosen is None else dict(chosen.config),
        "tied" if chosen is not None and chosen.tied else "",
    )


def _legacy_states(states: Mapping[str, int]) -> dict[str, int]:
    """The counts under the key and the words of the first versions."""
    return {legacy_state(CandidateState(state)): count for state, count in states.items()}


def _ms(nanoseconds: float | None) -> str:
    return "" if nanoseconds is None else f"{nanoseconds / 1e6:.4f}"


def _text(facts: dict[str, Any] | None) -> str:
    return "default" if facts is None else " ".join(f"{k}={v}" for k, v in facts.items())


def _why(result: ProblemResult) -> str:
    """Why a run of modelled times keeps the default; "" where it chose another."""
    if result.chosen is not None:
        return result.chosen.reason
    default = result.entries[0]
    why = default.reason or "no candidate could be compared"
    return f"default kept: {why}"


def _modelled(result: ProblemResult) -> dict[str, Any]:
    """The bands of the default and of what was chosen, and why."""
    chosen = result.chosen
    return {
        "default_modelled_ns": _band(result.entries[0]),
        "chosen_modelled_ns": None if chosen is None else _band(chosen),
        "reason": _why(result),
    }


def _band(entry: Entry) -> dict[str, float] | None:
    return None if entry.modelled is None else asdict(entry.modelled.time_ns)


def _modelled_texts(result: ProblemResult) -> tuple[str, str]:
    default, chosen = (
        "" if one is None or one.modelled is None else band_text(one.modelled)
        for one in (result.entries[0], result.chosen)
    )
    return default.replace(" ms", ""), chosen.replace(" ms", "")
