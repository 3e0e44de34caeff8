"""AUTOTUNE blocks in logs of several processes, of collectors and of broken runs: a block is taken
whole, with its own times, or left out by name.

The files of ``files/odd`` follow pytorch issue 193658 (negative times) and segment-anything-fast
issue 131 (a collector that writes a line's end as two characters).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import UserError
from scheduler.results.points import importer
from scheduler.results.points.model import ImportContext, Points

FILES = Path(__file__).parent / "files"
SAID = ImportContext(now=datetime(2026, 11, 21, 12, tzinfo=UTC), device="H200", revision="abc")
END = "SingleProcess AUTOTUNE benchmarking takes 1.2 seconds and 0.5 seconds precompiling"


def read(text: str) -> Points:
    """What is in a log, which may be nothing."""
    try:
        return importer.read(text.encode(), SAID, "autotune")
    except UserError as error:
        assert "\n" not in str(error)
        return Points(())


def times(found: Points) -> list[tuple[str, int]]:
    """Problems and their times in units of 100 ns."""
    return [(one.series.problem, round(one.value / 100)) for one in found.points]


def reasons(found: Points) -> list[str]:
    return [f"{one.where}: {one.reason}" for one in found.left_out]


@dataclass(frozen=True)
class Block:
    """A block as Inductor prints it; ``best`` in units of 100 ns."""

    m: int
    best: int
    others: tuple[int, ...] = ()

    @property
    def problem(self) -> str:
        bf16 = "torch.bfloat16"
        return f"mm({self.m}x64, 64x8) strides: [64, 1], [8, 1] dtypes: {bf16}, {bf16}"

    @property
    def lines(self) -> list[str]:
        call, _, operands = self.problem.partition(" strides: ")
        strides, _, dtypes = operands.partition(" dtypes: ")
        all_times = sorted([self.best, *(self.best * more for more in self.others)])
        choices = [
            f"  {f'triton_mm_{n}' if n else 'mm'} {one / 1e4:.4f} ms {self.best / one:.1%} BLOCK=64"
            for n, one in enumerate(all_times)
        ]
        return [f"AUTOTUNE {call}", f"strides: {strides}", f"dtypes: {dtypes}", *choices, END]


BLOCKS = st.builds(
    Block,
    st.sampled_from([16, 32, 64]),  # few problems: ranks often tune the same one
    st.integers(1, 9999),
    st.lists(st.integers(2, 9), max_size=3).map(tuple),
)
RANKS = st.lists(st.lists(BLOCKS, max_size=3), min_size=1, max_size=3)
LABELS = {
    "torchrun": lambda rank, line, at: f"[rank{rank}]: {line}",
    "elastic": lambda rank, line, at: f"[default{rank}]:{line}",
    "srun": lambda rank, line, at: f"{rank}: {line}",
    "ray": lambda rank, line, at: f"(Worker pid={700 + rank}) {line}",
    "columns": lambda rank, line, at: (
        f"2025-01-18 22:59:{at:02d}.{at:03d} | info | w{rank} | {line}\\n"
    ),
    "glog": lambda rank, line, at: f"I0118 22:59:{at:02d}.{at:06d} {rank} a.py:{at}] {line}",
    "docker": lambda rank, line, at: json.dumps(
        {"ts": 1.7e9 + at / 1000, "pod": f"w-{rank}", "log": f"{line}\n", "stream": "stderr"}
    ),
    "colours": lambda rank, line, at: f"\x1b[3{rank}m[{rank}]\x1b[0m {line}",
}


def interleaved(data: st.DataObject, ranks: list[list[str]]) -> list[tuple[int, str]]:
    """Lines of all ranks with their ranks, each rank's in its order."""
    order = [rank for rank, lines in enumerate(ranks) for _ in lines]
    waiting = [iter(lines) for lines in ranks]
    return [(rank, next(waiting[rank])) for rank in data.draw(st.permutations(order))]


@pytest.mark.parametrize("label", LABELS)
@given(RANKS, st.data())
def test_each_rank_has_its_own_times(
    label: str, ranks: list[list[Block]], data: st.DataObject
) -> None:
    lines = interleaved(data, [[line for one in of for line in one.lines] for of in ranks])
    text = "\n".join(LABELS[label](rank, line, at % 60) for at, (rank, line) in enumerate(lines))
    found = read(text)
    assert sorted(times(found)) == sorted((one.problem, one.best) for of in ranks for one in of)
    assert found.left_out == ()


@given(RANKS, st.data())
def test_each_rank_has_its_own_times_where_a_collector_made_one_line_of_them(
    ranks: list[list[Block]], data: st.DataObject
) -> None:
    lines = interleaved(data, [[line for one in of for line in one.lines] for of in ranks])
    text = "".join(f"[rank{rank}]: {line}\\n" for rank, line in lines)
    for whole in (text, json.dumps({"pod": "a", "log": text.replace("\\n", "\n")})):
        found = importer.read(whole.encode(), SAID) if lines else Points(())
        assert sorted(times(found)) == sorted((one.problem, one.best) for of in ranks for one in of)


@given(RANKS, st.data())
def test_without_labels_no_problem_has_the_time_of_another(
    ranks: list[list[Block]], data: st.DataObject
) -> None:
    """And a log may end anywhere."""
    lines = interleaved(data, [[line for one in of for line in one.lines] for of in ranks])
    last = data.draw(st.integers(0, len(lines)))
    found = read("\n".join(line for _, line in lines[:last]))
    right = {(one.problem, one.best) for of in ranks for one in of}
    assert set(times(found)) <= right
    heads = sum(line.startswith("AUTOTUNE") for _, line in lines[:last])
    assert len(found.points) + len(found.left_out) in (0, heads)


@given(st.lists(BLOCKS, min_size=1, max_size=3), st.data())
def test_a_log_that_begins_inside_a_block_has_the_others(
    blocks: list[Block], data: st.DataObject
) -> None:
    lines = [line for one in blocks for line in one.lines]
    first = data.draw(st.integers(1, len(blocks[0].lines)))
    found = read("\n".join(lines[first:]))
    assert times(found) == [(one.problem, one.best) for one in blocks[1:]]


@given(st.lists(BLOCKS, min_size=1, max_size=4), st.sampled_from([r"\n", r"\r\n", r"\\n"]))
def test_a_block_that_a_collector_made_one_line_of(blocks: list[Block], newline: str) -> None:
    lines = [f'{{"rank": 1, "text": "{newline.join(one.lines)}"}}' for one in blocks]
    assert times(read("\n".join(lines))) == [(one.problem, one.best) for one in blocks]


@given(st.lists(BLOCKS, min_size=1, max_size=3), st.data())
def test_a_block_that_lacks_its_first_times_or_its_end_is_left_out(
    blocks: list[Block], data: st.DataObject
) -> None:
    lines = [one.lines for one in blocks]
    which = data.draw(st.integers(0, len(blocks) - 1))
    lost = data.draw(st.sampled_from([0, 3, len(lines[which]) - 1]))
    del lines[which][lost]
    found = read("\n".join(line for of in lines for line in of))
    assert set(times(found)) <= {(one.problem, one.best) for one in blocks}
    assert len(found.points) < len(blocks)


@given(st.lists(BLOCKS, min_size=2, max_size=3), st.data())
def test_no_line_that_two_processes_wrote_gives_a_problem_the_time_of_another(
    blocks: list[Block], data: st.DataObject
) -> None:
    """A line's end is written apart from it, or not at all."""
    lines = interleaved(data, [one.lines for one in blocks])
    joined = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=4))
    text = "".join(line + ("" if at in joined else "\n") for at, (_, line) in enumerate(lines))
    assert set(times(read(text))) <= {(one.problem, one.best) for one in blocks}


def test_series_are_those_of_a_plain_log() -> None:
    found = importer.read((FILES / "odd/at_collector.txt").read_bytes(), SAID)
    assert times(found) == [("addmm(4096x3840, 4096x1280, 1280x3840)", 788)]


CHOICES = {
    "a choice has a negative time": ["-0.0199 ms 100.0%", "0.0006 ms -3114.3%"],
    "a choice has a time of 0": ["0.0000 ms <DIVIDED BY ZERO ERROR>", "0.0640 ms 0.0%"],
    "the time of a choice is not a number": ["nan ms nan%", "0.0640 ms nan%"],
    "no choice has a time": ["inf ms nan%", "inf ms nan%"],
    "incomplete: its choices": ["0.0640 ms 31.1%", "0.0912 ms 21.8%"],
}


@pytest.mark.parametrize("reason", CHOICES)
def test_times_that_are_none_are_not_believed_nor_what_stands_beside_them(reason: str) -> None:
    good = Block(32, 7)
    choices = [f"  triton_mm_{n} {one}" for n, one in enumerate(CHOICES[reason])]
    found = read("\n".join(["AUTOTUNE mm(16x16, 16x16)", *choices, END, *good.lines]))
    assert times(found) == [(good.problem, 7)]
    assert [line.startswith(f"line 1: mm(16x16, 16x16): {reason}") for line in reasons(found)] == [
        True
    ]


def test_a_negative_time_is_named_as_one() -> None:
    with pytest.raises(UserError, match=r"^line 1: mm\(1024x1024.*: a choice has a negative time$"):
        importer.read((FILES / "odd/at_negative.txt").read_bytes(), SAID)


BLOCK = f"AUTOTUNE mm(2x2)\n  x 0.1 ms 100.0%\n{END}\n"
UNITS = [
    *(
        "1",
        " ",
        "a ",
        "1.",
        "1:",
        "-",
        ".",
        ":",
        "|",
        '"',
        "\t",
        "\r",
        "[",
        "]",
        "]:",
        "(",
        ")",
        ")(",
    ),
    *(
        "\\",
        "\\r",
        "\\n",
        "\\\\n",
        "\x1b[",
        "\x1b[1",
        "\x1b[m",
        "\xa0",
        "\u0661",
        "2026-",
        "I0118",
        ".py:",
    ),
    *("AUTOTUNE ", "AUTOTUNE x(", "AUTOTUNE takes", "SubProcess ", "strides: ", "dtypes: ,"),
    *(" ms ", "x 1 ms ", "x 1 ms 1% ", "inf ", "nan", "<DIVIDED BY ZERO"),
]


@pytest.mark.parametrize(
    "line",
    [
        "AUTOTUNE x " * 300_000,
        "AUTOTUNE x(" + ")(" * 300_000,
        "AUTOTUNE mm()\nstrides: " + " " * 1_000_000 + "x",
        "AUTOTUNE mm()\nx 0.1 ms 1%" + (" " * 1_000_000 + "x") * 2,
        "AUTOTUNE mm()\n" + "1" * 1_000_000 + " 1" * 300_000,
        "AUTOTUNE mm()\nx 0.1 ms 1%" + "\\" * 1_000_000,
    ],
    ids=["words", "parentheses", "strides", "choice", "digits", "backslashes"],
)
def test_a_long_line_of_a_log_is_gone_through_once(line: str) -> None:
    """It takes hours where the time grows with the square of the length."""
    assert read(f"{BLOCK}{line}\n").points or line.startswith("AUTOTUNE x")


@pytest.mark.long(but=4)
@pytest.mark.parametrize("unit", UNITS)
def test_a_long_line_of_anything_is_gone_through_once(unit: str) -> None:
    many = unit * (500_000 // len(unit))
    for line in (
        f"{many} x 0.1 ms 1%",
        f"x 0.1 ms {many}",
        f"x {many} ms 1%",
        f"x 0.1 ms 1%{many}x",
        f"strides: {many}",
        f"AUTOTUNE {many}",
        f"{many}AUTOTUNE y(2x2)",
    ):
        found = read(f"{BLOCK}{line}\n")
        named = [one.series.problem for one in found.points] + reasons(found)
        assert any("mm(2x2)" in name for name in named) or not named


@pytest.mark.parametrize("unit", ['\\"', '"', "\\", "nan,", "[", " \n", "{"])
def test_a_text_that_is_no_json_is_gone_through_once(unit: str) -> None:
    many = unit * (1_000_000 // len(unit))
    for text in (f'{{"{many}', f"[nan, {many}", f'{{"context": {many}'):
        with pytest.raises(UserError, match="invalid JSON"):
            importer.read(text.encode(), SAID)


def test_a_string_that_does_not_end_hides_no_number_that_is_none() -> None:
    found = importer.read(b'{"a": {"m": {"value": 1}, "n": {"value": nan}}, "\\"": {}}', SAID)
    assert len(found.points) == 1


@pytest.mark.parametrize("kind", ["autotune", importer.AUTO])
def test_a_log_has_so_many_lines(kind: str) -> None:
    block = BLOCK.encode()
    assert importer.read(block + b"\n" * (10**6 - 3), SAID, kind).points
    with pytest.raises(UserError, match="line 1000001: more than 1000000 lines: split the log"):
        importer.read(block + b"\n" * (10**6 - 2), SAID, kind)
    written = b"y 1 ms 1%" + b"\\n" * 10**6
    with pytest.raises(UserError, match="line 4: more than 1000000 lines"):
        importer.read(block + written, SAID, kind)


def test_lines_of_operands_and_processes_are_looked_for_once() -> None:
    """Each took the longer the more there were before."""
    operands = "".join(f"strides: {at}\n" for at in range(100_000))
    read(f"AUTOTUNE mm(2x2)\n{operands}")
    processes = "".join(f"w{at} x: 1 ms 1%\n" for at in range(20_000))
    assert times(read(f"{processes}{BLOCK}")) == [("mm(2x2)", 1000)]


def test_the_ends_of_all_versions() -> None:
    block = Block(16, 5)
    for end in (
        "SubProcess AUTOTUNE takes 1.5003 seconds",
        f"{END} for 20 choices and 0.1 seconds prescreening",
    ):
        assert times(read("\n".join([*block.lines[:-1], end]))) == [(block.problem, 5)]
