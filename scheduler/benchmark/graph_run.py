"""Runs a bundle's whole graph in a sandboxed process: a bundle holds untrusted native code.

The process gets the required files of the bundle and the inputs in a folder that it may read. The
outputs' bytes, whose number is known in advance, follow its answer.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scheduler.benchmark.sandbox_paths import (
    HOME_FOLDER,
    INPUT_FOLDER,
    kernel_memory_limit,
    kernel_sandbox,
)
from scheduler.bundle.emulated import library_for
from scheduler.bundle.reader import Bundle
from scheduler.codegen import bundle_paths
from scheduler.errors import UserError
from scheduler.ir.bindings import Bindings, backed_bindings, bind_unbacked
from scheduler.ir.index.functions import is_unbacked
from scheduler.ir.storage import Array, bind_buffer
from scheduler.limits import INT64_END
from scheduler.runtime.device import DeviceError
from scheduler.sandbox.rpc import AnsweredError, Child, ChildError, InvalidAnswerError

BUNDLE, INPUTS = "bundle", "inputs"
_CHILD = "scheduler.benchmark.graph_child:make_handler"
_ANSWER_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class GraphOutputs:
    """Outputs by buffer name. ``missing`` maps each omitted output to the op that could not be
    computed; ``bindings`` are the sizes of the run, including data-dependent sizes."""

    values: Mapping[str, Array]
    missing: Mapping[str, str]
    bindings: Mapping[str, int]


def run_sandboxed(
    bundle: Bundle, device: str, target: str, bindings: Bindings, inputs: Mapping[str, Array]
) -> GraphOutputs:
    """Run a bundle in a sandbox with inputs by the graph's input names.

    Raises ``UserError`` if an input does not fit, ``DeviceError`` if the device fails or the code
    crashes its process.
    """
    memory_bytes = kernel_memory_limit()
    with tempfile.TemporaryDirectory(prefix="kiln-run-") as name:
        folder = Path(name)
        input_folder, home = folder / INPUT_FOLDER, folder / HOME_FOLDER
        input_folder.mkdir()
        home.mkdir()
        _stage_files(input_folder, bundle, device, target, inputs)
        request = {
            "folder": str(input_folder),
            "device": device,
            "bindings": dict(bindings),
            "inputs": list(inputs),
        }
        with Child(_CHILD, kernel_sandbox(folder, device, memory_bytes), home) as child:
            try:
                answer = child.request(request, seconds=None, max_bytes=_ANSWER_MAX_BYTES)
                return _read_outputs(bundle, bindings, child, answer, memory_bytes)
            except AnsweredError as error:
                if error.kind == "UserError":
                    raise UserError(str(error)) from None
                if error.kind == "MemoryError":
                    raise DeviceError("hipErrorOutOfMemory", str(error)) from None
                raise _launch_failure(child.exit_error()) from None
            except ChildError as error:
                raise _launch_failure(error) from None


def link_or_copy(file: Path, target: Path) -> None:
    """Hard-link a file; copy it if it is on another disk or belongs to another user."""
    try:
        target.hardlink_to(file)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(file, target)


def _stage_files(
    input_folder: Path,
    bundle: Bundle,
    device: str,
    target: str,
    inputs: Mapping[str, Array],
) -> None:
    copy = input_folder / BUNDLE
    copy.mkdir()
    for name in (bundle_paths.MANIFEST, bundle_paths.GRAPH):
        link_or_copy(bundle.folder / name, copy / name)
    for kernel in bundle.manifest.kernels:
        name = bundle.library(kernel, target).name
        build_folder = copy / bundle_paths.build_folder(kernel, target)
        build_folder.mkdir(parents=True)
        library = library_for(bundle, kernel, target, device, build_folder)
        if library.parent != build_folder:
            link_or_copy(library, build_folder / name)
        else:
            library.rename(build_folder / name)
    (input_folder / INPUTS).mkdir()
    for number, value in enumerate(inputs.values()):
        np.save(input_folder / INPUTS / f"{number}.npy", value)


def _read_outputs(
    bundle: Bundle, bindings: Bindings, child: Child, answer: Any, memory_bytes: int
) -> GraphOutputs:
    """Read the outputs that follow the answer, which is untrusted."""
    if not isinstance(answer, dict):
        raise InvalidAnswerError("sent an invalid answer")
    if "status" in answer:
        raise DeviceError(str(answer["status"]), str(answer.get("message", "")))
    reasons, answered_bindings = answer.get("missing"), answer.get("bindings")
    reasons = reasons if isinstance(reasons, dict) else {}
    answered_bindings = answered_bindings if isinstance(answered_bindings, dict) else {}
    outputs = dict.fromkeys(bundle.manifest.outputs)
    missing = {name: str(reasons[name]) for name in outputs if name in reasons}
    sizes = backed_bindings(bindings)
    data_dependent = {
        name: answered_bindings[name]
        for name in bundle.manifest.symbols
        if is_unbacked(name)
        and type(answered_bindings.get(name)) is int
        and 0 <= answered_bindings[name] < INT64_END
    }
    bind_unbacked(sizes, bundle.manifest.symbols, data_dependent)
    values = {}
    for name in outputs:
        if name in missing:
            continue
        buffer = bind_buffer(bundle.manifest.buffers[name], sizes)
        if buffer.nbytes > memory_bytes:
            raise InvalidAnswerError(f"sent an output of more than {memory_bytes >> 30} GiB")
        array: Array = np.empty(buffer.size, dtype=buffer.dtype.reference_numpy)
        child.read_into(array.reshape(-1).view(np.uint8).data)
        values[name] = array
    return GraphOutputs(values, missing, sizes)


def _launch_failure(error: ChildError) -> DeviceError:
    return DeviceError("hipErrorLaunchFailure", f"the process that ran the graph {error}")
