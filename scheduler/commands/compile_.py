"""Compile every kernel of a model and write a bundle; needs no device."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scheduler import pipeline
from scheduler.benchmark.timing import Stopwatch
from scheduler.build.flags import parse_flags
from scheduler.build.model import Build
from scheduler.build.parallel import BuildProgress
from scheduler.bundle import writer
from scheduler.commands import options
from scheduler.commands.output import print_json, print_progress, print_table
from scheduler.commands.trust import record_builds
from scheduler.errors import Rejected
from scheduler.ir.bindings import check_bindings, hint_bindings, parse_bindings
from scheduler.ir.graph import Graph, MatmulPrecision
from scheduler.isa.occupancy import rules_of
from scheduler.lowering import coverage
from scheduler.targets import Target, find


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_model(parser)
    options.add_targets(parser)
    options.add_bindings(parser)
    options.add_precision(parser)
    parser.add_argument(
        "--language",
        choices=("hip", "any"),
        default="hip",
        help="language of kernels for NVIDIA GPUs: any selects, for each kernel, the language that"
        " was faster in measurements of other kernels; CuteDSL kernels need nvidia-cutlass-dsl to"
        " build and to run (default: %(default)s)",
    )
    options.add_cache(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the bundle"
    )
    options.add_compilation(parser)
    parser.add_argument("--no-fuse", action="store_true", help="generate one kernel per operation")


def run(arguments: argparse.Namespace) -> int:
    """Compile and write; return 1 if a kernel does not compile."""
    watch = Stopwatch()
    targets = options.parse_targets(arguments.target)
    flags = parse_flags(arguments.flags)
    with options.flag_errors("--out"):
        writer.check_replaceable(arguments.out)
    graph = load_graph(arguments)
    plan = pipeline.schedule(pipeline.lower(graph), fuse=not arguments.no_fuse)
    generated = pipeline.generate(plan, targets, any_language=arguments.language == "any")
    rendered_s = watch.seconds()
    results = pipeline.build_kernels(
        generated.kernels,
        targets,
        options.toolchain_for(arguments),
        options.code_cache(arguments),
        flags=flags,
        workers=arguments.jobs,
        on_progress=None if arguments.json else _print_progress,
    )
    builds = {key: result for key, result in results.items() if isinstance(result, Build)}
    failed = {key: result for key, result in results.items() if isinstance(result, Rejected)}
    if not failed:
        writer.write(arguments.out, plan, generated.manifest(), generated.kernels, builds)
        record_builds(builds.values())
    compiled = [build for build in builds.values() if not build.cached]
    facts = {
        "bundle": None if failed else str(arguments.out),
        "kernels": len(generated.kernels),
        "calls": len(generated.calls),
        "targets": [target.name for target in targets],
        "builds": {
            "compiled": len(compiled),
            "cached": len(builds) - len(compiled),
            "failed": len(failed),
        },
        "accounted": coverage.coverage_summary(plan.lowered),
        "externs": [
            {"node": extern.node, "op": extern.op, "reason": extern.reason}
            for extern in generated.externs
        ],
        "failures": [
            {"kernel": kernel, "target": target, "reason": rejected.reason, "log": rejected.detail}
            for (kernel, target), rejected in failed.items()
        ],
        "seconds": {
            "render": round(rendered_s, 3),
            "total": round(watch.seconds(), 3),
            "compiler": round(sum(build.duration_s for build in compiled), 3),
        },
    }
    if arguments.json:
        print_json(facts)
    else:
        _print_report(facts, builds, targets)
    return 1 if failed else 0


def load_graph(arguments: argparse.Namespace) -> Graph:
    """Return the model's graph with its sizes (``--bind``) and the precision of its products."""
    graph = with_hints(options.load_model(arguments), arguments.bind)
    return pipeline.with_precision(graph, MatmulPrecision(arguments.float32_matmul_precision))


def with_hints(graph: Graph, texts: list[str]) -> Graph:
    """Return the graph with the sizes of ``--bind`` as its symbols' hints."""
    with options.flag_errors("--bind"):
        sizes = parse_bindings(texts, graph.symbols)
        if sizes:
            check_bindings(hint_bindings(graph.symbols, sizes), graph.symbols, graph.guards)
    return pipeline.with_hints(graph, sizes)


def _print_progress(progress: BuildProgress) -> None:
    if isinstance(progress.result, Rejected):
        print_progress(f"[{progress.done}/{progress.total}] {progress.result.reason}")
    elif progress.done % 10 == 0 or progress.done == progress.total:
        print_progress(f"[{progress.done}/{progress.total}] built")


def _print_report(
    facts: dict[str, Any], builds: Mapping[tuple[str, str], Build], targets: Sequence[Target]
) -> None:
    """Print what each device function needs, a table per set of occupancy rules, then a summary."""
    for rules in dict.fromkeys(rules_of(target) for target in targets):
        rows = [
            (kernel, target, *(resources[figure] for figure in rules.headings.values()))
            for (kernel, target), build in sorted(builds.items())
            for resources in build.resources.values()
            if rules is not None and rules_of(find(target)) is rules
        ]
        if rules is not None and rows:
            print_table(("kernel", "target", *rules.headings), rows)
    print_progress(facts["accounted"])
    for extern in facts["externs"]:
        print_progress(f"no kernel for {extern['node']} ({extern['op']}): {extern['reason']}")
    for failure in facts["failures"]:
        print_progress(f"{failure['kernel']} for {failure['target']}: {failure['reason']}")
    counts = facts["builds"]
    note = " (nothing to compile)" if not counts["compiled"] and not counts["failed"] else ""
    print_progress(
        f"{facts['kernels']} kernels, {facts['calls']} calls; {counts['compiled']} compiled,"
        f" {counts['cached']} from the cache{note}, {counts['failed']} failed"
        f" in {facts['seconds']['total']:.2f} s"
    )
