"""Tuning by modelled times: which candidate is preferred, what is asked of the model, and when it
ends; with compilers, an emulation and a model of the test's own making."""

from __future__ import annotations

import json
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from scheduler.benchmark.timing import default_plan
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.cycles.report import Band
from scheduler.errors import Rejected, Stage, UserError
from scheduler.ir.dtypes import DType
from scheduler.runtime.devices import modelled_device
from scheduler.sandbox.process import Cancellation
from scheduler.targets import emulation_of, find
from scheduler.targets.modelled import board_of_device
from scheduler.tuning.budget import Budget, Meter
from scheduler.tuning.decision import decide
from scheduler.tuning.ledger import CandidateState, Entry, write_jsonl
from scheduler.tuning.modelled.gate import CheckedSizes
from scheduler.tuning.modelled.job import ModelJob
from scheduler.tuning.modelled.timer import ModelTimer, ModelTools
from scheduler.tuning.modelled_time import ModelledTime
from scheduler.tuning.problem_state import RunSettings
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.tuner import Event, Tuner, TuningResult
from scheduler.tuning.warm_start import FIRST_COUNT, read_warm_start
from tests.unit.matrix.contractions import matmul

GFX942 = find("gfx942")
DEVICE = modelled_device("model:gfx942")


def modelled(mid: float, spread: float = 0.0, **facts: object) -> ModelledTime:
    """A figure with a band of ``spread`` to both sides, as a share."""
    band = Band(mid * (1 - spread), mid, mid * (1 + spread))
    return ModelledTime("model:MI300X", "MI300X", 1, band, **facts)  # type: ignore[arg-type]


def entry(name: str, figure: ModelledTime | None, *, default: bool = False) -> Entry:
    return Entry(
        problem="mm(64x64, 64x64) f16",
        node="op0",
        bindings={},
        kernel=name,
        template="gemm",
        config={"BLOCK_M": 64},
        description="BLOCK_M=64",
        state=CandidateState.UNTRIED if figure is None else CandidateState.MODELLED,
        is_default=default,
        modelled=figure,
    )


def decide_modelled(entries: list[Entry]) -> list[Entry]:
    return decide(entries, range(len(entries)))


def chosen(entries: list[Entry]) -> str | None:
    return next((one.kernel for one in entries if one.state is CandidateState.CHOSEN), None)


class TestDecision:
    def test_the_least_modelled_time_wins_beyond_what_the_model_can_tell(self) -> None:
        default = entry("default", modelled(100), default=True)
        decided = decide_modelled([default, entry("a", modelled(80)), entry("b", modelled(60))])
        assert chosen(decided) == "b"
        assert not any(one.tied for one in decided)

    def test_a_tie_stays_with_the_default_and_says_so(self) -> None:
        default = entry("default", modelled(100), default=True)
        decided = decide_modelled([default, entry("a", modelled(95))])
        assert chosen(decided) == "default"
        assert [one.tied for one in decided] == [True, True]
        assert "tied with 1 other, as modelled: default kept" in decided[0].reason

    def test_candidates_are_compared_end_by_end_and_not_by_overlap(self) -> None:
        # Wide bands come from the same constants: a kernel that is slower with each of them is
        # slower, though the bands overlap; one that is only so with some of them ties.
        default = entry("default", modelled(100, 0.4), default=True)
        assert chosen(decide_modelled([default, entry("a", modelled(70, 0.4))])) == "a"
        crossing = ModelledTime("model:MI300X", "MI300X", 1, Band(59, 70, 160))
        assert chosen(decide_modelled([default, entry("a", crossing)])) == "default"

    @pytest.mark.parametrize(
        ("facts", "words"),
        [
            ({"unknown": {"v_new": 3}}, "unknown to the model: v_new (3)"),
            ({"unchecked": "takes too long"}, "not checked: takes too long"),
            ({"cut": True}, "limits stopped some waves"),
        ],
    )
    def test_what_is_not_known_whole_is_kept_and_never_preferred(
        self, facts: dict[str, object], words: str
    ) -> None:
        default = entry("default", modelled(100), default=True)
        decided = decide_modelled([default, entry("a", modelled(10, **facts))])
        assert chosen(decided) == "default"
        assert words in decided[1].reason
        assert decided[1].modelled is not None

    def test_a_note_to_the_reader_keeps_nobody_from_winning(self) -> None:
        default = entry("default", modelled(100), default=True)
        noted = modelled(10, notes=("a unit is a work-group processor",))
        assert chosen(decide_modelled([default, entry("a", noted)])) == "a"

    def test_a_default_that_is_not_known_whole_stays(self) -> None:
        default = entry("default", modelled(100, unknown={"v_new": 1}), default=True)
        decided = decide_modelled([default, entry("a", modelled(10))])
        assert chosen(decided) == "default"
        assert "default kept, no comparison possible" in decided[0].reason

    def test_a_default_that_was_not_modelled_is_not_replaced(self) -> None:
        default = replace(entry("default", None), state=CandidateState.NOT_MODELLED)
        assert chosen(decide_modelled([default, entry("a", modelled(10))])) is None

    def test_without_a_default_the_least_time_of_those_that_tie_is_taken(self) -> None:
        rejected = replace(entry("default", None), state=CandidateState.WRONG)
        decided = decide_modelled([rejected, entry("a", modelled(10)), entry("b", modelled(9.9))])
        assert chosen(decided) == "b"


@dataclass
class World:
    """Compilers, the emulation and the model; the clock runs with what a check takes."""

    now: float = 0.0
    times: dict[str, float] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    wrong_whole: set[str] = field(default_factory=set)
    unchecked: bool = False
    check_s: float = 0.0
    modelled: list[str] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)
    closed: int = 0
    from_cache: int = 0

    def submit_build(self, caller: TemplateCaller, target: str) -> Future[Build | Rejected]:
        future: Future[Build | Rejected] = Future()
        chain = Toolchain("bundled", "1", "", (), ())
        facts = (caller.name, caller.name, 0.1, "", Path("/nowhere"))
        future.set_result(Build(target, chain, (), *facts, {}, False))
        return future

    # -- gate

    def check(
        self, problem: TuningProblem, caller: TemplateCaller, library: str, max_s: float
    ) -> CheckedSizes | Rejected:
        self.now += self.check_s
        if caller.name in self.wrong:
            return Rejected(Stage.CHECK, "wrong result: error 9, bound 1")
        return CheckedSizes((), "it takes too long") if self.unchecked else CheckedSizes(({},))

    def check_full(
        self, problem: TuningProblem, caller: TemplateCaller, library: str, max_s: float
    ) -> CheckedSizes | Rejected:
        self.whole.append(caller.name)
        if caller.name in self.wrong_whole:
            return Rejected(Stage.CHECK, "wrong result at s0=1: error 9")
        return CheckedSizes(({},))

    # -- models

    def submit(
        self, job: ModelJob, listing: Path, code_digest: str
    ) -> Future[ModelledTime | Rejected]:
        kernel = job.request.kernel
        self.modelled.append(kernel)
        future: Future[ModelledTime | Rejected] = Future()
        unknown = {"v_new": 1} if kernel in self.unknown else {}
        future.set_result(modelled(self.times.get(kernel, 100.0), unknown=unknown))
        return future

    def close(self) -> None:
        self.closed += 1


class Pool:
    def __init__(self, world: World, target: str) -> None:
        self._world, self._target = world, target

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        return self._world.submit_build(caller, self._target)

    def close(self) -> None:
        self._world.closed += 1


def product(size: int = 64) -> TuningProblem:
    schedule = matmul(size, 64, 64, DType.F16)
    (problem,) = find_problems(schedule, ROCmCPPScheduling(schedule, (GFX942,)), GFX942, {})
    return problem


def tune(
    world: World,
    problem: TuningProblem,
    budget: Budget,
    cancel_after: int | None = None,
) -> tuple[TuningResult, list[Event]]:
    cancellation, events = Cancellation(), list[Event]()

    def on_event(event: Event) -> None:
        events.append(event)
        if len(events) == cancel_after:
            cancellation.cancel()

    emulation = emulation_of(GFX942)
    assert emulation is not None
    setting = RunSettings(DEVICE.id, GFX942, False, default_plan(emulated=True), DEVICE.board)
    tools = ModelTools(Pool(world, emulation.name), world)
    meter = Meter(budget, lambda: world.now)
    timer = ModelTimer(world, Pool(world, "gfx942"), tools, meter)
    return Tuner([problem], setting, timer, meter, on_event, cancellation).run(), events


class TestTuner:
    def test_the_fastest_as_modelled_is_chosen_and_nothing_is_called_measured(self) -> None:
        problem = product()
        fast = problem.callers[5].name
        result, events = tune(World(times={fast: 10.0}), problem, Budget())
        (found,) = result.problems
        assert found.chosen is not None and found.chosen.kernel == fast
        assert len(events) == len(problem.callers)
        assert found.is_modelled
        assert {one.measurement for one in found.entries} == {None}
        assert {str(one.state) for one in found.entries} <= {"modelled", "chosen", "rejected"}
        assert "not measured" in found.autotune_text().splitlines()[0]
        assert result.configs[problem.node.name].config == problem.callers[5].kernel.config

    def test_what_the_emulation_finds_wrong_is_neither_modelled_nor_ranked(self) -> None:
        problem = product()
        fast = problem.callers[5].name
        world = World(times={fast: 10.0}, wrong={fast})
        result, _ = tune(world, problem, Budget())
        (found,) = result.problems
        assert fast not in world.modelled
        assert found.entries[5].state is CandidateState.WRONG
        assert found.chosen is not None and found.chosen.is_default

    def test_what_would_win_is_checked_at_the_edges_first(self) -> None:
        problem = product()
        fast, second = problem.callers[5].name, problem.callers[6].name
        world = World(times={fast: 10.0, second: 20.0}, wrong_whole={fast})
        result, _ = tune(world, problem, Budget())
        (found,) = result.problems
        assert world.whole == [fast, second]
        assert found.entries[5].state is CandidateState.WRONG
        assert found.chosen is not None and found.chosen.kernel == second

    def test_a_large_problem_is_ranked_and_only_what_would_win_is_checked(self) -> None:
        problem = product()
        fast = problem.callers[5].name
        world = World(times={fast: 10.0}, unchecked=True)
        result, _ = tune(world, problem, Budget())
        (found,) = result.problems
        assert world.whole == [problem.callers[0].name, fast]
        assert found.chosen is not None and found.chosen.kernel == fast
        rest = found.entries[1:]
        others = {one.reason for one in rest if one.state is CandidateState.MODELLED}
        assert others == {"not preferred: not checked: it takes too long"}

    def test_unknown_instructions_do_not_steer_and_are_said(self) -> None:
        problem = product()
        fast = problem.callers[5].name
        result, _ = tune(World(times={fast: 10.0}, unknown={fast}), problem, Budget())
        (found,) = result.problems
        assert found.chosen is not None and found.chosen.is_default
        assert "v_new" in found.entries[5].reason
        assert "v_new" in found.autotune_text()

    def test_the_budget_ends_the_run_and_says_what_was_left(self) -> None:
        problem = product()
        world = World(check_s=1.0)
        result, events = tune(world, problem, Budget(seconds=5))
        (found,) = result.problems
        untried = [one for one in found.entries if one.state is CandidateState.UNTRIED]
        assert len(events) == 5
        assert result.ended == "the budget of 5 s was spent"
        assert {one.reason for one in untried} == {result.ended}
        assert found.chosen is not None
        assert world.closed == 3  # models and both pools

    def test_a_limit_of_candidates_holds(self) -> None:
        world = World()
        result, events = tune(world, product(), Budget(measurements=3))
        assert len(events) == 3 == result.measurements
        assert result.ended == "the budget of 3 modelled candidates was spent"

    def test_a_cancelled_run_decides_by_what_it_has_seen(self) -> None:
        world = World()
        result, events = tune(world, product(), Budget(), cancel_after=2)
        assert result.ended == "cancelled"
        assert len(events) <= 3
        assert result.problems[0].chosen is not None
        assert world.closed == 3

    def test_equal_answers_make_an_equal_run(self) -> None:
        problem = product()
        runs = []
        for _ in range(2):
            world = World(times={one.name: 50.0 + n for n, one in enumerate(problem.callers)})
            tune(world, problem, Budget(measurements=12))
            runs.append(world.modelled)
        assert runs[0] == runs[1]


class TestStart:
    def test_a_measured_run_tries_the_fastest_as_modelled_first(self, tmp_path: Path) -> None:
        problem = product()
        names = [one.name for one in problem.callers]
        times = {name: 1000.0 + place for place, name in enumerate(names)}
        times |= {names[20]: 10.0, names[11]: 20.0, names[15]: 5.0}
        result, _ = tune(World(times=times, unknown={names[15]}), problem, Budget())
        write_jsonl(tmp_path / "ledger.jsonl", {"times": "modelled"}, result.entries)
        start = read_warm_start(tmp_path)
        assert start.first_candidates(problem)[:3] == [20, 11, 0]
        assert len(start.first_candidates(problem)) == FIRST_COUNT
        assert start.device == "model:MI300X"
        assert f"{len(names)} candidates of 1 of 1 problems" in start.text([problem])
        figure = start.modelled_times(problem)[20]
        assert figure.time_ns.mid == 10.0
        start.check_for("gfx942")
        with pytest.raises(UserError, match="modelled for gfx942"):
            start.check_for("gfx90a")

    def test_a_ledger_without_modelled_times_is_refused(self, tmp_path: Path) -> None:
        write_jsonl(tmp_path / "ledger.jsonl", {}, [entry("a", None)])
        with pytest.raises(UserError, match="no modelled times"):
            read_warm_start(tmp_path / "ledger.jsonl")

    def test_the_figure_of_another_kernel_is_not_taken_over(self, tmp_path: Path) -> None:
        problem = product()
        result, _ = tune(World(), problem, Budget())
        write_jsonl(tmp_path / "ledger.jsonl", {}, result.entries)
        path = tmp_path / "ledger.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines[1:]:
            line["kernel"] = line["kernel"][:-1] + "_"
        path.write_text("\n".join(map(json.dumps, lines)))
        start = read_warm_start(path)
        assert len(start.first_candidates(problem)) == FIRST_COUNT
        assert start.modelled_times(problem) == {}


@pytest.mark.parametrize(
    ("name", "board"),
    [
        ("model:gfx942", "MI300X"),
        ("model:MI300X", "MI300X"),
        ("model:gfx942:mi300x", "MI300X"),
        ("model:gfx90a", "MI210"),
        ("model:MI250X", "MI250X (one die)"),
        ("model:RX7900XTX", "RX 7900 XTX"),
    ],
)
def test_names_of_modelled_devices(name: str, board: str) -> None:
    assert board_of_device(name).name == board
    device = modelled_device(name)
    assert device.modelled and not device.emulated
    assert device.board is not None and device.board.name == board


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model:sm_90", "not modelled for sm_90"),
        ("model:gfx1030", "not modelled for gfx1030"),
        ("model:gfx942:MI210", "no such board"),
        ("model:MI999", "no such board"),
        ("model:", "no such board"),
    ],
)
def test_other_devices_are_refused_with_what_there_is(name: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        modelled_device(name)
    assert "model:gfx942 (MI300X" in str(error.value)
