"""Candidates, measured: the fastest of each kernel goes into a bundle, with the whole ledger."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from scheduler import pipeline
from scheduler.benchmark.measure import default_plan
from scheduler.build.flags import parse_flags
from scheduler.build.model import Build, Toolchain
from scheduler.bundle import writer
from scheduler.codegen.caller import TemplateCaller
from scheduler.commands import options
from scheduler.commands.compile_ import with_hints
from scheduler.commands.output import print_json, print_table, say
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.fusion.split import split
from scheduler.ir.bindings import Bindings, hints
from scheduler.outcome import Rejected
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import open_device
from scheduler.runtime.lock import exclusive
from scheduler.targets import Target, find
from scheduler.tuning.apart import Verdict, compare, taken_apart
from scheduler.tuning.buckets import ShapeBucket, parse_buckets, without_repeats
from scheduler.tuning.budget import Budget, Meter, parse_seconds
from scheduler.tuning.compiling import Compilers
from scheduler.tuning.contest import Setting
from scheduler.tuning.cost_model import speed_of_light_ns
from scheduler.tuning.judge import BenchJudge
from scheduler.tuning.known import from_ledger
from scheduler.tuning.ledger import Fate, write_jsonl
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY, STRATEGIES
from scheduler.tuning.tuner import Event, ProblemResult, Tuner, TuningResult

LEDGER, LOG = "ledger.jsonl", "autotune.log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    options.add_model(parser)
    parser.add_argument("--device", default="cpu", metavar="ID", help="cpu, rocm:0 (%(default)s)")
    parser.add_argument(
        "--node", action="append", default=[], metavar="NAME", help="only this kernel; repeat"
    )
    parser.add_argument("--budget", default="60s", metavar="TIME", help="(%(default)s)")
    parser.add_argument("--compiles", type=int, metavar="N", help="at most so many")
    parser.add_argument("--measurements", type=int, metavar="N", help="at most so many")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the bundle")
    parser.add_argument(
        "--known", type=Path, action="append", default=[], metavar="LEDGER", help="start from it"
    )
    parser.add_argument("--seed", type=int, default=0, help="of inputs and search (%(default)s)")
    parser.add_argument(
        "--strategy",
        choices=tuple(STRATEGIES),
        default=DEFAULT_STRATEGY,
        help="in which order candidates are tried: "
        + "; ".join(f"{name}: {row.summary}" for name, row in STRATEGIES.items())
        + " (%(default)s)",
    )
    parser.add_argument("--flags", default="-O3", help="compiler flags (%(default)s)")
    parser.add_argument("--jobs", type=int, default=None, help="compilers at a time (all cores)")
    parser.add_argument(
        "--bucket",
        action="append",
        default=[],
        metavar="SYMBOL=N",
        help="tune for sizes up to N as well, and choose by the actual size; repeat",
    )
    parser.add_argument(
        "--try-unfused",
        action="store_true",
        help="tune the operations of fused kernels as well, and keep whichever is faster",
    )
    options.add_bindings(parser)
    options.add_cache(parser)


def run(arguments: argparse.Namespace) -> int:
    """Tune and write; status 1 when a kernel of the result does not compile."""
    meter = Meter(
        Budget(parse_seconds(arguments.budget), arguments.compiles, arguments.measurements)
    )
    writer.check_replaceable(arguments.out)
    device = _device_info(arguments.device)
    target = find(device.target)
    graph = with_hints(pipeline.load(arguments.model), arguments.bind)
    plan = pipeline.schedule(pipeline.lower(graph))
    bindings = hints(graph.symbols)
    buckets = parse_buckets(arguments.bucket, graph.symbols, bindings)
    problems, parts = _problems(arguments, plan, target, bindings, buckets)
    lock = exclusive(device.id, Path(gettempdir()) / "kiln-locks")
    with nullcontext() if device.emulated else lock:
        result = _tune(arguments, plan, problems, device, meter)
    facts = {
        "graph": {"name": graph.name, "digest": graph.digest},
        "device": asdict(device),
        "bindings": bindings,
        "toolchain": _toolchain_facts(options.toolchain_for(arguments)(target)),
        "flags": arguments.flags,
        "seed": arguments.seed,
        "strategy": arguments.strategy,
        "budget": asdict(meter.budget),
    }
    verdicts = compare(result, parts)
    lost = _write(arguments, plan, target, result, facts, (bindings, buckets), verdicts)
    _report(arguments, result, lost, meter)
    return 1 if lost else 0


def _problems(
    arguments: argparse.Namespace,
    plan: Schedule,
    target: Target,
    bindings: Bindings,
    buckets: Sequence[ShapeBucket],
) -> tuple[tuple[TuningProblem, ...], dict[str, tuple[str, ...]]]:
    """What is to be tuned; and with --try-unfused, which parts each fused kernel has."""
    backend = pipeline.scheduling(plan, (target,))
    problems = find_problems(plan, backend, target, bindings, arguments.node)
    for bucket in buckets:
        sizes = dict(bucket.bindings)
        problems += find_problems(plan, backend, target, sizes, arguments.node)
    problems = without_repeats(problems)
    if not arguments.try_unfused:
        return problems, {}
    tuned = {name for problem in problems for name in problem.nodes}
    everything, found = taken_apart(plan)
    parts = {name: each for name, each in found.items() if name in tuned}
    wanted = {name for each in parts.values() for name in each}
    if wanted:
        backend = pipeline.scheduling(everything, (target,))
        problems += find_problems(everything, backend, target, bindings, wanted)
    return problems, parts


def _tune(
    arguments: argparse.Namespace,
    plan: Schedule,
    problems: tuple[TuningProblem, ...],
    device: DeviceInfo,
    meter: Meter,
) -> TuningResult:
    target, board = find(device.target), device.board
    floors = {
        problem.name: speed_of_light_ns(
            problem.node, plan.lowered, dict(problem.bindings), board, cached=True
        )
        for problem in problems
    }
    setting = Setting(
        device=device.id,
        target=target,
        emulated=device.emulated,
        plan=default_plan(device.emulated),
        board=board,
        floors_ns={name: floor for name, floor in floors.items() if floor is not None},
        seed=arguments.seed,
        known=[one for path in arguments.known for one in from_ledger(path)],
        strategy=arguments.strategy,
    )
    pool = Compilers(
        target,
        options.toolchain_for(arguments)(target),
        options.code_cache(arguments),
        arguments.jobs or os.cpu_count() or 1,
        parse_flags(arguments.flags),
    )
    on_event = (lambda _: None) if arguments.json else _say_progress
    with BenchJudge(device.id, target, plan.lowered, seed=arguments.seed, board=board) as judge:
        return Tuner(problems, setting, judge, pool, meter, on_event).run()


def _device_info(device_id: str) -> DeviceInfo:
    device = open_device(device_id)
    try:
        return device.info
    finally:
        device.close()


def _write(
    arguments: argparse.Namespace,
    plan: Schedule,
    target: Target,
    result: TuningResult,
    facts: dict[str, Any],
    sizes: tuple[Bindings, Sequence[ShapeBucket]],
    verdicts: Sequence[Verdict],
) -> dict[str, Rejected]:
    """The bundle with the chosen kernels, the ledger and the log beside it."""
    apart = [verdict.node for verdict in verdicts if verdict.apart]
    plan = split(plan, apart) if apart else plan
    backend = pipeline.scheduling(plan, (target,))

    usual, buckets = sizes

    def chooser(bindings: Mapping[str, int]) -> pipeline.Chooser:
        configs = result.configs | result.configs_at(usual) | result.configs_at(bindings)

        def choose(node: SchedulerNode) -> TemplateCaller | None:
            config = configs.get(node.name)
            return None if config is None else backend.template(node).generate(config)

        return choose

    smaller = [(one.symbol, one.at_most, chooser(one.bindings)) for one in buckets]
    generated = pipeline.generate(plan, (target,), chooser(usual), smaller)
    built = pipeline.build_kernels(
        generated.kernels,
        (target,),
        options.toolchain_for(arguments),
        options.code_cache(arguments),
        flags=parse_flags(arguments.flags),
        workers=arguments.jobs,
    )
    lost = {kernel: one for (kernel, _), one in built.items() if isinstance(one, Rejected)}
    if lost:
        arguments.out.mkdir(parents=True, exist_ok=True)
    else:
        builds = {key: one for key, one in built.items() if isinstance(one, Build)}
        writer.write(arguments.out, plan, generated.manifest(), generated.kernels, builds)
    fusions = [asdict(verdict) for verdict in verdicts]
    write_jsonl(arguments.out / LEDGER, facts | _facts(result), result.entries, fusions)
    log = "\n".join(problem.autotune_text() for problem in result.problems)
    (arguments.out / LOG).write_text(log)
    return lost


def _toolchain_facts(toolchain: Toolchain) -> dict[str, str]:
    return {"name": toolchain.name, "version": toolchain.version, "digest": toolchain.path_digest}


def _facts(result: TuningResult) -> dict[str, Any]:
    return {
        "seconds": round(result.seconds, 3),
        "compiles": result.compiles,
        "measurements": result.measurements,
        "ended": result.ended,
    }


def _say_progress(event: Event) -> None:
    entry = event.entry
    what = f"{entry.median_ns / 1e6:.4f} ms" if entry.median_ns is not None else entry.reason
    say(
        f"[{event.seconds:5.1f} s, {event.tried}/{event.total}] {entry.node} {entry.fate}: {what}"
        f" ({entry.description})"
    )


def _report(
    arguments: argparse.Namespace, result: TuningResult, lost: dict[str, Rejected], meter: Meter
) -> None:
    rows = [_row(problem) for problem in result.problems]
    for kernel, rejected in lost.items():
        say(f"{kernel}: {rejected.reason}")
    if arguments.json:
        keys = ("node", "problem", "calls", "fates", "default_ns", "chosen_ns", "config", "tied")
        facts = _facts(result) | {"total_seconds": round(meter.seconds, 3)}
        out = {"bundle": None if lost else str(arguments.out), **facts}
        print_json(out | {"problems": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    print_table(
        ("node", "problem", "calls", "candidates", "default ms", "chosen ms", "configuration", ""),
        [(*row[:3], _text(row[3]), *map(_ms, row[4:6]), _text(row[6]), row[7]) for row in rows],
    )
    say(
        f"{result.measurements} measured, {result.compiles} compiled in {meter.seconds:.1f} s"
        + (f"; {result.ended}" if result.ended else "")
    )


def _row(result: ProblemResult) -> tuple[Any, ...]:
    default = result.entries[0].median_ns
    chosen = next((e for e in result.entries if e.fate is Fate.CHOSEN), None)
    problem = result.problem
    return (
        problem.node.name,
        problem.title,
        len(problem.nodes),
        dict(Counter(str(entry.fate) for entry in result.entries)),
        default,
        None if chosen is None else chosen.median_ns,
        None if result.config is None else dict(result.config),
        "tied" if chosen is not None and chosen.tied else "",
    )


def _ms(nanoseconds: float | None) -> str:
    return "" if nanoseconds is None else f"{nanoseconds / 1e6:.4f}"


def _text(facts: dict[str, Any] | None) -> str:
    return "default" if facts is None else " ".join(f"{k}={v}" for k, v in facts.items())
