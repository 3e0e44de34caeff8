"""How much CPU time the largest bodies of results take until they are read or refused.

    python -m tests.benchmarks.reading [--bytes 30000000] [--limit 60] [--only TEXT]

Bodies of every format: as their tools write them, of rows as short as they can be, and lines of
logs that make a regular expression with a fault go through them again and again. Each is read in a
process of its own. Exits with 1 where twice the bytes take more than three times as long (and more
than a second), or where a body is not done after ``--limit`` seconds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from time import process_time

from scheduler.errors import UserError
from scheduler.results.points import importer
from scheduler.results.points.model import ImportContext
from scheduler.text import one_line
from tests.benchmarks.printing import say

SAID = ImportContext(now=datetime(2026, 11, 22, tzinfo=UTC), device="EPYC", revision="abc")
Body = Callable[[int], str]


def rows(head: str, row: str, end: str, between: str = ",") -> Body:
    """``row`` with its place in it, as often as there is room."""

    def body(size: int) -> str:
        parts, left, place = [], size, 0
        while left > 0:
            parts.append(row.replace("%", str(place)))
            left -= len(parts[-1]) + len(between)
            place += 1
        return head + between.join(parts) + end

    return body


def repeated(head: str, unit: str, end: str) -> Body:
    return lambda size: head + unit * (size // len(unit)) + end


_GOOGLE = '{"context": {}, "benchmarks": ['
_PYTEST = '{"machine_info": {}, "benchmarks": ['
_KILN = '{"kind": "kiln points", "schema": 1, "defaults": {"device": "a", "metric": "time"}, '
_RUN = '"real_time":1.5,"cpu_time":1.25'
_BLOCK = "AUTOTUNE mm(2x2, 2x2)\n"
_POINT = '{"problem":"mm %","value":1.5,"samples":['
_NESTED = json.dumps({"a": [[]] * 750})

BODIES: dict[str, Body] = {
    "google-benchmark: rows": rows(_GOOGLE, f'{{"name":"b%",{_RUN}}}', "]}"),
    "google-benchmark: repetitions": rows(_GOOGLE, f'{{"name":"b",{_RUN}}}', "]}"),
    "google-benchmark: failures": rows(_GOOGLE, '{"name":"b%","skipped":true}', "]}"),
    "google-benchmark: counters": rows(f'{_GOOGLE}{{"name":"b",{_RUN},', '"c%":1', "}]}"),
    "google-benchmark: a counter a row": rows(_GOOGLE, f'{{"name":"b",{_RUN},"c%":1}}', "]}"),
    "pytest-benchmark: rows": rows(_PYTEST, '{"name":"b%","stats":{"median":1.5}}', "]}"),
    "pytest-benchmark: samples": rows(
        f'{_PYTEST}{{"name":"b","stats":{{"data":[', "0.0012345", "]}}]}"
    ),
    "pytest-benchmark: whole samples": rows(
        f'{_PYTEST}{{"name":"b","stats":{{"data":[', "1", "]}}]}"
    ),
    "bmf: benchmarks": rows("{", '"b%":{"latency":{"value":1}}', "}"),
    "bmf: measures": rows('{"b":{', '"m%":{"value":1}', "}}"),
    "bmf: values": rows('{"b":[{"measures":{"m":{', '"p%":1', "}}}]}"),
    "bmf: sets of parameters": rows(
        '{"b":[', '{"parameters":{"n":%},"measures":{"m":{"value":1}}}', "]}"
    ),
    "bmf: one set of parameters": rows('{"b":[', '{"measures":{"m":{"p%":1}}}', "]}"),
    "kiln: samples": lambda size: rows(
        f'{_KILN}"points": [',
        _POINT + ",".join(["0.12345"] * (size // 10_000 // 8 - 10)) + "]}",
        "]}",
    )(size - 700_000),
    "kiln: samples of 0": rows(
        f'{_KILN}"points": [', _POINT + ",".join(["0.0"] * 1_000) + "]}", "]}"
    ),
    "kiln: samples of all points": lambda size: (
        f'{_KILN[:-3]}, "value": 1, "samples": [{",".join(["0"] * 1_000)}]}}, "points": ['
        + ",".join(f'{{"problem":"{place}"}}' for place in range(min(size // 20, 10_000)))
        + "]}"
    ),
    "kiln: nested conditions": rows(
        f'{_KILN}"points": [',
        f'{{"problem":"mm %","value":1,"conditions":{{"attributes":{_NESTED}}}}}',
        "]}",
    ),
    "autotune: blocks": rows("", f"{_BLOCK}  x 0.1 ms 100.0%\nAUTOTUNE takes\n", "", ""),
    "autotune: choices": rows(_BLOCK, "  x% 0.1234 ms 100.0% BLOCK_M=64, BLOCK_N=64\n", "", ""),
    "autotune: short choices": rows(_BLOCK, "x 1 ms 1%\n", "", ""),
    "autotune: operands": rows(_BLOCK, "strides: %\n", "", ""),
    "autotune: processes": rows("w ", "[%]: x 1 ms 1%\n", "", ""),
    "autotune: a training's log": rows(
        "", "step % loss 2.71828 lr 0.0003 grad norm 1.5\n", _BLOCK, ""
    ),
    "autotune: empty lines": repeated(_BLOCK, "\n", ""),
    "autotune: ends of lines inside of a line": repeated(_BLOCK + "x 1 ms 1%", "\\n", ""),
    "autotune: choices inside of a line": rows(_BLOCK, "x% 1 ms 1%\\n", "", ""),
    **{
        f"autotune: {head[-9:]!r} {unit!r} … {end!r}": repeated(head, unit, end)
        for unit in ("1", " ", "\\", "AUTOTUNE ", "[", "]", "a ", "1.", "1:", ")(", "\\r")
        for head, end in ((_BLOCK + "x 0.1 ms 1%", "x"), (_BLOCK, " x 0.1 ms 1%"))
    },
    "autotune: words of a choice": repeated(_BLOCK, "x 1 ms 1 ", ""),
    "autotune: digits of a time": repeated(_BLOCK + "x ", "1", " ms 1%"),
    "autotune: digits of a share": repeated(_BLOCK + "x 1 ms ", "1", ""),
    "autotune: colours": repeated(_BLOCK + "x 1 ms ", "\x1b[1", "1%"),
    "autotune: words of a head": repeated("", "AUTOTUNE x(", ""),
    "no JSON: quotes": repeated('{"', '\\"', ""),
    "no JSON: blanks": repeated("[nan,", " \n", ""),
    "no JSON: brackets": repeated("", "[", ""),
}


def seconds(body: str, limit: int) -> tuple[float, str]:
    """CPU time of reading it, and what came of it. The time is infinite beyond the limit."""
    ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_read, args=(body, limit, theirs))
    child.start()
    theirs.close()
    try:
        took, answer = ours.recv()
    except EOFError:
        took, answer = float("inf"), f"not done after {limit} s"
    child.join()
    return took, answer


def _read(body: str, limit: int, answers: Connection) -> None:
    data = body.encode()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    begun = process_time()
    try:
        found = importer.read(data, SAID)
        answer = f"{len(found.points)} points, {len(found.left_out)} left out"
    except UserError as error:
        answer = one_line(str(error), 90)
    answers.send((process_time() - begun, answer))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=30_000_000)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    failed = 0
    for name, body in BODIES.items():
        if args.only not in name:
            continue
        half, _ = seconds(body(args.bytes // 2), args.limit)
        took, answer = seconds(body(args.bytes), args.limit)
        wrong = took > max(1.0, 3 * half) or took == float("inf")
        failed += wrong
        say(f"{took:7.2f} s  {half:7.2f} s of half  {'! ' if wrong else ''}{name}: {answer}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
