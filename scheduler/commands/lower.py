"""List the scheduled nodes of a model, their origins, and why others were not fused."""

from __future__ import annotations

import argparse
from typing import Any

from scheduler import pipeline
from scheduler.commands import options
from scheduler.commands.output import print_json, print_table
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.graph import Graph, Node
from scheduler.ir.index.text import print_expr


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_model(parser)
    parser.add_argument("--no-fuse", action="store_true", help="generate one kernel per operation")


def run(arguments: argparse.Namespace) -> int:
    """Print the schedule; exit status 0."""
    graph = options.load_model(arguments)
    plan = pipeline.schedule(pipeline.lower(graph), fuse=not arguments.no_fuse)
    by_name = {node.name: node for node in graph.nodes}
    if arguments.json:
        print_json(_to_json(plan, graph, by_name))
        return 0
    print_table(
        ("node", "kind", "group", "operations", "origin"),
        [_table_row(node, by_name) for node in plan.nodes],
    )
    externs = [
        (extern.node, extern.op, extern.reason) for node in plan.nodes for extern in node.externs
    ]
    if externs:
        print_table(("\nno kernel", "op", "reason"), externs)
    rejected = [decision for decision in plan.decisions if not decision.fused]
    print_table(
        ("\nnot fused", "with", "reason"),
        [(decision.producer, decision.consumer, decision.reason) for decision in rejected],
    )
    return 0


def _to_json(plan: Schedule, graph: Graph, by_name: dict[str, Node]) -> dict[str, Any]:
    return {
        "graph": {"name": graph.name, "digest": graph.digest},
        "nodes": [
            {
                "name": node.name,
                "kind": str(node.kind),
                "group": [print_expr(size) for size in node.group],
                "reads": list(node.reads),
                "writes": list(node.writes),
                "frees": list(node.frees),
                "nodes": list(node.nodes),
                "origins": [
                    {
                        "node": origin.name,
                        "op": origin.target,
                        "module": origin.origin.module_path,
                        "frames": [
                            {
                                "file": frame.file,
                                "line": frame.line,
                                "function": frame.function,
                                "code": frame.code,
                            }
                            for frame in origin.origin.frames
                        ],
                    }
                    for origin in (by_name[name] for name in node.nodes if name in by_name)
                ],
                "externs": [{"op": extern.op, "reason": extern.reason} for extern in node.externs],
            }
            for node in plan.nodes
        ],
        "decisions": [
            {
                "producer": decision.producer,
                "consumer": decision.consumer,
                "fused": decision.fused,
                "reason": decision.reason,
            }
            for decision in plan.decisions
        ],
    }


def _table_row(node: SchedulerNode, by_name: dict[str, Node]) -> tuple[str, ...]:
    """Return a scheduler node's row: its operations, and the module of its first one with any."""
    points, reduced = (print_expr(size) for size in node.group)
    group = points if reduced == "1" else f"{points} x {reduced}"
    nodes = [by_name[name] for name in node.nodes if name in by_name]
    ops = " ".join(dict.fromkeys(node_row.target.split(".")[1] for node_row in nodes))
    modules = (
        node_row.origin.module_path
        for node_row in nodes
        if node_row.origin and node_row.origin.module_path
    )
    return node.name, str(node.kind), group, ops, next(modules, "")
