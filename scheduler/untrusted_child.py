"""The program that reads a file or prepares it as a dry run; ``untrusted.py`` calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduler import pipeline, targets
from scheduler.bundle.writer import wrapper_of
from scheduler.frontends.extract import extract_model
from scheduler.frontends.mutations import writers
from scheduler.ir.serialize import graph_to_json
from scheduler.sandbox.rpc import Handler


def make_handler() -> Handler:
    """Return the handler of requests: a ``command``, a ``file``, and the command's arguments."""

    def handle(request: dict[str, Any]) -> Any:
        command = COMMANDS[request.pop("command")]
        return command(Path(request.pop("file")), **request)

    return handle


def read_graph(file: Path) -> dict[str, Any]:
    """Return the graph, with ``writers`` if it writes inputs."""
    graph = pipeline.load(file)
    written = writers(graph)
    return {**graph_to_json(graph), **({"writers": written} if written else {})}


def extract(file: Path, model_name: str, out: str) -> None:
    """Write the model to the working folder of the process."""
    extract_model(file, model_name, Path(out))


def dry_run(file: Path, names: Sequence[str]) -> None:
    """Run the whole preparation: the schedule, and the default kernels' sources."""
    schedule = pipeline.schedule(pipeline.lower(pipeline.load(file)))
    generated = pipeline.generate(schedule, [targets.find(name) for name in names])
    wrapper_of(generated.manifest())


def compare_torch(file: Path, seed: int, bindings: dict[str, int]) -> list[dict[str, Any]]:
    """Compare outputs and written inputs with torch's, at the given sizes."""
    from scheduler.benchmark.torch_oracle import compare_with_torch  # noqa: PLC0415 -- seconds

    return [asdict(finding) for finding in compare_with_torch(file, bindings, seed)]


COMMANDS: dict[str, Callable[..., Any]] = {
    "read": read_graph,
    "extract": extract,
    "try": dry_run,
    "torch": compare_torch,
}
