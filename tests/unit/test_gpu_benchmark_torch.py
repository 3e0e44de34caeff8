"""The torch half of the benchmark on NVIDIA's GPUs, on the CPU: the reference in float64, what
counts as right, and a sample as torch loads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler import pipeline, samples
from scheduler.build.cache import CodeCache

torch = pytest.importorskip("torch")

from tests.benchmarks.gpu.building import built  # noqa: E402
from tests.benchmarks.gpu.making import Shop, recorded  # noqa: E402
from tests.benchmarks.gpu.problem import Of, exported  # noqa: E402
from tests.benchmarks.gpu.problems import named, problems  # noqa: E402
from tests.benchmarks.gpu.reference import bound_of, error_of, in_float64  # noqa: E402
from tests.benchmarks.gpu.samples import program_of  # noqa: E402
from tests.benchmarks.gpu.timing import extremes  # noqa: E402
from tests.support import recorded as made_up  # noqa: E402


class Narrow(torch.nn.Module):  # type: ignore[misc]
    """A module that names dtypes itself, with a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((8,), 0.1, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.float16) * self.weight.half()).to(torch.bfloat16) + 1 / 3


def test_the_reference_rounds_nothing_in_between() -> None:
    module, x = Narrow(), torch.randn(4, 8, dtype=torch.bfloat16)
    program = torch.export.export(module, (x,))
    expected = in_float64(program, (x,))
    assert expected.dtype is torch.float64
    torch.testing.assert_close(expected, x.double() * module.weight.double() + 1 / 3)
    rounded = error_of(module(x), expected)
    assert 0 < rounded <= bound_of(program, torch.bfloat16)


def test_one_wrong_row_among_many_is_an_error() -> None:
    expected = torch.ones(1000, 4, dtype=torch.float64)
    got = expected.clone()
    assert error_of(got, expected) == 0.0
    got[700] = 2.0
    assert error_of(got, expected) == pytest.approx(1.0)
    expected[700], got[700] = 0.0, 1e-4
    assert error_of(got, expected) == pytest.approx(1e-4, rel=1e-2)
    got[700, 0] = torch.nan
    assert not error_of(got, expected) <= 1.0
    zero = torch.zeros(())
    assert error_of(zero, zero) == 0.0
    assert error_of(zero + 1, zero) == torch.inf


def test_views_round_nothing() -> None:
    x = torch.randn(4, 8, dtype=torch.bfloat16)
    once, twice = (
        torch.export.export(Of(function), (x,))
        for function in (lambda x: x.t().exp().t(), lambda x: x.exp().exp())
    )
    eps = torch.finfo(torch.bfloat16).eps
    assert bound_of(once, torch.bfloat16) == eps
    assert bound_of(twice, torch.bfloat16) == pytest.approx(eps * 2**0.5)


@pytest.mark.full
def test_a_sample_runs_in_torch_with_weights_put_in() -> None:
    image = torch.randn(2, 3, 224, 224, dtype=torch.float16)
    program = program_of(samples.path("vit_2layer"), (image,), "cpu")
    with torch.no_grad():
        got = program.module()(image)
    assert got.isfinite().all()
    assert got.std() > 0
    assert error_of(got, in_float64(program, (image,))) <= bound_of(program, torch.float16)


@pytest.mark.long
def test_what_was_recorded_of_a_graph_at_these_sizes_chooses_its_kernels(tmp_path: Path) -> None:
    results = made_up.recorded()
    shop = Shop(made_up.DEVICE.target, CodeCache(tmp_path))
    graph = pipeline.load(samples.path(made_up.MODEL))
    assert recorded(pipeline.schedule(pipeline.lower(graph)), shop, [results]) is None

    plan = pipeline.schedule(pipeline.lower(pipeline.with_hints(graph, made_up.SIZES)))
    choose = recorded(plan, shop, [results])
    assert choose is not None
    (chosen,) = (one for one in results.runs[0].tasks[0].candidates if one.chosen)
    for node in plan.nodes:
        found = choose(node)
        assert (found is not None) == (node.name == made_up.NODE)
        assert found is None or found.kernel.config == chosen.config


def test_every_problem_has_a_name_of_its_own_and_a_bar() -> None:
    names = [problem.name for problem in problems()]
    assert len(set(names)) == len(names)
    assert all(problem.bars for problem in problems())
    assert named(names[3]).name == names[3]


def test_problems_are_found_by_a_part_of_their_name() -> None:
    found = [problem.name for problem in problems(["1 query", "whole"])]
    assert found
    assert all("1 query" in name or "whole" in name for name in found)


def test_an_integer_is_right_or_wrong() -> None:
    program = torch.export.export(Of(lambda x: x.argmax(-1)), (torch.randn(4, 8),))
    assert bound_of(program, torch.int64) == 0.0


def test_a_sum_may_be_off_by_as_many_roundings_as_are_said() -> None:
    program = torch.export.export(Of(lambda x: x.cumsum(0)), (torch.randn(64),))
    eps = torch.finfo(torch.float32).eps
    assert bound_of(program, torch.float32) == eps
    assert bound_of(program, torch.float32, 16) == 4 * eps


@pytest.mark.parametrize(
    ("module", "size", "terms"),
    [
        (torch.nn.Conv2d(16, 4, 3), (1, 16, 8, 8), 16 * 9),
        (torch.nn.Linear(64, 4), (2, 64), 64),
    ],
)
def test_f32_is_summed_in_itself_and_bf16_is_not(
    module: torch.nn.Module, size: tuple[int, ...], terms: int
) -> None:
    program = torch.export.export(module, (torch.zeros(size),))

    assert bound_of(program, torch.float32) == pytest.approx(
        torch.finfo(torch.float32).eps * terms**0.5
    )
    assert bound_of(program, torch.bfloat16) == torch.finfo(torch.bfloat16).eps


def test_a_problem_of_one_layout_is_exported_in_it() -> None:
    load = exported(lambda: torch.nn.Conv2d(8, 8, 3), [(1, 8, 6, 6)], layout=torch.channels_last)
    loaded = load("cpu")
    assert loaded.inputs[0].is_contiguous(memory_format=torch.channels_last)
    assert next(loaded.module.parameters()).is_contiguous(memory_format=torch.channels_last)


def test_a_problem_is_built_without_a_gpu(tmp_path: Path) -> None:
    name = "softmax 8192x4096"
    (first,) = built([name], "sm_90", tmp_path, 1, 300)
    assert (first.name, first.errors) == (name, ())


def test_the_least_and_the_most_of_each_reading() -> None:
    found = extremes([{"mhz": 3.0}, {"mhz": 1.0}, {}])
    assert found == {"mhz": {"min": 1.0, "max": 3.0}}
