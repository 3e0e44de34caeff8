"""Whole models on CPU emulation: how long they take, how many kernels they are, and whether the
large ones' kernels are right.

    python -m tests.benchmarks.large_models [counts] [targets] [bert] [small] [gpt2] [llama]

- ``counts``: operations of each sample before fusion, kernels after it, distinct kernels.
- ``targets``: every sample compiled for every one of AMD's GPUs.
- ``bert``: bert_2layer at batch 4, length 128; the goal is at most 60 s on two cores.
- ``small``: the whole graphs of the other small samples, verified at their hints.
- ``gpt2``: every distinct kernel of gpt2_124m at its full size (the model has no symbol).
- ``llama``: every distinct kernel of llama3_8b_1layer, as compiled for the file's own hint, at a
  sequence of 2 (``--bind s70=N`` for another). Tiles made for 2,048 rows are computed whole.

Without a name all of them run, the last two for some minutes each. Times are the emulation's and
of this machine; memory is the most that this process and the largest of its children took.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from scheduler import pipeline, reference, samples
from scheduler.benchmark.measure import Limits
from scheduler.benchmark.verification import Finding, rebuild_schedule, run_once, verify
from scheduler.build.cache import CodeCache
from scheduler.bundle import reader
from scheduler.ir.bindings import hint_bindings, parse_bindings
from scheduler.runtime.devices import open_device
from scheduler.targets import find
from tests.benchmarks.printing import say
from tests.support.whole_models import MACHINES, assert_valid_code, compiled

SMALL = ("gpt2_2layer", "llama_2layer", "bert_2layer", "vit_2layer", "resnet_small")
LARGE = ("gpt2_124m", "llama3_8b_1layer")
# Of one kernel: the emulation multiplies some 0.3e9 pairs a second a core.
LIMITS = Limits(check_s=3600.0)


def main() -> int:
    """Run the parts that are asked for; 1 when a kernel was wrong."""
    parts: dict[str, Callable[[CodeCache, Path, argparse.Namespace], bool]] = {
        "counts": counts,
        "targets": every_target,
        "bert": bert,
        "small": small,
        "gpt2": lambda *given: kernels("gpt2_124m", *given),
        "llama": lambda *given: kernels("llama3_8b_1layer", *given),
    }
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*parts, []], metavar="PART")
    parser.add_argument("--bind", action="append", default=[], metavar="SYMBOL=N")
    options = parser.parse_args()
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    right = True
    with tempfile.TemporaryDirectory() as folder:
        cache = CodeCache(Path(folder) / "cache")
        for name in options.parts or parts:
            right &= parts[name](cache, Path(folder), options)
    return 0 if right else 1


def counts(cache: CodeCache, folder: Path, options: argparse.Namespace) -> bool:
    """Kernels unfused and fused."""
    say("\nmodel\tunfused\tfused\tdistinct")
    for model in (*SMALL, *LARGE):
        lowered = pipeline.lower(pipeline.load(samples.path(model)))
        fused = pipeline.schedule(lowered)
        made = pipeline.generate(fused, [find("gfx942")])
        unfused = len(pipeline.schedule(lowered, fuse=False).nodes)
        say(f"{model}\t{unfused}\t{len(fused.nodes)}\t{len(made.kernels)}")
    return True


def bert(cache: CodeCache, folder: Path, options: argparse.Namespace) -> bool:
    """Seconds of the kernels of one whole run, copies of inputs and outputs included."""
    bundle = compiled("bert_2layer", ["cpu"], cache, folder / "bert")
    bindings = hint_bindings(bundle.manifest.symbols)
    inputs = reference.random_inputs(bundle.graph, bindings, np.random.default_rng(0))
    plan = rebuild_schedule(bundle)
    start = time.perf_counter()
    run_once(bundle, plan, open_device("cpu"), bindings, inputs)
    seconds = time.perf_counter() - start
    sizes = [
        f"{one.name} {inputs[one.name].shape}" for one in bundle.graph.inputs if not one.source_name
    ]
    say(f"\nbert_2layer, {', '.join(sizes)}: {seconds:.1f} s (goal 60)")
    return True


def small(cache: CodeCache, folder: Path, options: argparse.Namespace) -> bool:
    """Kernels and whole graphs at the hints."""
    say("\nmodel\tchecks\tworst error/bound\tseconds")
    right = True
    for model in SMALL:
        bundle = compiled(model, ["cpu"], cache, folder / model)
        start = time.perf_counter()
        findings = verify(bundle, "cpu", hint_bindings(bundle.manifest.symbols), limits=LIMITS)
        right &= _print_findings(findings)
        worst = max(finding.ratio for finding in findings)
        say(f"{model}\t{len(findings)}\t{worst:.3f}\t{time.perf_counter() - start:.1f}")
    return right


def kernels(model: str, cache: CodeCache, folder: Path, options: argparse.Namespace) -> bool:
    """Every distinct kernel of a large model, one after the other."""
    bundle = compiled(model, ["cpu"], cache, folder / model)
    bindings = _reduced(bundle, options.bind)
    say(f"\n{model} at {bindings or 'its full size'}\nkernel\terror/bound\tseconds")
    start = last = time.perf_counter()

    def tell(finding: Finding) -> None:
        nonlocal last
        now = time.perf_counter()
        say(f"{finding.name}\t{finding.ratio:.3f}\t{now - last:.1f}")
        last = now

    findings = verify(bundle, "cpu", bindings, whole_graph=False, limits=LIMITS, on_finding=tell)
    own, child = (
        resource.getrusage(who).ru_maxrss / 2**20
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    say(
        f"{len(findings)} kernels in {time.perf_counter() - start:.0f} s;"
        f" at most {own:.1f} GiB here, {child:.1f} GiB in the worker"
    )
    return _print_findings(findings)


def _reduced(bundle: reader.Bundle, given: list[str]) -> Mapping[str, int]:
    """The least sizes that the model allows, or those given."""
    symbols = bundle.manifest.symbols
    return {n: s.minimum for n, s in symbols.items()} | parse_bindings(given, symbols)


def _print_findings(findings: list[Finding]) -> bool:
    for finding in findings:
        if not finding.passed:
            say(f"WRONG: {finding.name} {finding.output}: {finding.detail}")
    return all(finding.passed for finding in findings)


def every_target(cache: CodeCache, folder: Path, options: argparse.Namespace) -> bool:
    """Every sample for every one of AMD's GPUs that the tests try some of."""
    say("\nmodel\tkernels\ttargets\tseconds")
    for model in (*SMALL, *LARGE):
        start = time.perf_counter()
        bundle = compiled(model, tuple(MACHINES), cache, folder / f"{model}-all")
        assert_valid_code(bundle, tuple(MACHINES))
        seconds = time.perf_counter() - start
        say(f"{model}\t{len(bundle.manifest.kernels)}\t{len(MACHINES)}\t{seconds:.1f}")
    return True


if __name__ == "__main__":
    sys.exit(main())
