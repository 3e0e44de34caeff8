"""Importing a model's graph."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from codegen_app.accounts import audit
from codegen_app.graphs.models import Graph, GraphNode
from codegen_app.graphs.origins import own_frame
from codegen_app.graphs.services import torch_comparisons
from codegen_app.graphs.signals import graph_imported
from codegen_app.platform import artifacts, files, sanitize
from codegen_app.platform.config import sandbox
from codegen_app.platform.models import Artifact
from codegen_app.platform.served_targets import served_target_names
from codegen_app.workers import queue, work
from codegen_app.workers.models import State
from scheduler import targets, untrusted
from scheduler.errors import UserError

# The targets of a graph's kernels unless others are given.
DEFAULT_TARGETS = ("gfx942", "gfx1100", "cpu")
_MAX_NAME, _MAX_VALUE = 200, 1000  # characters


def import_graph(
    file: Path,
    name: str,
    compile_for: Sequence[str],
    actor: AbstractBaseUser | None,
    model_name: str = "",
) -> tuple[Graph, bool]:
    """Record the graph in ``file`` and request its preparation; also return whether it is new. If
    the file holds several models, only the one named ``model_name`` is stored.

    The file is untrusted. Raises ``UserError``, with nothing recorded: for a file that is too large
    or no graph, that holds several models or none of that name, for an unknown target, and for an
    account (``actor``) if the sandbox does not allow reading uploaded files.
    """
    if actor is not None:
        sandbox.require_uploads(settings.FENCE)
    size = file.stat().st_size
    if size > settings.GRAPH_FILE_MAX_BYTES:
        limit = settings.GRAPH_FILE_MAX_BYTES
        raise UserError(f"{name}: {size} bytes are more than the {limit} that may be imported")
    target_names = [targets.find(target).name for target in compile_for]
    for target in target_names:
        if target not in served_target_names():
            known_names = ", ".join(served_target_names())
            raise UserError(f"the pages make no kernels for {target}; choose among: {known_names}")
    if not model_name:
        return _import(file, name, target_names, actor)
    with tempfile.TemporaryDirectory(prefix="kiln-model-") as folder:
        extracted = Path(folder) / file.name
        untrusted.extract_model(file, model_name, extracted, import_limits(settings.IMPORT_MAX_S))
        return _import(extracted, name, target_names, actor)


def _import(
    file: Path, name: str, target_names: Sequence[str], actor: AbstractBaseUser | None
) -> tuple[Graph, bool]:
    content = untrusted.read_graph(file, import_limits(settings.IMPORT_MAX_S))
    graph = Graph.objects.filter(digest=content["digest"]).select_related("file").first()
    if graph is not None:
        # Restore what an equal file can: the stored file if the storage lost it, a preparation that
        # waits for the file or was stopped, a comparison with torch that was never requested or
        # failed.
        data = file.read_bytes()
        if not artifacts.is_whole(graph.file) and files.digest_of(data) == graph.file.digest:
            artifacts.store(data, file.suffix)
        with transaction.atomic():
            stopped = (State.QUARANTINED, State.CANCELLED)
            stopped_rows = Graph.objects.filter(pk=graph.pk, state__in=stopped)
            waiting = Graph.objects.filter(pk=graph.pk, state=State.QUEUED, again_at__isnull=False)
            if stopped_rows.update(**work.REQUEUED_FIELDS) or waiting.update(again_at=None):
                queue.notify(queue.Kind.PREPARE)
            if graph.state == State.DONE:
                torch_comparisons.request(graph)
        return graph, False
    # The database could not find other names again.
    for position, node in enumerate(content["nodes"]):
        what = f"node number {position}"
        sanitize.check_names(what, (node["name"], node["target"], *node["outputs"]), _MAX_NAME)
    sanitize.check_names("a value", (*content["tensors"], *content["symbols"]), _MAX_VALUE)
    stored = artifacts.store_file(file)  # no row is locked while a disk is slow
    try:
        with transaction.atomic():
            graph = _record(content, name, target_names, stored, actor)
            audit.record(actor, "import", graph)
            graph_imported.send(Graph, graph=graph)
            queue.notify(queue.Kind.PREPARE)
    except IntegrityError:  # an equal file was imported at the same time
        return Graph.objects.get(digest=content["digest"]), False
    return graph, True


def import_limits(seconds: int) -> untrusted.Limits:
    """Return the limits of a process that reads an imported file."""
    return untrusted.Limits(seconds=seconds, memory_bytes=settings.IMPORT_MAX_MEMORY_BYTES)


def _record(
    content: Mapping[str, Any],
    name: str,
    target_names: Sequence[str],
    file: Artifact,
    actor: AbstractBaseUser | None,
) -> Graph:
    # Inputs that the model writes name the writing nodes.
    writers = content.get("writers", {})
    inputs = [
        {**each, "written": True, "written_by": writers[each["name"]]}
        if each["name"] in writers
        else each
        for each in content["inputs"]
    ]
    graph = Graph.objects.create(
        name=sanitize.storable_text(name, _MAX_NAME) or "graph",
        digest=content["digest"],
        producer=sanitize.storable_text(content["producer"], 200),
        file=file,
        symbols=sanitize.storable_json(content["symbols"]),
        inputs=sanitize.storable_json(inputs),
        outputs=sanitize.storable_json([*content["outputs"], *content.get("constant_outputs", ())]),
        tensors=sanitize.storable_json(content["tensors"]),
        targets=list(target_names),
        node_count=len(content["nodes"]),
        imported_by_id=actor.pk if actor is not None else None,
    )
    rows = []
    keys = ("file", "line", "function", "code")
    for position, node in enumerate(content["nodes"]):
        origin = node["origin"]
        arguments = sanitize.storable_json({"args": node["args"], "kwargs": node["kwargs"]})
        frames = [
            dict(zip(keys, sanitize.storable_json(frame), strict=True))
            for frame in origin["frames"]
        ]
        frame = own_frame(frames)
        source = f"{frame['file']}:{frame['line']}" if frame else ""
        rows.append(
            GraphNode(
                graph=graph,
                position=position,
                name=node["name"],
                target=node["target"],
                arguments=arguments,
                inputs=list(dict.fromkeys(_references(arguments))),
                outputs=node["outputs"],
                module_path=sanitize.storable_text(origin["module_path"], 500),
                module_type=sanitize.storable_text(origin["module_type"], 300),
                torch_function=sanitize.storable_text(origin["torch_function"], 300),
                source=sanitize.storable_text(source, 500),
                frames=frames,
            )
        )
    GraphNode.objects.bulk_create(rows, batch_size=500)
    return graph


def _references(argument: Any) -> Iterable[str]:
    """Yield the names of the values that an argument reads (``{"ref": name}`` at any depth).

    A graph among the arguments (``{"graph": …}``) reads none: it gets all its inputs as arguments.
    """
    if isinstance(argument, Mapping):
        if set(argument) == {"ref"}:
            yield argument["ref"]
        elif set(argument) != {"graph"}:
            for part in argument.values():
                yield from _references(part)
    elif isinstance(argument, list):
        for part in argument:
            yield from _references(part)
