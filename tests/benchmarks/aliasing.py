"""Random programs of views, copies and writes, beside torch: ``python -m tests.benchmarks.aliasing
[--programs 10000] [--from SEED] [--workers N]``.

Each is exported, read back, and run by the reference and by the operations it is lowered to, fused
and not; results and written inputs and buffers must be torch's. Those with sizes that are not
known are exported at one and run at another. A program may be refused in one line; that is
counted. Prints each that is wrong with its seed and text; the same seed is the same program. Exits
with 1 when one was wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from scheduler.errors import UserError
from scheduler.ir.ops import UnsupportedOpError
from tests.benchmarks.printing import say
from tests.support.aliasing_programs import program
from tests.unit.torch_export import agree

BATCH = 10
NOT_EXPORTED = "not exported"
RIGHT, REFUSED, WRONG = "right", "refused", "wrong"


def outcome(seed: int) -> tuple[str, str]:
    """What became of a program, and what is to be said of it."""
    import torch

    drawn = program(seed)
    options: dict[str, Any] = {}
    if drawn.dynamic:
        rows = torch.export.Dim("rows", min=2, max=64)
        options["dynamic_shapes"] = {"x": {0: rows}, "y": {0: rows}}
        options["run_with"] = drawn.inputs(7)
    try:
        shapes = {"dynamic_shapes": options.get("dynamic_shapes")}
        torch.export.export(drawn.module(), drawn.inputs(4), **shapes)
    except Exception as error:  # noqa: BLE001 -- whatever torch says
        return NOT_EXPORTED, str(error).partition("\n")[0]
    try:
        with tempfile.TemporaryDirectory() as folder:
            # Some values are f32 on the way, which the reference does not round to.
            args = drawn.inputs(4)
            agree(drawn.module(), args, Path(folder), least_tolerance=1e-5, **options)
    except (UserError, UnsupportedOpError) as error:
        return REFUSED, str(error)
    except Exception:  # noqa: BLE001 -- a fault of ours
        return WRONG, traceback.format_exc(limit=-3)
    return RIGHT, ""


def batch(seeds: range) -> list[tuple[int, str, str]]:
    warnings.simplefilter("ignore")
    return [(seed, *outcome(seed)) for seed in seeds]


def main() -> int:
    """Exit status 1 where a program is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="SEED")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    end = options.first + options.programs
    batches = [range(a, min(a + BATCH, end)) for a in range(options.first, end, BATCH)]
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with ProcessPoolExecutor(options.workers) as pool:
        for done in pool.map(batch, batches):
            for seed, word, why in done:
                counts[word] += 1
                if word == REFUSED:
                    reasons[why.partition(": ")[2][:70]] += 1
                if word == WRONG:
                    say(f"WRONG {seed}\n{program(seed).text}{why}")
            say(", ".join(f"{n} {word}" for word, n in sorted(counts.items())))
    for reason, n in reasons.most_common(20):
        say(f"{n:6} refused: {reason}")
    return 1 if counts[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
