"""Measure the candidates of each kernel and write a bundle with the fastest.

The bundle includes the ledger and results that another installation can import."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scheduler import pipeline
from scheduler.build.flags import parse_flags
from scheduler.build.model import Build, Toolchain
from scheduler.build.recipe import listing_of
from scheduler.bundle import writer
from scheduler.bundle.manifest import ChosenBy, TimeSource
from scheduler.codegen import bundle_paths
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import RenderedKernel
from scheduler.commands import options, tune_report, tune_search
from scheduler.commands.compile_ import load_graph
from scheduler.commands.output import print_progress
from scheduler.commands.trust import record_builds
from scheduler.cycles.report import VERSION as MODEL_VERSION
from scheduler.errors import Rejected, UserError
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.fusion.split import split_nodes
from scheduler.ir.bindings import Bindings, hint_bindings
from scheduler.ir.graph import Graph
from scheduler.lowering import coverage
from scheduler.results import file as results_file
from scheduler.results.collect import RunContext, collect_results
from scheduler.results.model import Compiler
from scheduler.results.origin import origin_now
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import Target, find
from scheduler.targets.generations import AMD_BOARD_EXAMPLE, AMD_EXAMPLE
from scheduler.targets.modelled import is_modelled
from scheduler.tuning.buckets import ShapeBucket, parse_buckets, unique_problems
from scheduler.tuning.budget import Budget, Meter, parse_seconds
from scheduler.tuning.fusion_comparison import FusionComparison, compare_fusion, unfuse_all
from scheduler.tuning.ledger import write_jsonl
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY, STRATEGIES
from scheduler.tuning.tuner import TuningResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_model(parser)
    parser.add_argument(
        "--device",
        default="cpu",
        metavar="ID",
        help=f"cpu, rocm:0, cuda:0 …; model:{AMD_EXAMPLE}, model:{AMD_BOARD_EXAMPLE} …:"
        " modelled times, no GPU needed"
        " (default: %(default)s)",
    )
    parser.add_argument(
        "--node", action="append", default=[], metavar="NAME", help="tune this kernel; repeatable"
    )
    parser.add_argument(
        "--budget",
        default="60s",
        metavar="TIME",
        help="time limit: 60s, 5m, 1h (default: %(default)s)",
    )
    parser.add_argument("--compiles", type=int, metavar="N", help="maximum number of compiles")
    parser.add_argument(
        "--measurements", type=int, metavar="N", help="maximum number of measurements"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the bundle"
    )
    parser.add_argument(
        "--known",
        type=Path,
        action="append",
        default=[],
        metavar="LEDGER",
        help="try the winners of this ledger first; repeatable",
    )
    parser.add_argument(
        "--from",
        dest="start",
        type=Path,
        metavar="LEDGER",
        help="ledger of modelled times, or its bundle: measure its fastest candidates first",
    )
    parser.add_argument(
        "--model-limit",
        default="60s",
        metavar="TIME",
        help="time limit for modelling one candidate (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of inputs and search (default: %(default)s)"
    )
    parser.add_argument(
        "--strategy",
        choices=tuple(STRATEGIES),
        default=DEFAULT_STRATEGY,
        help="search strategy: "
        + "; ".join(f"{name}: {row.summary}" for name, row in STRATEGIES.items())
        + " (default: %(default)s)",
    )
    options.add_compilation(parser)
    parser.add_argument(
        "--bucket",
        action="append",
        default=[],
        metavar="SYMBOL=N",
        help="also tune for sizes up to N; the kernel is selected by the actual size; repeatable",
    )
    parser.add_argument(
        "--try-unfused",
        action="store_true",
        help="also tune the parts of fused kernels separately; keep the faster version",
    )
    parser.add_argument(
        "--commit",
        default="",
        metavar="TEXT",
        help="Kiln's commit, for results.json (default: from git)",
    )
    options.add_bindings(parser)
    options.add_precision(parser)
    options.add_cache(parser)


def run(arguments: argparse.Namespace) -> int:
    """Tune and write; return 1 if a kernel of the result does not compile."""
    with options.flag_errors("--budget"):
        seconds = parse_seconds(arguments.budget)
    meter = Meter(Budget(seconds, arguments.compiles, arguments.measurements))
    started = datetime.now(UTC)
    with options.flag_errors("--out"):
        writer.check_replaceable(arguments.out)
    device = tune_search.find_device(arguments.device)
    target = find(device.target)
    start = tune_search.load_warm_start(arguments, device)
    graph = load_graph(arguments)
    plan = pipeline.schedule(pipeline.lower(graph))
    bindings = hint_bindings(graph.symbols)
    with options.flag_errors("--bucket"):
        buckets = parse_buckets(arguments.bucket, graph.symbols, bindings, graph.guards)
    problems, parts = _find_problems(arguments, plan, target, bindings, buckets)
    if start.lines:
        print_progress(start.text(problems))
    result = tune_search.search(
        arguments, plan, problems, device, meter, start, tune_report.progress_printer(arguments)
    )
    toolchain = options.toolchain_for(arguments)(target)
    chosen_by = ChosenBy(
        device.name,
        target.name,
        f"{toolchain.name} {toolchain.version}",
        bindings,
        TimeSource.MODELLED if device.modelled else TimeSource.MEASURED,
    )
    facts = {
        "graph": {"name": graph.name, "digest": graph.digest},
        "accounted": coverage.coverage_summary(plan.lowered),
        "device": asdict(device),
        "times": chosen_by.times,
        **({"model": {"version": MODEL_VERSION}} if device.modelled else {}),
        **({"from": {"source": start.source, "device": start.device}} if start.lines else {}),
        "bindings": bindings,
        "toolchain": {
            "name": toolchain.name,
            "version": toolchain.version,
            "digest": toolchain.path_digest,
        },
        "flags": arguments.flags,
        "seed": arguments.seed,
        "strategy": arguments.strategy,
        "budget": asdict(meter.budget),
    }
    fusions = () if device.modelled else compare_fusion(result, parts)
    log_head = f"{start.text(problems)}\n\n" if start.lines else ""
    failed = _write_bundle(arguments, plan, chosen_by, result, facts, buckets, fusions, log_head)
    if not device.modelled:  # results are what was measured
        _write_results(arguments, result, plan, graph, device, meter, started)
    tune_report.print_report(arguments, result, failed, meter, chosen_by.times)
    return 1 if failed else 0


def _write_results(
    arguments: argparse.Namespace,
    result: TuningResult,
    plan: Schedule,
    graph: Graph,
    device: DeviceInfo,
    meter: Meter,
    started: datetime,
) -> None:
    """Write the results that another installation can import."""
    flags = parse_flags(arguments.flags).values
    toolchain_for = options.toolchain_for(arguments)

    def compiler(toolchain: Toolchain) -> Compiler:
        return Compiler(toolchain.name, toolchain.version, toolchain.path_digest, flags)

    target = find(device.target)
    toolchain = toolchain_for(target)
    # The compilers of candidates in other languages; without one, nothing was built.
    callers = [
        caller for problem_result in result.problems for caller in problem_result.problem.callers
    ]
    other_compilers: dict[str, Compiler] = {}
    for source_file in sorted({caller.kernel.source_file for caller in callers}):
        with suppress(UserError):
            other = toolchain_for(target, source_file)
            if other.name != toolchain.name:
                other_compilers[source_file] = compiler(other)
    context = RunContext(
        origin=origin_now(arguments.commit),
        graph=graph,
        device=device,
        compiler=compiler(toolchain),
        seed=arguments.seed,
        strategy=arguments.strategy,
        budget=meter.budget,
        started=started,
        other_compilers=other_compilers,
    )
    listings = _listings(arguments, result, target)
    results = collect_results(result, context, {node.name for node in plan.nodes}, listings)
    results_file.write(arguments.out / bundle_paths.RESULTS, results)


def _listings(
    arguments: argparse.Namespace, result: TuningResult, target: Target
) -> dict[str, str]:
    """Return the disassembly of each problem's default, selected and second-fastest candidates, by
    the digest of their code. The code cache has their builds."""
    kernels: dict[str, RenderedKernel] = {}
    for problem_result in result.problems:
        measured = [entry for entry in problem_result.entries if entry.median_ns is not None]
        fastest = sorted(measured, key=lambda entry: entry.median_ns or 0.0)[:2]
        defaults = [entry for entry in measured if entry.is_default]
        chosen = [problem_result.chosen] if problem_result.chosen is not None else []
        names = {entry.kernel for entry in (*fastest, *defaults, *chosen)}
        callers = (caller for caller in problem_result.problem.callers if caller.name in names)
        kernels |= {caller.name: caller.kernel for caller in callers}
    built = pipeline.build_kernels(
        [kernels[name] for name in sorted(kernels)],
        (target,),
        options.toolchain_for(arguments),
        options.code_cache(arguments),
        flags=parse_flags(arguments.flags),
        workers=arguments.jobs,
    )
    return {
        build.code_digest: listing_of(build).read_text()
        for build in built.values()
        if isinstance(build, Build)
    }


def _find_problems(
    arguments: argparse.Namespace,
    plan: Schedule,
    target: Target,
    bindings: Bindings,
    buckets: Sequence[ShapeBucket],
) -> tuple[tuple[TuningProblem, ...], dict[str, tuple[str, ...]]]:
    """Return the problems to tune; and with --try-unfused, the parts of each fused kernel."""
    backend = pipeline.scheduling(plan, (target,))
    problems: tuple[TuningProblem, ...] = ()
    with options.flag_errors("--node"):
        for sizes in (bindings, *(dict(bucket.bindings) for bucket in buckets)):
            problems += find_problems(plan, backend, target, sizes, arguments.node)
    problems = unique_problems(problems)
    if not arguments.try_unfused:
        return problems, {}
    if is_modelled(arguments.device):
        raise UserError("--try-unfused: needs measured times; tune on a device")
    tuned = {name for problem in problems for name in problem.nodes}
    unfused, all_parts = unfuse_all(plan)
    parts = {name: names for name, names in all_parts.items() if name in tuned}
    part_nodes = {name for names in parts.values() for name in names}
    if part_nodes:
        backend = pipeline.scheduling(unfused, (target,))
        problems += find_problems(unfused, backend, target, bindings, part_nodes)
    return problems, parts


def _write_bundle(
    arguments: argparse.Namespace,
    schedule: Schedule,
    chosen_by: ChosenBy,
    result: TuningResult,
    facts: dict[str, Any],
    buckets: Sequence[ShapeBucket],
    fusions: Sequence[FusionComparison],
    log_head: str,
) -> dict[str, Rejected]:
    """Write the bundle with the selected kernels, the ledger and the log, which begins with
    ``log_head``; return the kernels that do not compile, without which there is no bundle."""
    faster_unfused = [fusion.node for fusion in fusions if fusion.unfused_is_faster]
    schedule = split_nodes(schedule, faster_unfused) if faster_unfused else schedule
    target, hint_bindings = find(chosen_by.target), chosen_by.bindings
    backend = pipeline.scheduling(schedule, (target,))

    def chooser(bindings: Mapping[str, int]) -> pipeline.Chooser:
        configs = result.configs | result.configs_at(hint_bindings) | result.configs_at(bindings)

        def choose(node: SchedulerNode) -> TemplateCaller | None:
            chosen = configs.get(node.name)
            if chosen is None:
                return None
            return backend.generate(node, chosen.template, chosen.config)

        return choose

    bucket_choosers = [
        (bucket.symbol, bucket.at_most, chooser(bucket.bindings)) for bucket in buckets
    ]
    generated = pipeline.generate(
        schedule, (target,), chooser(hint_bindings), bucket_choosers, chosen_by
    )
    built = pipeline.build_kernels(
        generated.kernels,
        (target,),
        options.toolchain_for(arguments),
        options.code_cache(arguments),
        flags=parse_flags(arguments.flags),
        workers=arguments.jobs,
    )
    failed = {
        kernel: rejected
        for (kernel, _), rejected in built.items()
        if isinstance(rejected, Rejected)
    }
    if failed:
        arguments.out.mkdir(parents=True, exist_ok=True)
    else:
        builds = {key: build for key, build in built.items() if isinstance(build, Build)}
        writer.write(arguments.out, schedule, generated.manifest(), generated.kernels, builds)
        record_builds(builds.values())
    write_jsonl(
        arguments.out / bundle_paths.LEDGER,
        facts | tune_report.run_header(result),
        result.entries,
        [fusion.to_json() for fusion in fusions],
    )
    log = "\n".join(problem.autotune_text() for problem in result.problems)
    (arguments.out / bundle_paths.LOG).write_text(log_head + log)
    return failed
