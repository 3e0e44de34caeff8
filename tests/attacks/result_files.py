"""Damaged files of results, of every format that Kiln reads: each is read or refused in one line,
and no point holds a number that is not in its own rows of the file.

    python -m tests.attacks.result_files [--count 20000] [--seed 0] [--only INDEX] [--jobs 2]

Each file is one that its tool wrote, or one of a kind that people report, with faults in its JSON,
its text or its bytes, made from the seed and its index alone. What else is counted as wrong:
``tests/attacks/children.py``.
"""

from __future__ import annotations

import copy
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from scheduler.errors import UserError
from scheduler.results import file as recorded_file
from scheduler.results.points import importer, native
from scheduler.results.points.model import ImportContext, Point, Points
from tests.attacks import children
from tests.attacks.mutations import (
    INTEGERS,
    JUNK,
    Mutations,
    drop_anywhere,
    junk_anywhere,
    mutated,
    nest,
    places,
)
from tests.support import recorded

FILES = Path(__file__).parents[1] / "unit" / "results" / "files"
SAID = ImportContext(now=datetime(2026, 11, 21, 12, tzinfo=UTC), device="H200", revision="abc")
Pairs = list[tuple[str, Any]]  # a JSON object, names that stand in it twice and all
_ROWS = ("points", "benchmarks")
_PREFIXES = {
    **{"pytest": "pytest-benchmark", "pb": "pytest-benchmark"},
    **{"google": "google-benchmark", "gb": "google-benchmark"},
    **{"bencher.json": "bmf", "bmf": "bmf", "autotune.log": "autotune", "at": "autotune"},
}
_FACTORS = (1.0, 1e3, 1e6, 1e9)  # of a unit of time in nanoseconds
_HEAD, _CHOICE = re.compile(r"AUTOTUNE (\w+\([^)]*\))"), re.compile(r" (\S+) ms ")


# ---- the files


@cache
def bases() -> dict[str, list[str]]:
    """Undamaged texts by format."""
    found: dict[str, list[str]] = {}
    for path in sorted([*FILES.glob("*.*"), *FILES.glob("odd/*.*")]):
        found.setdefault(_PREFIXES[path.name.partition("_")[0]], []).append(path.read_text())
    rows = [
        {"problem": f"mm {n}", "sizes": {"M": 64 + n}, "value": 1.5 + n, "low": 1.25, "high": 9.5}
        for n in range(3)
    ]
    defaults = {"device": "H200", "metric": "time", "unit": "ns", "revision": {"name": "v1"}}
    rows[0] |= {"samples": [1.5, 2.5], "conditions": {"driver": "6", "config": {"tile": 1}}}
    points = {"kind": "kiln points", "schema": 1, "defaults": defaults, "points": rows}
    whole = recorded_file.to_json(recorded.recorded())
    found |= {"kiln": [json.dumps(points)], "kiln results": [json.dumps(whole)]}
    found["autotune"].append(interleaved())
    return found


def interleaved() -> str:
    """Two ranks whose lines alternate, with times that no other block has."""
    ranks = [
        [f"AUTOTUNE mm({n}x8, 8x8)", "strides: [8, 1], [8, 1]", "dtypes: torch.int8, torch.int8"]
        + [f"  mm_{k} 0.{n}{k}11 ms {100 - k}.0% X=1" for k in range(3)]
        + ["SingleProcess AUTOTUNE benchmarking takes 1.0 seconds for 3 choices"]
        for n in (4, 5)
    ]
    return "\n".join(
        f"[rank{rank}]: {line}"
        for both in zip(*ranks, strict=True)
        for rank, line in enumerate(both)
    )


def hostile_file(seed: int, index: int) -> bytes:
    """The bytes of one file: the formats take turns."""
    random = Random(f"{seed}/{index}")
    formats = sorted(bases())
    name = formats[index % len(formats)]
    text = random.choice(bases()[name])
    try:
        document = json.loads(text)
    except ValueError:
        lines = text.splitlines()
        for _ in range(random.choice((1, 1, 2, 3))):
            if lines:
                random.choice(_LINE_FAULTS)(lines, random)
        text = "\n".join(lines)
    else:
        text = mutated(document, random, _FAULTS)
        if name == "kiln results" and random.random() < 0.8:
            text = _signed(text)
    if random.random() < 0.1:
        text = random.choice(_TEXT_FAULTS)(text, random)
    data = bytearray(text.encode(errors="surrogatepass"))
    if data and random.random() < 0.05:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def _signed(text: str) -> str:
    """With the digest of what it holds now, so that the rest is read too."""
    try:
        body = {key: value for key, value in json.loads(text).items() if key != "digest"}
        return json.dumps(body | {"digest": recorded_file.digest_of(body)})
    except (ValueError, AttributeError):
        return text


def _rows(document: Any, random: Random) -> Any:
    """A list of rows or an object of them, whatever the format."""
    return random.choice([p[k] for p, k in places(document) if isinstance(p[k], list | dict)])


def _repeat_row(document: Any, random: Random) -> None:
    rows = _rows(document, random)
    if isinstance(rows, list):
        rows.insert(random.randrange(len(rows) + 1), random.choice(rows))
    else:
        rows[f"{random.choice(list(rows))}'"] = random.choice(list(rows.values()))


def _shuffle_rows(document: Any, random: Random) -> None:
    random.shuffle(_rows(document, random))


def _swap_values(document: Any, random: Random) -> None:
    (one, key), (two, other) = random.sample(list(places(document)), 2)
    one[key], two[other] = copy.deepcopy(two[other]), copy.deepcopy(one[key])


def _rename(document: Any, random: Random) -> None:
    holder, key = random.choice([p for p in places(document) if isinstance(p[0], dict)])
    keys = {k for p, k in places(document) if isinstance(p, dict)}
    new = random.choice([*sorted(keys), "", "\0", "x" * 600, key.upper()])
    holder[new] = holder.pop(key)


def _change_number(document: Any, random: Random) -> None:
    numbers = [(p, k) for p, k in places(document) if type(p[k]) in (int, float)]
    holder, key = random.choice(numbers)
    holder[key] = random.choice([-holder[key], 0, holder[key] / 3, str(holder[key]), *INTEGERS])


def _not_finite(document: Any, random: Random) -> None:
    numbers = [(p, k) for p, k in places(document) if type(p[k]) in (int, float)]
    holder, key = random.choice(numbers)
    holder[key] = random.choice([float("nan"), float("inf"), -float("inf"), None])


_FAULTS: Mutations = {
    junk_anywhere: 4,
    drop_anywhere: 4,
    nest: 1,
    _repeat_row: 3,
    _shuffle_rows: 1,
    _swap_values: 3,
    _rename: 3,
    _change_number: 4,
    _not_finite: 3,
}


def _some_line(lines: list[str], random: Random, change: Callable[[str], list[str]]) -> None:
    place = random.randrange(len(lines))
    lines[place : place + 1] = change(lines[place])


def _swap_lines(lines: list[str], random: Random) -> None:
    place = random.randrange(len(lines))
    lines[place : place + 2] = reversed(lines[place : place + 2])


def _cut(lines: list[str], random: Random) -> None:
    del lines[random.randrange(len(lines)) :]
    lines.append("cut sh")


def _garble(lines: list[str], random: Random) -> None:
    junk = [str(one) for one in (*JUNK, "-0.1", "1e5", "9" * 400, "ms", "%", "inf ms 0.0%", "(((")]
    place = random.randrange(len(lines))
    words = lines[place].split(" ")
    words[random.randrange(len(words))] = random.choice(junk)
    lines[place] = " ".join(words)


_LINE_FAULTS: list[Callable[[list[str], Random], None]] = [
    lambda lines, random: _some_line(lines, random, lambda line: []),
    lambda lines, random: _some_line(lines, random, lambda line: [line, line]),
    lambda lines, random: _some_line(lines, random, lambda line: [line + "\\n"]),
    lambda lines, random: _some_line(lines, random, lambda line: [line[:9], line[9:]]),
    lambda lines, random: _some_line(lines, random, lambda line: ["W loss 3.1 ms 4%", line]),
    _swap_lines,
    _cut,
    _garble,
]
_TEXT_FAULTS: list[Callable[[str, Random], str]] = [
    lambda text, random: f"***WARNING*** {{noisy}}\n{text}",
    lambda text, random: f"{text}\n2 tests passed\n",
    lambda text, random: f"{text}{text}",
    lambda text, random: text[: random.randrange(len(text) + 1)],
    lambda text, random: text[random.randrange(len(text) + 1) :],
    lambda text, random: "\ufeff" + text,
    lambda text, random: text.replace('": ', '": 1, "x": ', 1),
    lambda text, random: re.sub(r'"(\w+)": ([^,{}\[\]]+)', r'"\1": 7, "\1": \2', text, count=1),
    lambda text, random: text.replace("\n", "\\n"),
    lambda text, random: "\n" * 50_000 + text,
    lambda text, random: text + "AUTOTUNE mm(" * 20_000,
]


# ---- what becomes of them


def take(path: Path) -> str:
    """What the file was refused for, or "" where it was read. ``AssertionError`` where a number of
    it is another row's or nobody's."""
    data = path.read_bytes()
    try:
        try:
            found = importer.read(data, SAID)
        except UserError as error:
            if b"kiln results" not in data:
                return children.short_line(error)
            recorded_file.read(path)  # JSON of its own, which no address takes
            return ""
    except UserError as error:
        return children.short_line(error)
    _check(data.decode("utf-8-sig"), found)
    return ""


def _check(text: str, found: Points) -> None:
    written = native.write(found.points)  # what our own format has no room for, no row has
    assert native.read(written, SAID).points == found.points
    json.dumps([(one.where, one.reason) for one in found.left_out], allow_nan=False)
    for one in found.left_out:
        assert one.where.isprintable() and one.reason.isprintable(), one
        assert "" not in (one.where, one.reason), one
    try:
        document = json.loads(text, object_pairs_hook=_as_pairs)
    except ValueError:
        _check_log(text, found)
        return
    rows = [(set(_texts(row)), set(_numbers(row))) for row in _rows_of(document)]
    for point in found.points:
        _check_point(point, rows)


def _as_pairs(pairs: Pairs) -> Pairs:
    return pairs or [("", None)]  # an object is never taken for an empty list


def _rows_of(document: Pairs) -> Iterator[Any]:
    """What each row of the file says: of BMF a benchmark with its name."""
    for name, value in document:
        if name in _ROWS and isinstance(value, list):
            defaults = [v for k, v in document if k == "defaults"]
            yield from ([*defaults, row] for row in value)
        else:
            yield [(name, value)]


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _texts(one)


def _numbers(part: Any) -> Iterator[float]:
    if isinstance(part, int | float) and not isinstance(part, bool):
        try:
            yield float(part)
        except OverflowError:
            yield float("inf")
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _numbers(one)


def _check_point(point: Point, rows: list[tuple[set[str], set[float]]]) -> None:
    name = point.series.problem
    own = [
        numbers
        for texts, numbers in rows
        if any(text and (name.startswith(text) or text.startswith(name)) for text in texts)
    ]
    given = {number * factor for numbers in own for number in numbers for factor in _FACTORS}
    assert own, f"no row is called {name!r}"
    assert set(point.samples) <= given, f"{name!r}: samples {set(point.samples) - given}"
    figures = {point.value, point.low, point.high} - {None}
    if point.samples:
        figures -= {statistics.median(point.samples)}
    assert figures <= given, f"{name!r}: {figures - given}"
    assert point.n in given | {1, len(point.samples)}, f"{name!r}: n {point.n}"


def _check_log(text: str, found: Points) -> None:
    """A time that one block of the undamaged logs has is no other call's."""
    owners: dict[str, set[str]] = {}
    for base in bases()["autotune"]:
        calls: dict[str, str] = {}
        for line in base.splitlines():
            rank = line[:7] if line.startswith("[rank") else ""
            if head := _HEAD.search(line):
                calls[rank] = head[1]
            elif choice := _CHOICE.search(line):
                owners.setdefault(choice[1], set()).add(calls[rank])
    calls_known = set().union(*owners.values())
    for point in found.points:
        (token, *_) = [
            one[1] for one in _CHOICE.finditer(text) if _is_time(one[1], point.value)
        ] or [""]
        assert token, f"{point.series.problem!r}: {point.value} ns is in no line"
        call = _HEAD.match(f"AUTOTUNE {point.series.problem}")
        if call is not None and call[1] in calls_known and token in owners:
            assert call[1] in owners[token], f"{point.series.problem!r} got {token} ms"


def _is_time(token: str, nanoseconds: float) -> bool:
    try:
        return float(token) * 1e6 == nanoseconds
    except ValueError:
        return False


main = partial(children.main, "tests.attacks.result_files", __doc__)

if __name__ == "__main__":
    sys.exit(main())
