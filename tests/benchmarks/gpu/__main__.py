"""Kernels on an NVIDIA GPU beside torch's own, right first, times second.

    python -m tests.benchmarks.gpu [--only TEXT] [--json FILE] [--no-compile]

Each problem: Kiln's default configurations, torch eager and torch.compile (max-autotune where sizes
are static) in one process, each in a CUDA graph. Kiln's result must be as near to torch's in f32 as
twice torch's own in the problem's dtype; a problem that is not is reported and not timed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.outcome import UserError
from scheduler.runtime.cuda import CudaDevice
from tests.benchmarks.gpu.kernels import OnTorch, compiled
from tests.benchmarks.gpu.problems import Problem, problems
from tests.benchmarks.gpu.timing import timed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="problems whose name has this text")
    parser.add_argument("--json", type=Path, help="where to write the results")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--cache", type=Path, default=Path("var/code-cache"))
    options = parser.parse_args()
    torch.zeros(1, device="cuda")
    device = CudaDevice(0)
    info = device.info
    cache = CodeCache(options.cache)
    _say(f"{info.name}, {info.driver}, torch {torch.__version__}, {platform.python_version()}")
    _say(
        f"{'problem':<45} {'Kiln us':>9} {'eager':>9} {'compile':>9} {'TB/s':>6} {'TFLOP/s':>8}"
        "  error"
    )
    found, wrong = [], 0
    for problem in problems():
        if options.only not in problem.name:
            continue
        row = _measured(problem, targets.find(info.target), cache, not options.no_compile)
        found.append(row)
        wrong += "wrong" in row
        _say(_line(problem, row))
        torch.cuda.empty_cache()
        torch._dynamo.reset()
    if options.json:
        head = {
            "device": asdict(info),
            "torch": torch.__version__,
            "utc": datetime.now(UTC).isoformat(),
        }
        options.json.write_text(json.dumps({**head, "rows": found}, indent=1, default=str))
    return 1 if wrong else 0


def _measured(
    problem: Problem, target: Any, cache: CodeCache, with_compile: bool
) -> dict[str, Any]:
    torch.manual_seed(0)
    module, inputs = problem.module(), problem.inputs()
    row: dict[str, Any] = {"name": problem.name}
    with torch.no_grad():
        program = torch.export.export(module, inputs, dynamic_shapes=problem.dynamic)
        try:
            made = compiled(program, target, cache)
            kernels = OnTorch(made, program, inputs, made.bindings)
        except UserError as error:
            return {**row, "wrong": str(error)}
        kernels()
        torch.cuda.synchronize()
        row |= _judged(module, inputs, kernels.output())
        if "wrong" in row:
            return row
        row["kiln"] = asdict(timed(kernels))
        row["eager"] = asdict(timed(lambda: module(*inputs)))
        if with_compile:
            mode = None if problem.dynamic else "max-autotune-no-cudagraphs"
            faster = torch.compile(module, dynamic=bool(problem.dynamic), mode=mode)
            row["compile"] = asdict(timed(lambda: faster(*inputs)))
    return row


def _judged(module: Any, inputs: tuple[torch.Tensor, ...], got: torch.Tensor) -> dict[str, Any]:
    """How far from torch in f32, beside torch in the problem's own dtype."""
    own = module(*inputs).float()
    wide = module.float()(*(value.float() for value in inputs))
    module.to(inputs[0].dtype)
    scale = wide.abs().max().item() or 1.0
    error, allowed = ((one.float() - wide).abs().max().item() / scale for one in (got, own))
    # A rounding more than torch's: of what the graph stores in between, which torch fuses.
    bound = 2 * allowed + torch.finfo(inputs[0].dtype).eps / 2
    found = {"error": error, "torch_error": allowed}
    return (
        found if error <= bound else {**found, "wrong": f"error {error:.2e}, torch's {allowed:.2e}"}
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _line(problem: Problem, row: dict[str, Any]) -> str:
    if "wrong" in row:
        return f"{problem.name:<45} WRONG: {row['wrong']}"
    times = [
        f"{row[one]['median']:9.1f}" if one in row else " " * 9
        for one in ("kiln", "eager", "compile")
    ]
    seconds = row["kiln"]["median"] * 1e-6
    moved = f"{problem.moved_bytes / seconds / 1e12:6.2f}" if problem.moved_bytes else " " * 6
    flops = f"{problem.flops / seconds / 1e12:8.1f}" if problem.flops else " " * 8
    return f"{problem.name:<45} {' '.join(times)} {moved} {flops}  {row['error']:.1e}"


if __name__ == "__main__":
    sys.exit(main())
