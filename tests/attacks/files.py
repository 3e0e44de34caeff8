"""Damaged and hostile .pt2 files through every stage: read, lowered, scheduled, rendered.

    python -m tests.attacks.files [--count 20000] [--seed 0] [--only INDEX] [--jobs 2]

Each file is one of ``graphs/`` with faults in its JSON, its zip or its bytes, made from the seed
and its index alone. What is counted as wrong: ``tests/attacks/children.py``.
"""

from __future__ import annotations

import json
import sys
import zipfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from scheduler import pipeline, targets
from scheduler.bundle.writer import wrapper_of
from scheduler.codegen.problem import problem_of
from scheduler.codegen.scheduling import targets_sharing_source
from scheduler.codegen.title import title
from scheduler.errors import UserError
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.serialize import graph_to_json
from scheduler.tuning.work import work_of
from tests.attacks import archives, children, mutations
from tests.attacks.exported import GRAPHS


@cache
def _bases() -> list[tuple[str, bytes, Any]]:
    """Each model's member, its text and the parsed text."""
    found = []
    for path in sorted(GRAPHS.glob("*.pt2")):
        with zipfile.ZipFile(path) as archive:
            (member,) = archive.namelist()
            text = archive.read(member)
        found.append((member, text, json.loads(text)))
    return found


def hostile_file(seed: int, index: int) -> bytes:
    """The bytes of one file."""
    random = Random(f"{seed}/{index}")
    member, text, document = random.choice(_bases())
    if random.random() < 0.2:
        return archives.packed(member, text, random)
    changed = mutations.mutated(document, random).encode(errors="surrogatepass")
    return archives.plain(member, changed)


def take(path: Path) -> str:
    """All that is done with a file that somebody uploads, up to its kernels' sources: what it was
    refused for, or "" where it was accepted. Anything but a ``UserError`` is raised."""
    try:
        graph = pipeline.load(path)
        json.dumps(graph_to_json(graph), allow_nan=False)
        plan = pipeline.schedule(pipeline.lower(graph))
        served = targets_sharing_source(targets.find(targets.names()[0]))
        wrapper_of(pipeline.generate(plan, served).manifest())
        backend = pipeline.scheduling(plan, served)
        for node in plan.nodes:
            if node.kind.has_kernel:
                problem_of(node, plan.lowered)
                title(node, plan.lowered)
                backend.candidates(node)
                _work(node, plan.lowered)
    except UserError as error:
        return children.short_line(error)
    return ""


def _work(node: Any, lowered: Any) -> None:
    try:
        work_of(node, lowered, hint_bindings(lowered.graph.symbols))
    except UserError:
        return  # larger than any memory: no bound is recorded


if __name__ == "__main__":
    sys.exit(children.main("tests.attacks.files", __doc__))
