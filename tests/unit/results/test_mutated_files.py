"""Damaged files of results of every format: each is read or refused in one line, and no point holds
a number that is not in its own rows. The long version is ``python -m tests.attacks.result_files``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.results.points import importer
from scheduler.results.points.formats import google_benchmark
from tests.attacks.result_files import FILES, hostile_file, take

COUNT = 720


@pytest.mark.full(but=2)
@pytest.mark.parametrize("start", range(0, COUNT, 120))
def test_mutated_files_are_read_or_refused_in_one_line(tmp_path: Path, start: int) -> None:
    path = tmp_path / "file"
    refused = 0
    for index in range(start, start + 120):
        path.write_bytes(hostile_file(1, index))
        refused += bool(take(path))
    assert 12 < refused < 108, "nearly all of the faults do the same"


def test_a_reader_that_takes_another_rows_number_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes((FILES / "google_benchmark.json").read_bytes())
    assert take(path) == ""

    def shuffled(content, context):  # type: ignore[no-untyped-def]
        rows = content["benchmarks"]
        times = [row["real_time"] for row in rows]
        for row, time in zip(rows, times[-1:] + times[:-1], strict=True):
            row["real_time"] = time
        return google_benchmark.read(content, context)

    kind = importer.FORMATS["google-benchmark"]
    broken = importer.Format(kind.title, kind.accepts, shuffled)
    monkeypatch.setitem(importer.FORMATS, "google-benchmark", broken)
    with pytest.raises(AssertionError, match="BM_"):
        take(path)
