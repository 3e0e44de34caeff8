"""Candidates, measured: the fastest of each kernel goes into a bundle, with the whole ledger, and
results that another installation can import."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from scheduler import pipeline
from scheduler.build.flags import parse_flags
from scheduler.build.model import Build, Toolchain
from scheduler.bundle import writer
from scheduler.bundle.manifest import ChosenBy
from scheduler.codegen import layout
from scheduler.codegen.caller import TemplateCaller
from scheduler.commands import options
from scheduler.commands.compile_ import with_hints
from scheduler.commands.output import print_json, print_progress, print_table
from scheduler.commands.trust import remember
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.fusion.split import split
from scheduler.ir.bindings import Bindings, hints
from scheduler.outcome import Rejected, UserError
from scheduler.results import file as results_file
from scheduler.results.collect import Circumstances, collect
from scheduler.results.model import Compiler
from scheduler.results.origin import origin_now
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import open_device
from scheduler.runtime.lock import exclusive
from scheduler.targets import Target, find
from scheduler.tuning.buckets import ShapeBucket, parse_buckets, without_repeats
from scheduler.tuning.budget import Budget, Meter, parse_seconds
from scheduler.tuning.compiling import Compilers
from scheduler.tuning.known import from_ledger
from scheduler.tuning.ledger import CandidateState, best_of_backends, legacy_state, write_jsonl
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.run import SearchOptions, tune
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY, STRATEGIES
from scheduler.tuning.tuner import Event, ProblemResult, TuningResult
from scheduler.tuning.unfused import FusionComparison, compare_fusion, unfuse_all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_model(parser)
    parser.add_argument(
        "--device", default="cpu", metavar="ID", help="cpu, rocm:0, cuda:0 … (%(default)s)"
    )
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
    parser.add_argument(
        "--commit",
        default="",
        metavar="TEXT",
        help="Kiln's commit, for results.json (what git says of this checkout)",
    )
    options.add_bindings(parser)
    options.add_cache(parser)


def run(arguments: argparse.Namespace) -> int:
    """Tune and write; status 1 when a kernel of the result does not compile."""
    with options.named("--budget"):
        seconds = parse_seconds(arguments.budget)
    meter = Meter(Budget(seconds, arguments.compiles, arguments.measurements))
    started = datetime.now(UTC)
    with options.named("--out"):
        writer.check_replaceable(arguments.out)
    device = _device_info(arguments.device)
    target = find(device.target)
    graph = with_hints(pipeline.load(arguments.model), arguments.bind)
    plan = pipeline.schedule(pipeline.lower(graph))
    bindings = hints(graph.symbols)
    with options.named("--bucket"):
        buckets = parse_buckets(arguments.bucket, graph.symbols, bindings)
    problems, parts = _problems(arguments, plan, target, bindings, buckets)
    result = _tune(arguments, plan, problems, device, meter)
    toolchain = options.toolchain_for(arguments)(target)
    chosen_by = ChosenBy(
        device.name, target.name, f"{toolchain.name} {toolchain.version}", bindings
    )
    facts = {
        "graph": {"name": graph.name, "digest": graph.digest},
        "device": asdict(device),
        "bindings": bindings,
        "toolchain": _toolchain_facts(toolchain),
        "flags": arguments.flags,
        "seed": arguments.seed,
        "strategy": arguments.strategy,
        "budget": asdict(meter.budget),
    }
    fusions = compare_fusion(result, parts)
    failed = _write(arguments, plan, chosen_by, result, facts, buckets, fusions)
    circumstances = Circumstances(
        origin=origin_now(arguments.commit),
        graph=graph,
        device=device,
        compiler=_compiler(toolchain, arguments.flags),
        seed=arguments.seed,
        strategy=arguments.strategy,
        budget=meter.budget,
        started=started,
        others=_others(arguments, result, target),
    )
    results = collect(result, circumstances, {node.name for node in plan.nodes})
    results_file.write(arguments.out / layout.RESULTS, results)
    _report(arguments, result, failed, meter)
    return 1 if failed else 0


def _compiler(toolchain: Toolchain, flags: str) -> Compiler:
    given = parse_flags(flags).values
    return Compiler(toolchain.name, toolchain.version, toolchain.path_digest, given)


def _others(
    arguments: argparse.Namespace, result: TuningResult, target: Target
) -> dict[str, Compiler]:
    """The compilers of candidates in other languages than the target's base, by what their sources
    are called; those that are not here made nothing."""
    found = options.toolchain_for(arguments)
    base = found(target)
    compilers: dict[str, Compiler] = {}
    for name in sorted(
        {caller.kernel.source_file for one in result.problems for caller in one.problem.callers}
    ):
        with suppress(UserError):
            if (own := found(target, name)).name != base.name:
                compilers[name] = _compiler(own, arguments.flags)
    return compilers


def _problems(
    arguments: argparse.Namespace,
    plan: Schedule,
    target: Target,
    bindings: Bindings,
    buckets: Sequence[ShapeBucket],
) -> tuple[tuple[TuningProblem, ...], dict[str, tuple[str, ...]]]:
    """What is to be tuned; and with --try-unfused, which parts each fused kernel has."""
    backend = pipeline.scheduling(plan, (target,))
    problems: tuple[TuningProblem, ...] = ()
    with options.named("--node"):
        for sizes in (bindings, *(dict(bucket.bindings) for bucket in buckets)):
            problems += find_problems(plan, backend, target, sizes, arguments.node)
    problems = without_repeats(problems)
    if not arguments.try_unfused:
        return problems, {}
    tuned = {name for problem in problems for name in problem.nodes}
    everything, found = unfuse_all(plan)
    parts = {name: each for name, each in found.items() if name in tuned}
    part_nodes = {name for each in parts.values() for name in each}
    if part_nodes:
        backend = pipeline.scheduling(everything, (target,))
        problems += find_problems(everything, backend, target, bindings, part_nodes)
    return problems, parts


def _tune(
    arguments: argparse.Namespace,
    plan: Schedule,
    problems: tuple[TuningProblem, ...],
    device: DeviceInfo,
    meter: Meter,
) -> TuningResult:
    target = find(device.target)
    search = SearchOptions(
        strategy=arguments.strategy,
        seed=arguments.seed,
        known=[one for path in arguments.known for one in from_ledger(path)],
    )
    pool = Compilers(
        target,
        options.toolchain_for(arguments),
        options.code_cache(arguments),
        arguments.jobs or os.cpu_count() or 1,
        parse_flags(arguments.flags),
    )
    on_event = (lambda _: None) if arguments.json else _print_progress
    lock = exclusive(device.id, Path(gettempdir()) / "kiln-locks")
    with nullcontext() if device.emulated else lock:
        return tune(plan, problems, device, pool, meter, search, on_event)


def _device_info(device_id: str) -> DeviceInfo:
    device = open_device(device_id)
    try:
        return device.info
    finally:
        device.close()


def _write(
    arguments: argparse.Namespace,
    plan: Schedule,
    chosen_by: ChosenBy,
    result: TuningResult,
    facts: dict[str, Any],
    buckets: Sequence[ShapeBucket],
    fusions: Sequence[FusionComparison],
) -> dict[str, Rejected]:
    """The bundle with the chosen kernels, the ledger and the log beside it."""
    slower = [one.node for one in fusions if one.unfused_is_faster]
    plan = split(plan, slower) if slower else plan
    target, usual = find(chosen_by.target), chosen_by.bindings
    backend = pipeline.scheduling(plan, (target,))

    def chooser(bindings: Mapping[str, int]) -> pipeline.Chooser:
        configs = result.configs | result.configs_at(usual) | result.configs_at(bindings)

        def choose(node: SchedulerNode) -> TemplateCaller | None:
            chosen = configs.get(node.name)
            if chosen is None:
                return None
            return backend.generate(node, chosen.template, chosen.config)

        return choose

    smaller = [(one.symbol, one.at_most, chooser(one.bindings)) for one in buckets]
    generated = pipeline.generate(plan, (target,), chooser(usual), smaller, chosen_by)
    built = pipeline.build_kernels(
        generated.kernels,
        (target,),
        options.toolchain_for(arguments),
        options.code_cache(arguments),
        flags=parse_flags(arguments.flags),
        workers=arguments.jobs,
    )
    failed = {kernel: one for (kernel, _), one in built.items() if isinstance(one, Rejected)}
    if failed:
        arguments.out.mkdir(parents=True, exist_ok=True)
    else:
        builds = {key: one for key, one in built.items() if isinstance(one, Build)}
        writer.write(arguments.out, plan, generated.manifest(), generated.kernels, builds)
        remember(builds.values())
    lines = [one.to_json() for one in fusions]
    write_jsonl(arguments.out / layout.LEDGER, facts | _facts(result), result.entries, lines)
    log = "\n".join(problem.autotune_text() for problem in result.problems)
    (arguments.out / layout.LOG).write_text(log)
    return failed


def _toolchain_facts(toolchain: Toolchain) -> dict[str, str]:
    return {"name": toolchain.name, "version": toolchain.version, "digest": toolchain.path_digest}


def _facts(result: TuningResult) -> dict[str, Any]:
    return {
        "seconds": round(result.seconds, 3),
        "compiles": result.compiles,
        "measurements": result.measurements,
        "ended": result.ended,
    }


def _print_progress(event: Event) -> None:
    entry = event.entry
    what = f"{entry.median_ns / 1e6:.4f} ms" if entry.median_ns is not None else entry.reason
    print_progress(
        f"[{event.seconds:5.1f} s, {event.tried}/{event.total}] {entry.node} {entry.state}: {what}"
        f" ({entry.description})"
    )


def _report(
    arguments: argparse.Namespace, result: TuningResult, failed: dict[str, Rejected], meter: Meter
) -> None:
    rows = [_row(problem) for problem in result.problems]
    for kernel, rejected in failed.items():
        print_progress(f"{kernel}: {rejected.reason}")
    if arguments.json:
        keys = ("node", "problem", "calls", "states", "default_ns", "chosen_ns", "config", "tied")
        facts = _facts(result) | {"total_seconds": round(meter.seconds, 3)}
        out = {"bundle": None if failed else str(arguments.out), **facts}
        problems = [
            dict(zip(keys, row, strict=True))
            | {"backends": [asdict(best) for best in best_of_backends(problem.entries)]}
            for row, problem in zip(rows, result.problems, strict=True)
        ]
        print_json(
            out | {"problems": [one | {"fates": _legacy_states(one["states"])} for one in problems]}
        )
        return
    print_table(
        ("node", "problem", "calls", "candidates", "default ms", "chosen ms", "configuration", ""),
        [(*row[:3], _text(row[3]), *map(_ms, row[4:6]), _text(row[6]), row[7]) for row in rows],
    )
    for problem in result.problems:
        backends = best_of_backends(problem.entries)
        if len(backends) > 1:
            print_progress(f"{problem.problem.node.name}: {', '.join(map(str, backends))}")
    print_progress(
        f"{result.measurements} measured, {result.compiles} compiled in {meter.seconds:.1f} s"
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
