"""CuteDSL's default of any node: a source that is legal and right, or one line that says why there
is none."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import numpy as np
import pytest

from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.gate import check_outputs, compare_output
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.cutedsl.scheduling import CuteDSLScheduling
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.operations import GroupKind
from scheduler.ir.storage import from_storage_native
from scheduler.targets import Target, find
from tests.support import cutedsl, cutedsl_gemm
from tests.support.cutedsl_cases import BINDINGS, KINDS
from tests.unit.codegen.cutedsl import SM_90, built

TARGETS = [
    *[("sm_90",)] * 4,
    *(("sm_80",), ("sm_100",), ("sm_120",), ("sm_90", "sm_100"), ("gfx942",), ("cpu",)),
]
_MOST_POINTS = 150  # one thread after another


def default_of(plan: Schedule, node: SchedulerNode, targets: tuple[Target, ...]) -> str:
    """What became of a default that was asked for: ``served``, ``checked`` where it was run too,
    or the error."""
    scheduling = CuteDSLScheduling(plan, targets)
    legal = scheduling.legality(node).legal if scheduling.serves(node) else 0
    try:
        caller = scheduling.default(node)
    except UserError as error:
        said = str(error)
        assert not legal, f"{said}, but {legal} configurations serve"
        assert said.startswith(f"{node.name}: ")
        assert said.endswith("; use HIP C++")
        assert (
            all(target.name in said for target in targets) or "CuteDSL is supported only on" in said
        )
        return said
    assert legal
    assert scheduling.template(node).reject(caller.kernel.config) is None
    assert scheduling.is_candidate(node, caller.kernel.template, caller.kernel.config)
    compile(caller.kernel.source, caller.kernel.source_file, "exec")
    return "checked" if is_right(plan, node, caller) else "served"


def is_right(plan: Schedule, node: SchedulerNode, caller: TemplateCaller) -> bool:
    """Whether it was run, by NumPy in place of the GPU: then it gave what was due."""
    case = make_case(node, plan.lowered, dict(BINDINGS), np.random.default_rng(5))
    if max(one.size for one in case.expected.values()) > _MOST_POINTS:
        return False
    if node.kind is GroupKind.POINTWISE:
        check = check_outputs(case, cutedsl.run(caller, case.inputs, BINDINGS), ())
        assert check.passed, (check, caller.kernel.source)
        return True
    if node.kind is GroupKind.ATTENTION:
        return False  # nothing here multiplies without a GPU as its kernel does
    held = {name: from_storage_native(one, case.buffers[name]) for name, one in case.inputs.items()}
    got = cutedsl_gemm.run(caller, held, BINDINGS)
    for name, expected in case.expected.items():
        off, dtype = case.carried.get(name), case.buffers[name].dtype
        check = compare_output(got[name], expected, case.tolerances[name], name, off, dtype=dtype)
        assert check.passed, (check, caller.kernel.source)
    return True


def problems(kind: str, count: int) -> Iterator[tuple[Schedule, SchedulerNode, Random]]:
    """The nodes of ``count`` random problems of a kind, each with its generator."""
    for seed in range(count):
        random = Random(zlib.crc32(f"{kind} {seed}".encode()))
        try:
            plan = KINDS[kind](random)
        except UserError:
            continue  # no problem of torch's
        yield from ((plan, node, random) for node in plan.nodes if node.kind.has_kernel)


def outcomes(kind: str, count: int) -> list[str]:
    """What became of the defaults of a kind, each for some targets."""
    return [
        default_of(plan, node, tuple(map(find, random.choice(TARGETS))))
        for plan, node, random in problems(kind, count)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_default_is_legal_or_refused_in_one_line(kind: str) -> None:
    assert outcomes(kind, 8)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_defaults_of_many_problems_are_legal_or_refused(kind: str) -> None:
    found = outcomes(kind, 60)
    assert {"served", "checked"} & {*found}
    assert any("no configuration of" in one for one in found)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_nvidias_compiler_takes_every_default(kind: str) -> None:
    callers: dict[str, TemplateCaller] = {}
    for plan, node, _ in problems(kind, 60):
        scheduling = CuteDSLScheduling(plan, SM_90)
        with suppress(UserError):
            caller = scheduling.default(node)
            callers[caller.name] = caller
    for caller in list(callers.values())[:12]:
        built(caller)
