"""Options that several commands share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.build.toolchains import (
    Search,
    ToolchainFor,
    ToolchainResult,
    find_target_toolchains,
    find_toolchains,
    pick_toolchain,
)
from scheduler.bundle.manifest import Manifest
from scheduler.errors import UserError
from scheduler.ir.bindings import (
    Bindings,
    check_backed,
    check_bindings,
    hint_bindings,
    parse_bindings,
)
from scheduler.ir.graph import Graph, MatmulPrecision
from scheduler.targets import Target, find
from scheduler.targets.generations import AMD_EXAMPLE, NVIDIA_EXAMPLE


@contextmanager
def flag_errors(flag: str) -> Iterator[None]:
    """Put the flag before the message of a ``UserError``: the layers below know no flags."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{flag}: {error}") from None


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL.pt2", help="a torch.export file")
    add_model_name(parser)


def add_model_name(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects one of several models in a file."""
    parser.add_argument(
        "--model-name", default="", metavar="NAME", help="which model, if the file has several"
    )


def load_model(arguments: argparse.Namespace) -> Graph:
    """Return the graph that the arguments of ``add_model`` name."""
    return pipeline.load(arguments.model, model_name=arguments.model_name)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects the device that runs a bundle."""
    parser.add_argument(
        "--device",
        default="cpu",
        metavar="ID",
        help=f"cpu, rocm:0, cuda:0, isa:{AMD_EXAMPLE} … (default: %(default)s)",
    )


def add_compilation(parser: argparse.ArgumentParser) -> None:
    """Add the options of the compilers."""
    parser.add_argument("--flags", default="-O3", help="compiler flags (default: %(default)s)")
    parser.add_argument("--jobs", type=int, help="parallel compilers (default: all cores)")


def add_bindings(parser: argparse.ArgumentParser) -> None:
    """Add the option that sets symbolic sizes."""
    parser.add_argument(
        "--bind", action="append", default=[], metavar="SYMBOL=N", help="set a symbolic size"
    )


def parse_sizes(arguments: argparse.Namespace, manifest: Manifest) -> Bindings:
    """Return the sizes at which ``--bind`` runs a bundle: each symbol's hint, if it is not given.
    Raises ``UserError`` for sizes that the model was not exported for."""
    symbols = manifest.symbols
    with flag_errors("--bind"):
        requested = parse_bindings(arguments.bind, symbols)
        check_backed(requested)
        bindings = hint_bindings(symbols, requested)
        check_bindings(bindings, symbols, manifest.guards)
    return bindings


def add_precision(parser: argparse.ArgumentParser) -> None:
    """Add torch's ``set_float32_matmul_precision``, which an exported graph does not contain."""
    parser.add_argument(
        "--float32-matmul-precision",
        choices=[precision.value for precision in MatmulPrecision],
        default=MatmulPrecision.HIGHEST.value,
        help="precision of f32 matrix products and convolutions: highest is f32; high rounds the"
        " factors to tf32 (AMD: xf32) if the target supports it (default: %(default)s)",
    )


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add the folders of the code cache and of ROCm."""
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path.home() / ".cache" / "kiln",
        metavar="DIR",
        help="folder of the code cache (default: %(default)s)",
    )
    parser.add_argument(
        "--rocm",
        type=Path,
        default=Path("/opt/rocm"),
        metavar="DIR",
        help="folder of ROCm (default: %(default)s)",
    )


def add_targets(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects the targets to compile for."""
    parser.add_argument(
        "--target",
        action="append",
        required=True,
        metavar="NAME",
        help=f"{AMD_EXAMPLE}, {NVIDIA_EXAMPLE}, cpu …; repeatable",
    )


def parse_targets(names: list[str]) -> tuple[Target, ...]:
    """Return the named targets, each once, in order. Raises ``UserError`` for an unknown one."""
    return tuple(find(name) for name in dict.fromkeys(names))


def code_cache(arguments: argparse.Namespace) -> CodeCache:
    return CodeCache(arguments.cache.absolute())


def toolchains(arguments: argparse.Namespace) -> tuple[ToolchainResult, ...]:
    """Return every compiler that is available, and why the others are not."""
    return find_toolchains(_search(arguments))


def toolchain_for(arguments: argparse.Namespace) -> ToolchainFor:
    """Return the function that selects the compiler for a target and a kind of source."""
    compilers = cache(lambda target: find_target_toolchains(target, _search(arguments)))
    return cache(lambda target, source="": pick_toolchain(compilers(target), target, source))


def _search(arguments: argparse.Namespace) -> Search:
    path = os.pathsep.join(os.get_exec_path())
    return Search(arguments.rocm, path, code_cache(arguments))
