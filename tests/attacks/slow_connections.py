"""Slow clients of every kind hold on to the web server while others ask for pages."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.support.web_server import SLOW, answer, holding, served


def main() -> int:
    """0 where every reader got an answer within the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=100, help="slow clients of each kind")
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for an answer")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        place = stack.enter_context(served(Path(folder)))
        for begun in SLOW.values():
            stack.enter_context(holding(place, options.each, begun))
        times = [_answered(place) for _ in range(options.readers)]
    late = sum(seconds > options.limit for seconds in times)
    print(f"{options.each * len(SLOW)} slow connections of {len(SLOW)} kinds")
    print(f"{len(times)} readers: {late} waited longer than {options.limit:g} s, ", end="")
    print(f"at most {1000 * max(times):.0f} ms")
    return 1 if late else 0


def _answered(place: Path) -> float:
    """Seconds until a whole answer; endless without one."""
    began = time.monotonic()
    try:
        assert answer(place).status == 200
    except OSError:
        return float("inf")
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
