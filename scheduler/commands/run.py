"""Run the whole graph of a bundle."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from scheduler.benchmark.graph_run import GraphOutputs, run_sandboxed
from scheduler.benchmark.verification import device_target
from scheduler.bundle.inputs import input_buffers, written_names
from scheduler.bundle.manifest import Manifest
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
from scheduler.ir.serialize import constant_to_json
from scheduler.ir.storage import Array, bind_buffer, widen
from scheduler.targets.generations import AMD_EXAMPLE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", type=Path, metavar="DIR", help="folder of the bundle")
    parser.add_argument(
        "--device",
        default="cpu",
        metavar="ID",
        help=f"cpu, rocm:0, cuda:0, isa:{AMD_EXAMPLE} … (default: %(default)s)",
    )
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
        given = parse_bindings(arguments.bind, bundle.manifest.symbols)
        check_backed(given)
    target = device_target(arguments.device)
    confirm_trust(bundle, target, arguments.trust)
    values, bindings = read_inputs(bundle, arguments.inputs, given)
    got = run_sandboxed(bundle, arguments.device, target, bindings, values)
    _report(arguments, bundle, got, dict(got.bindings))
    return 0


def _report(
    arguments: argparse.Namespace, bundle: Bundle, got: GraphOutputs, bindings: Bindings
) -> None:
    written = written_names(bundle)
    names = [
        (name, buffer)
        for place, buffer in enumerate(bundle.manifest.outputs)
        for name in dict.fromkeys((bundle.graph.outputs[place], written.get(place, "")))
        if name
    ]
    outputs = {name: got.values[buffer] for name, buffer in names if buffer in got.values}
    missing = {name: got.missing[buffer] for name, buffer in names if buffer in got.missing}
    _save(arguments.outputs, outputs)
    shapes = {name: list(array.shape) for name, array in outputs.items()}
    constants = bundle.manifest.constant_outputs
    if arguments.json:
        print_json(
            {
                "outputs": shapes,
                "constants": [constant_to_json(each) for each in constants],
                "written": [name for name in written.values() if name in outputs],
                "missing": missing,
                "bindings": bindings,
                "file": str(arguments.outputs),
            }
        )
        return
    for name, needed in missing.items():
        print_progress(f"output {name} not computed: needs {needed}")
    print_progress(f"wrote {arguments.outputs}: {shapes}")
    for each in constants:
        print_progress(f"output {each.place} is the constant {each.value!a}")
    if written:
        print_progress(f"inputs updated by the model: {', '.join(written.values())}")


def _save(path: Path, arrays: Mapping[str, Array]) -> None:
    """An .npz of arrays whatever they are called: ``np.savez`` has parameters of its own."""
    with path.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def read_inputs(bundle: Bundle, path: Path, given: Bindings) -> tuple[dict[str, Array], Bindings]:
    """Values by graph input, from arrays named as the graph's inputs or as the model's
    parameters, and the sizes: those that are given, else as the arrays' shapes say, else those of
    the example. Raises ``UserError`` that lists what is missing, has another shape, or a size that
    the model was not exported for."""
    buffers = input_buffers(bundle)
    sources = {given.name: given.source_name for given in bundle.graph.inputs}
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
    bindings = _infer_sizes(bundle.manifest, values, buffers, given)
    return _check_shapes(bundle, values, buffers, bindings), bindings


def _infer_sizes(
    manifest: Manifest, values: Mapping[str, Array], buffers: Mapping[str, str], given: Bindings
) -> Bindings:
    shapes = {
        name: manifest.buffers[buffers[name]].size
        for name, value in values.items()
        if value.ndim == len(manifest.buffers[buffers[name]].size)
    }
    found = {
        one.size: one.value(values[one.input].shape[one.axis], manifest.symbols)
        for one in size_sources(shapes, manifest.symbols)
        if one.size not in given
    }
    bindings = hint_bindings(manifest.symbols, found | given)
    check_bindings(bindings, manifest.symbols, manifest.guards)
    return bindings


def _check_shapes(
    bundle: Bundle, values: Mapping[str, Array], buffers: Mapping[str, str], bindings: Bindings
) -> dict[str, Array]:
    fitted: dict[str, Array] = {}
    for name, value in values.items():
        buffer = bind_buffer(bundle.manifest.buffers[buffers[name]], bindings)
        if value.shape != buffer.size:
            raise UserError(_shape_mismatch(name, value.shape, buffer.size, bindings))
        is_bits = buffer.dtype.numpy == str(value.dtype)  # bfloat16 travels as uint16
        fitted[name] = widen(value, buffer.dtype) if is_bits else value
    return fitted


def _shape_mismatch(
    name: str, shape: Sequence[int], size: Sequence[int], bindings: Bindings
) -> str:
    """What of an input's shape is another than its buffer's, at these sizes of the model."""
    sizes = f" at {format_bindings(bindings)}" if bindings else ""
    if len(shape) != len(size):
        return f"input {name} has {len(shape)} dimensions, not {len(size)}"
    axis = next(axis for axis, pair in enumerate(zip(shape, size, strict=True)) if len({*pair}) > 1)
    return f"input {name}: dimension {axis} is {shape[axis]}, not {size[axis]}{sizes}"
