"""Check every kernel and the whole graph of a bundle against a float64 reference.

The inputs are random. With --oracle torch, the reference is checked against torch too."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from scheduler import untrusted
from scheduler.benchmark.measure import Limits
from scheduler.benchmark.sandbox_paths import kernel_memory_limit
from scheduler.benchmark.verification import Finding, device_target, verify
from scheduler.bundle.reader import Bundle, open_bundle
from scheduler.commands import options
from scheduler.commands.output import print_json, print_progress, print_table
from scheduler.commands.trust import add_trust, confirm_trust
from scheduler.errors import UserError
from scheduler.ir.bindings import Bindings, format_bindings, trial_bindings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", type=Path, metavar="DIR", help="folder of the bundle")
    options.add_device(parser)
    options.add_bindings(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default: %(default)s)")
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="S",
        help="seconds per kernel (default: %(default)s)",
    )
    add_trust(parser)
    parser.add_argument("--kernels-only", action="store_true", help="skip the whole graph")
    parser.add_argument(
        "--oracle",
        choices=["torch"],
        help="also compare the reference with torch's results for --model",
    )
    parser.add_argument(
        "--model", type=Path, metavar="FILE.pt2", help="the file from which the bundle was compiled"
    )
    options.add_model_name(parser)


def run(arguments: argparse.Namespace) -> int:
    """Verify at the bindings given, or at the least, a prime and the hint of each symbol."""
    bundle = open_bundle(arguments.bundle)
    manifest = bundle.manifest
    trials: tuple[Bindings, ...]
    if arguments.bind:
        trials = (options.parse_sizes(arguments, manifest),)
    else:
        trials = trial_bindings(manifest.symbols, manifest.guards)
    limits = Limits(arguments.timeout, arguments.timeout, arguments.timeout)
    findings: list[Finding] = []
    # A model or a device that is not there is reported before anything else.
    with _model(arguments, bundle) as model:
        confirm_trust(bundle, device_target(arguments.device), arguments.trust)
        for bindings in trials:
            if not arguments.json:
                print_progress(f"sizes: {_sizes_text(bindings)}")
            findings += verify(
                bundle,
                arguments.device,
                bindings,
                seed=arguments.seed,
                whole_graph=not arguments.kernels_only,
                limits=limits,
            )
            if model is not None:
                torch_limits = untrusted.Limits(arguments.timeout, kernel_memory_limit())
                findings += [
                    Finding(**fields)
                    for fields in untrusted.compare_with_torch(
                        model, bindings, torch_limits, seed=arguments.seed
                    )
                ]
    if arguments.json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        _print_report(findings)
    return 1 if any(finding.passed is False for finding in findings) else 0


@contextmanager
def _model(arguments: argparse.Namespace, bundle: Bundle) -> Iterator[Path | None]:
    """Yield the oracle's file, which contains only the model. Raises ``UserError`` if it is missing
    or contains another model."""
    file: Path | None = arguments.model
    if (arguments.oracle is None) != (file is None):
        raise UserError("--oracle torch and --model FILE.pt2: give both or neither")
    if file is None:
        yield None
        return
    if options.load_model(arguments).digest != bundle.manifest.graph_digest:
        raise UserError(f"--model: {bundle.folder} was not compiled from {file}")
    with tempfile.TemporaryDirectory(prefix="kiln-model-") as folder:
        if arguments.model_name:
            extracted = Path(folder) / file.name
            untrusted.extract_model(file, arguments.model_name, extracted)
            file = extracted
        yield file


def _sizes_text(bindings: Mapping[str, int]) -> str:
    return format_bindings(bindings) or "fixed"


def _print_report(findings: list[Finding]) -> None:
    results = {None: "not checked: ", False: "FAILED: "}
    print_table(
        ("check", "sizes", "output", "max error", "bound", "error/bound", "result"),
        [
            (
                *(
                    finding.name,
                    _sizes_text(finding.bindings),
                    finding.output,
                    finding.max_error,
                    finding.bound,
                    finding.ratio,
                ),
                "ok" if finding.passed else f"{results[finding.passed]}{finding.detail}",
            )
            for finding in findings
        ],
    )
    checked = [finding.passed for finding in findings if finding.passed is not None]
    line = f"{len(checked)} checks, {checked.count(False)} failed"
    unchecked = len(findings) - len(checked)
    print_progress(line + (f", {unchecked} outputs not checked" if unchecked else ""))
