"""Run the whole graph of a bundle."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from scheduler.benchmark.graph_run import run_sandboxed
from scheduler.benchmark.verification import device_target
from scheduler.bundle.inputs import input_buffers, written_names
from scheduler.bundle.reader import Bundle, open_bundle
from scheduler.commands import options
from scheduler.commands.output import print_json, print_progress
from scheduler.commands.trust import add_trust, confirm_trust
from scheduler.errors import UserError
from scheduler.ir.bindings import (
    Bindings,
    check_backed,
    check_bindings,
    format_bindings,
    hint_bindings,
    parse_bindings,
    size_sources,
)
from scheduler.ir.encoding import widen
from scheduler.ir.serialize import constant_to_json
from scheduler.ir.storage import Array, bind_buffer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", type=Path, metavar="DIR", help="folder of the bundle")
    options.add_device(parser)
    parser.add_argument(
        "--inputs", type=Path, required=True, metavar="IN.npz", help="arrays, by input name"
    )
    parser.add_argument(
        "--outputs", type=Path, required=True, metavar="OUT.npz", help="write the outputs here"
    )
    options.add_bindings(parser)
    add_trust(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the inputs, run, write the outputs: each under the graph's name of it, and the new value
    of an input that the model writes under the model's name of that input too. Constants among the
    outputs have no name: they are only reported."""
    bundle = open_bundle(arguments.bundle)
    with options.flag_errors("--bind"):
        requested = parse_bindings(arguments.bind, bundle.manifest.symbols)
        check_backed(requested)
    target = device_target(arguments.device)
    confirm_trust(bundle, target, arguments.trust)
    values, bindings = read_inputs(bundle, arguments.inputs, requested)
    results = run_sandboxed(bundle, arguments.device, target, bindings, values)
    written = written_names(bundle)
    names = [
        (name, buffer)
        for index, buffer in enumerate(bundle.manifest.outputs)
        for name in dict.fromkeys((bundle.graph.outputs[index], written.get(index, "")))
        if name
    ]
    outputs = {name: results.values[buffer] for name, buffer in names if buffer in results.values}
    missing = {name: results.missing[buffer] for name, buffer in names if buffer in results.missing}
    # Not ``np.savez``: its parameters have the names of some outputs.
    with arguments.outputs.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in outputs.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    shapes = {name: list(array.shape) for name, array in outputs.items()}
    constants = bundle.manifest.constant_outputs
    if arguments.json:
        print_json(
            {
                "outputs": shapes,
                "constants": [constant_to_json(constant) for constant in constants],
                "written": [name for name in written.values() if name in outputs],
                "missing": missing,
                "bindings": dict(results.bindings),
                "file": str(arguments.outputs),
            }
        )
        return 0
    for name, op in missing.items():
        print_progress(f"output {name} not computed: needs {op}")
    print_progress(f"wrote {arguments.outputs}: {shapes}")
    for constant in constants:
        print_progress(f"output {constant.place} is the constant {constant.value!a}")
    if written:
        print_progress(f"inputs updated by the model: {', '.join(written.values())}")
    return 0


def read_inputs(
    bundle: Bundle, path: Path, requested: Bindings
) -> tuple[dict[str, Array], Bindings]:
    """Values by graph input, from arrays named as the graph's inputs or as the model's
    parameters, and the sizes: those that are given, else as the arrays' shapes say, else those of
    the example. Raises ``UserError`` that lists what is missing, has another shape, or a size that
    the model was not exported for."""
    buffers = input_buffers(bundle)
    sources = {graph_input.name: graph_input.source_name for graph_input in bundle.graph.inputs}
    try:
        with np.load(path, allow_pickle=False) as arrays:
            values = {
                name: arrays[key]
                for name in buffers
                for key in (name, sources[name])
                if key and key in arrays.files
            }
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"--inputs: {path} cannot be read as .npz: {error}") from None
    missing = [name for name in buffers if name not in values]
    if missing:
        raise UserError(f"--inputs: {path} lacks {', '.join(missing[:8])}; {len(buffers)} needed")
    manifest = bundle.manifest
    shapes = {
        name: manifest.buffers[buffers[name]].size
        for name, value in values.items()
        if value.ndim == len(manifest.buffers[buffers[name]].size)
    }
    inferred = {
        source.size: source.value(values[source.input].shape[source.axis], manifest.symbols)
        for source in size_sources(shapes, manifest.symbols)
        if source.size not in requested
    }
    bindings = hint_bindings(manifest.symbols, inferred | requested)
    check_bindings(bindings, manifest.symbols, manifest.guards)
    for name, value in values.items():
        buffer = bind_buffer(manifest.buffers[buffers[name]], bindings)
        _check_shape(name, value.shape, buffer.size, bindings)
        if buffer.dtype.numpy == str(value.dtype):  # bfloat16 travels as uint16
            values[name] = widen(value, buffer.dtype)
    return values, bindings


def _check_shape(name: str, shape: Sequence[int], size: Sequence[int], bindings: Bindings) -> None:
    """Raise ``UserError`` if an input's shape is not its buffer's at these sizes of the model."""
    if len(shape) != len(size):
        raise UserError(f"input {name} has {len(shape)} dimensions, not {len(size)}")
    sizes = f" at {format_bindings(bindings)}" if bindings else ""
    for axis, (length, expected) in enumerate(zip(shape, size, strict=True)):
        if length != expected:
            raise UserError(f"input {name}: dimension {axis} is {length}, not {expected}{sizes}")
