"""What the page of a run says: its state, its counts, its gain, and what it replaced."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph
from codegen_app.tuning.models import BenchmarkResult, Candidate, Selection, TuningRun, TuningTask
from codegen_app.tuning.pages.run.query import run_page
from codegen_app.tuning.services import candidate_results, selections
from codegen_app.workers.models import State
from tests.app import factories
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db
GPU = {"device_name": "MI300X", "compiler": "rocm 7"}


def measure(task: TuningTask, *medians: float) -> list[Candidate]:
    """Candidates of a task with these medians, the default first."""
    environment = factories.environment(**GPU)
    candidates = []
    for median in medians:
        build = factories.done_build(target="gfx942")
        result = factories.result(
            build,
            median,
            task=task,
            problem=task.problem,
            environment=environment,
            samples_ns=[median * (1 + n / 1000) for n in range(-5, 6)],
            low_ns=median * 0.995,
            high_ns=median * 1.005,
        )
        candidates.append(
            factories.candidate(
                task, build=build, result=result, state=State.DONE, finished_at=timezone.now()
            )
        )
    return candidates


def finish(task: TuningTask, best: Candidate, offered: set[str] | None = None) -> TuningRun:
    assert best.result is not None
    candidate_results.choose(best, best.result, [], offered=offered)
    TuningRun.objects.filter(pk=task.run_id).update(
        state=State.DONE, target="gfx942", finished_at=timezone.now()
    )
    return TuningRun.objects.get(pk=task.run_id)


def retune(first: Candidate, *medians: float) -> tuple[TuningRun, list[Candidate]]:
    """A later run of the same problem, which times the first candidate's kernel, too."""
    old = first.task
    run = TuningRun.objects.create(
        graph=old.run.graph, device="rocm:0", target="gfx942", planned_at=timezone.now()
    )
    task = TuningTask.objects.create(
        run=run, problem=old.problem, template_node=old.template_node, state=State.DONE
    )
    rows = measure(task, *medians)
    known = rows[0]
    assert known.result is not None
    BenchmarkResult.objects.filter(pk=known.result.pk).update(
        kernel=first.kernel, build=first.build
    )
    Candidate.objects.filter(pk=known.pk).update(kernel=first.kernel, build=first.build)
    return finish(task, rows[1], {row.kernel.name for row in rows if row.kernel}), rows


@pytest.fixture
def replaced() -> tuple[TuningRun, Candidate, Candidate]:
    """A run that replaced the selected kernel by one that takes four fifths of its time."""
    task = factories.task(state=State.DONE)
    (first,) = measure(task, 1000.0)
    finish(task, first)
    run, rows = retune(first, 1000.0, 800.0)
    return run, first, rows[1]


def test_the_gain_over_the_replaced_kernel_has_its_interval_and_n(
    reader: Client, replaced: tuple[TuningRun, Candidate, Candidate]
) -> None:
    run, first, _ = replaced
    page = run_page(run.pk)
    gain = page.over_previous
    assert gain is not None
    assert gain.change is not None
    assert (gain.problems, gain.before_ns, gain.after_ns) == (1, 1000.0, 800.0)
    assert gain.change.ratio == pytest.approx(0.8)
    assert gain.change.low is not None
    assert gain.change.high is not None
    assert gain.change.low < 0.8 < gain.change.high
    assert (gain.change.n_before, gain.change.n_after) == (11, 11)
    (row,) = page.best
    assert row.gain.over_previous == gain
    assert row.gain.selection is not None
    assert first.kernel is not None
    assert row.gain.selection.previous_kernel == first.kernel.name
    text = reader.get(run.get_absolute_url()).content.decode()
    assert "\N{MULTIPLICATION SIGN}0.800" in text
    assert "Best so far" not in text
    assert "1 of 1 is selected" in text


def test_a_run_whose_default_is_best_gained_nothing(reader: Client) -> None:
    task = factories.task(state=State.DONE)
    first, _ = measure(task, 1000.0, 1200.0)
    run = finish(task, first)
    page = run_page(run.pk)
    assert (page.over_previous, page.over_default, page.replaced) == (None, None, ())
    text = reader.get(run.get_absolute_url()).content.decode()
    assert "No kernel was measured faster than the default." in text
    assert "<th>Reason</th>" not in text, "its only selection says nothing"


def test_too_few_samples_show_no_gain(reader: Client) -> None:
    task = factories.task(state=State.DONE)
    default, best = measure(task, 1000.0, 800.0)
    BenchmarkResult.objects.filter(pk=default.result_id).update(samples_ns=[1000.0, 1001.0])
    run = finish(task, best)
    over = run_page(run.pk).over_default
    assert over is not None
    assert over.change is None
    text = reader.get(run.get_absolute_url()).content.decode()
    assert "Gain over the default kernel: insufficient data." in text


def test_the_gain_is_of_the_problems_with_enough_samples(reader: Client) -> None:
    task = factories.task(state=State.DONE)
    _, best = measure(task, 1000.0, 800.0)
    finish(task, best)
    other = factories.task(run=task.run, state=State.DONE)
    default, second = measure(other, 5000.0, 1000.0)
    BenchmarkResult.objects.filter(pk=default.result_id).update(samples_ns=[5000.0, 5001.0])
    run = finish(other, second)
    over = run_page(run.pk).over_default
    assert over is not None
    assert over.change is not None
    assert (over.problems, over.before_ns, over.after_ns) == (1, 1000.0, 800.0)
    text = " ".join(reader.get(run.get_absolute_url()).content.decode().split())
    assert "of the time of the default kernel in 1 problem (1.000 → 0.800 µs" in text


def test_a_cancelled_run_says_who_cancelled_it_and_why(admin_client: Client) -> None:
    run = factories.task().run
    url = f"{run.get_absolute_url()}/cancel"
    assert admin_client.post(url, {"why": "the board is needed"}).status_code == 302
    text = admin_client.get(run.get_absolute_url()).content.decode()
    assert "Cancelled by admin: the board is needed." in text
    assert "Nothing was measured" in text


def test_what_a_run_replaced_is_put_back_with_a_reason(
    admin_client: Client, replaced: tuple[TuningRun, Candidate, Candidate]
) -> None:
    run, first, best = replaced
    made = Selection.objects.get(until__isnull=True)
    assert made.kernel == best.kernel
    url = f"{run.get_absolute_url()}/put-back"
    assert url in admin_client.get(run.get_absolute_url()).content.decode()
    answer = admin_client.post(url, {"selection": [made.pk], "why": "it hangs"})
    assert answer.headers["Location"] == run.get_absolute_url()
    now = Selection.objects.get(until__isnull=True)
    assert (now.kernel, now.reason) == (first.kernel, "put back: it hangs")
    entry = AuditEntry.objects.get(action="put back")
    assert entry.why == "it hangs"
    text = admin_client.get(run.get_absolute_url()).content.decode()
    assert url not in text
    assert "replaced since" in text


def test_what_cannot_be_put_back_says_why_and_changes_nothing(
    admin_client: Client, replaced: tuple[TuningRun, Candidate, Candidate]
) -> None:
    run, first, _ = replaced
    made, original = Selection.objects.get(until=None), Selection.objects.get(until__isnull=False)
    url = f"{run.get_absolute_url()}/put-back"
    first_url = f"{first.task.run.get_absolute_url()}/put-back"
    for address, keys, line in (
        (url, [], "Choose at least one kernel"),
        (url, [original.pk], f"run {run.pk} made no selection {original.pk}"),
        (url, ["x"], "row numbers must be integers"),
        (first_url, [original.pk], "is no longer selected"),
    ):
        answer = admin_client.post(address, {"selection": keys})
        assert answer.status_code == 422, line
        assert line.lower() in answer.content.decode().lower()
    assert Selection.objects.get(until__isnull=True) == made
    assert first.kernel is not None
    selections.restore(original, None)
    assert "no longer selected" in admin_client.post(url, {"selection": [made.pk]}).content.decode()


@pytest.mark.parametrize(
    ("graph", "run", "line"),
    [
        (State.QUEUED, State.QUEUED, "Waiting for the graph, which is being prepared."),
        (State.DONE, State.QUEUED, "Waiting to be planned: a worker lists the candidates."),
        (State.DONE, State.CANCELLED, "The run was cancelled before its candidates were listed."),
        (State.REJECTED, State.REJECTED, "The run was rejected before its candidates were listed."),
    ],
)
def test_a_run_without_candidates_says_what_it_waits_for_or_how_it_ended(
    graph: State, run: State, line: str, reader: Client
) -> None:
    row = TuningRun.objects.create(
        graph=factories.graph(state=graph, reason="a cycle"),
        device="cpu",
        target="cpu",
        state=run,
        reason="a cycle" if run == State.REJECTED else "",
        finished_at=None if run == State.QUEUED else timezone.now(),
    )
    text = reader.get(row.get_absolute_url()).content.decode()
    assert line in text
    assert ("is being prepared" in text) is (graph == State.QUEUED)


def test_counts_of_a_run_and_of_its_trials_agree(reader: Client) -> None:
    task = factories.task(state=State.DONE)
    measure(task, 1000.0)
    for n, stage in enumerate(("rule", "rule", "render", "compile", "crash")):
        state = State.QUARANTINED if stage == "crash" else State.REJECTED
        kernel = {} if stage == "rule" else {"build": factories.build()}
        fields = {"state": state, "stage": stage, "reason": "no", "position": 10 + n}
        if kernel:
            factories.candidate(task, **kernel, **fields)
        else:
            Candidate.objects.create(task=task, **fields)
    Graph.objects.update(state=State.DONE)
    page = reader.get(f"{task.run.get_absolute_url()}.json").json()
    progress, states = page["run"]["progress"], page["explorer"]["states"]
    assert (progress["rejected"], progress["failed"], progress["total"]) == (3, 2, 3)
    assert states["rejected"] == progress["rejected"]
    assert sum(states.values()) == progress["total"] + progress["rejected"]


def test_queries_do_not_grow_with_what_was_replaced() -> None:
    counts = []
    for problems in (1, 3):
        run = TuningRun.objects.create(
            graph=factories.graph(), device="rocm:0", target="gfx942", planned_at=timezone.now()
        )
        for _ in range(problems):
            task = factories.task(state=State.DONE)
            (first,) = measure(task, 1000.0)
            finish(task, first)
            _, rows = retune(first, 1000.0, 800.0)
            TuningTask.objects.filter(pk=rows[0].task_id).update(run=run)
        assert len(run_page(run.pk).best) == problems
        counts.append([queries_of(run_page, run.pk)])
    assert_steady(*counts, [9])


def test_a_queued_run_says_which_runs_its_workers_do_first(reader: Client) -> None:
    task = factories.task()
    task.spent_s = 25.0
    task.save()
    TuningRun.objects.update(budget_s=100, state=State.RUNNING)
    graph = factories.graph()
    fields = {"graph": graph, "device": "cpu", "target": "cpu"}
    urgent = TuningRun.objects.create(**fields, priority=5)
    other = TuningRun.objects.create(graph=graph, device="rocm:0", target="gfx942")
    row = TuningRun.objects.create(**fields)
    assert run_page(urgent.pk).ahead == "no run ahead"
    assert run_page(other.pk).ahead == "no run ahead", "another queue"
    text = "2 runs ahead, at most 75 s, and 1 without a time limit"
    assert run_page(row.pk).ahead == text
    assert text in reader.get(row.get_absolute_url()).content.decode()
    assert run_page(task.run_id).ahead == "", "it runs"
