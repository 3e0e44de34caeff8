"""A stated sample of torch's OpInfo database: one use of each op (``opinfo/sample.py``).

By the reference beside torch, and by operations, fused, beside the reference; the uses of every
sixteenth op also by kernels on the emulation. ``python -m tests.benchmarks.opinfo`` takes all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from tests.benchmarks.opinfo import report
from tests.benchmarks.opinfo.judging import Level, Tools, judge
from tests.benchmarks.opinfo.sample import stated_sample

SHARDS = 8
LEAST = 0.99  # of each part, exceptions left out: one that fails is too many


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("shard", range(SHARDS))
def test_one_use_of_each_op(shard: int, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    found = list(judge(list(stated_sample(shard, SHARDS)), Tools(Level.INTERPRET, tmp_path)))
    assert report.counts(found).judged > 700 // SHARDS / 2
    assert report.counts(found).rate >= LEAST, "\n".join(report.lines(found))


@pytest.mark.long
def test_kernels_of_every_sixteenth_op(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    chosen = list(stated_sample(0, 16))
    found = list(judge(chosen, Tools(Level.KERNELS, tmp_path / "cache", flags="-O0")))
    assert report.counts(found).rate >= LEAST, "\n".join(report.lines(found))
