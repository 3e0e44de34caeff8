"""Runs a bundle's whole graph in a sandboxed process: a bundle holds untrusted native code.

The process gets the required files of the bundle and the inputs in a folder that it may read. It
answers with one line of JSON and the outputs' bytes, whose number is known in advance.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from scheduler.benchmark.sandbox_paths import HOME_FOLDER, INPUT_FOLDER, kernel_memory_limit
from scheduler.bundle.emulated import library_for
from scheduler.bundle.reader import Bundle
from scheduler.codegen import bundle_paths
from scheduler.errors import UserError
from scheduler.ir.bindings import Bindings, backed_bindings, bind_unbacked
from scheduler.ir.index.functions import is_unbacked
from scheduler.ir.storage import Array, BoundBuffer, bind_buffer
from scheduler.limits import INT64_END
from scheduler.runtime.device import DeviceError
from scheduler.sandbox.process import Cancellation, signal_name
from scheduler.sandbox.python import start_python

BUNDLE, INPUTS, REQUEST = "bundle", "inputs", "request.json"
_CHILD = "scheduler.benchmark.graph_child"
_LINE_MAX_BYTES = 1 << 20


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
    with tempfile.TemporaryDirectory(prefix="kiln-run-") as name:
        folder = Path(name)
        for place in (INPUT_FOLDER, HOME_FOLDER):
            (folder / place).mkdir()
        _stage_files(folder / INPUT_FOLDER, bundle, device, target, bindings, inputs)
        process = start_python(
            _CHILD,
            [str(folder), device, str(kernel_memory_limit())],
            folder / HOME_FOLDER,
            os.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        with process, Cancellation().kill_on_cancel(process):
            assert process.stdout is not None
            return _outputs(bundle, bindings, process, process.stdout)


def link_or_copy(file: Path, to: Path) -> None:
    """Hard-link a file; copy it if it is on another disk or belongs to another user."""
    try:
        to.hardlink_to(file)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(file, to)


def _stage_files(
    handed: Path,
    bundle: Bundle,
    device: str,
    target: str,
    bindings: Bindings,
    inputs: Mapping[str, Array],
) -> None:
    copy = handed / BUNDLE
    copy.mkdir()
    for name in (bundle_paths.MANIFEST, bundle_paths.GRAPH):
        link_or_copy(bundle.folder / name, copy / name)
    for kernel in bundle.manifest.kernels:
        name = bundle.library(kernel, target).name
        place = copy / bundle_paths.build_folder(kernel, target)
        place.mkdir(parents=True)
        library = library_for(bundle, kernel, target, device, place)
        if library.parent != place:
            link_or_copy(library, place / name)
        else:
            library.rename(place / name)
    (handed / INPUTS).mkdir()
    for number, value in enumerate(inputs.values()):
        np.save(handed / INPUTS / f"{number}.npy", value)
    request = {"bindings": dict(bindings), "inputs": list(inputs)}
    (handed / REQUEST).write_text(json.dumps(request))


def _outputs(
    bundle: Bundle, bindings: Bindings, process: subprocess.Popen[bytes], answers: IO[bytes]
) -> GraphOutputs:
    answer = _answer(answers.readline(_LINE_MAX_BYTES))
    _check_answer(answer, process)
    missing = _missing(answer, bundle.manifest.outputs)
    sizes = backed_bindings(bindings)
    bind_unbacked(sizes, bundle.manifest.symbols, _read_sizes(answer, bundle))
    outputs = {}
    for name in dict.fromkeys(bundle.manifest.outputs):
        if name in missing:
            continue
        buffer = bind_buffer(bundle.manifest.buffers[name], sizes)
        if buffer.nbytes > kernel_memory_limit():
            raise _process_error(process)
        outputs[name] = _output(answers, buffer, process)
    return GraphOutputs(outputs, missing, sizes)


def _read_sizes(answer: Mapping[str, Any] | None, bundle: Bundle) -> Bindings:
    """Return the valid data-dependent sizes in the answer, which is untrusted."""
    sizes = answer.get("bindings") if answer else None
    known = sizes if isinstance(sizes, dict) else {}
    return {
        name: known[name]
        for name in bundle.manifest.symbols
        if is_unbacked(name) and type(known.get(name)) is int and 0 <= known[name] < INT64_END
    }


def _missing(answer: Mapping[str, Any] | None, outputs: Sequence[str]) -> dict[str, str]:
    """Return the reasons for missing outputs in the answer, which is untrusted."""
    reasons = answer.get("missing") if answer else None
    if not isinstance(reasons, dict):
        return {}
    return {name: str(reasons[name]) for name in outputs if name in reasons}


def _answer(line: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _check_answer(answer: dict[str, Any] | None, process: subprocess.Popen[bytes]) -> None:
    if answer is None:
        raise _process_error(process)
    if "mistake" in answer:
        raise UserError(str(answer["mistake"]))
    if "status" in answer:
        raise DeviceError(str(answer["status"]), str(answer.get("message", "")))


def _output(answers: IO[bytes], buffer: BoundBuffer, process: subprocess.Popen[bytes]) -> Array:
    array: Array = np.empty(buffer.size, dtype=buffer.dtype.reference_numpy)
    data = answers.read(array.nbytes)
    if len(data) != array.nbytes:
        raise _process_error(process)
    return np.frombuffer(data, dtype=array.dtype).reshape(array.shape)


def _process_error(process: subprocess.Popen[bytes]) -> DeviceError:
    """Return the error for a process that ended without an answer or wrote an invalid one."""
    process.kill()
    status = process.wait()
    how = f"was killed by {signal_name(status)}" if status < 0 else f"exited with status {status}"
    return DeviceError("hipErrorLaunchFailure", f"the process that ran the graph {how}")
