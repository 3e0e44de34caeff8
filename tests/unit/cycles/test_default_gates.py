"""Defaults stay within a tenth of the best candidate that was found, for some of the shapes.

``best_candidates.json`` has those candidates, as ``python -m tests.benchmarks.cycles defaults``
found them on gfx942; both are modelled again here, so that a change of the model, or of all
kernels, moves them together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from scheduler import pipeline
from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.targets import find
from tests.benchmarks.cycles.candidates import choosing, longest
from tests.benchmarks.cycles.defaults import WITHIN
from tests.benchmarks.cycles.shapes import read
from tests.support.families import modelled

pytestmark = pytest.mark.long

BEST: Mapping[str, str] = json.loads(Path(__file__).with_name("best_candidates.json").read_text())


@pytest.mark.parametrize("name", BEST)
def test_a_default_is_within_a_tenth_of_the_best(
    name: str, cache: CodeCache, toolchain: Toolchain
) -> None:
    plan, target = next(one for one in read() if one.name == name).plan(), find("gfx942")
    template = pipeline.scheduling(plan, (target,)).template(longest(plan))
    best = next(each for each in template.configs() if template.describe(each) == BEST[name])
    assert template.reject(best) is None
    times = [
        sum(
            one.report.time_us.mid
            for one in modelled(plan, target, toolchain, cache, choosing(template.generate(config)))
        )
        for config in (template.default_config(), best)
    ]
    assert times[0] <= WITHIN * times[1], template.describe(template.default_config())
