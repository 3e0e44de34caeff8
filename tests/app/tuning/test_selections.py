"""Which kernel serves: a better one beyond the noise, and the past is kept."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse, Packing
from codegen_app.kernels.services import engine
from codegen_app.tuning.models import BenchmarkResult, Environment, Selection
from codegen_app.tuning.queries.selection_uses import selection_uses
from codegen_app.tuning.services import selection_io, selections
from scheduler.errors import UserError
from tests.app import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def problem() -> Problem:
    return factories.task().problem


@pytest.fixture
def environment() -> Environment:
    return factories.environment(device_name="MI300X", compiler="rocm 7")


def result(
    problem: Problem,
    environment: Environment,
    low: float,
    high: float,
    kernel: GeneratedKernel | None = None,
    bindings: dict[str, int] | None = None,
) -> BenchmarkResult:
    kernel = kernel or factories.kernel()
    middle = (low + high) / 2
    return factories.result(
        kernel.builds.first() or factories.build(kernel=kernel),
        middle,
        problem=problem,
        environment=environment,
        bindings=bindings or {},
        samples_ns=[low, middle, high],
        low_ns=low,
        high_ns=high,
    )


def serving() -> Selection:
    return Selection.objects.get(until__isnull=True)


def test_a_gain_within_the_noise_changes_nothing(
    problem: Problem, environment: Environment
) -> None:
    first = result(problem, environment, 90, 110)
    selections.offer(first, "run 1")
    selections.offer(result(problem, environment, 80, 95), "run 2")
    assert serving().result == first
    assert Selection.objects.count() == 1


def test_a_gain_beyond_the_noise_replaces_and_keeps_the_past(
    problem: Problem, environment: Environment
) -> None:
    first = result(problem, environment, 90, 110)
    better = result(problem, environment, 70, 89)
    selections.offer(first, "run 1")
    selections.offer(better, "run 2")
    assert serving().result == better
    past = Selection.objects.get(until__isnull=False)
    assert past.result == first
    assert past.until == serving().since


def test_a_gain_over_a_kernel_that_the_run_did_not_time_is_not_confirmed(
    problem: Problem, environment: Environment
) -> None:
    first, better = (result(problem, environment, low, low + 5) for low in (90, 50))
    selections.offer(first, "run 1")
    name = first.kernel.name
    _, why = selections.offer(better, "run 2", {name, better.kernel.name})
    assert why == f"does not replace {name}: not confirmed, this run did not measure {name}"
    assert serving().result == first


@pytest.mark.parametrize(
    ("counts", "is_selected"),
    [((5, 5), True), ((4, 4), False), ((5, 2), False)],
    ids=["in turns", "screened", "selected one cut short"],
)
def test_samples_that_only_chose_the_finalists_confirm_nothing(
    environment: Environment, counts: tuple[int, int], is_selected: bool
) -> None:
    """Screening takes at most four samples of a kernel, while compilers run."""
    task = factories.task()
    problem = task.problem
    first = result(problem, environment, 90, 110)
    selections.offer(first, "run 1")
    better = result(problem, environment, 50, 51)
    again = result(problem, environment, 100, 101, first.kernel)
    for row, count in zip((better, again), counts, strict=True):
        row.task, row.samples_ns = task, [row.median_ns] * count
        row.save()
    _, why = selections.offer(better, "run 2", {better.kernel.name, first.kernel.name})
    assert (serving().result == better) is is_selected, why
    assert ("a comparison needs 5 samples" in why) is not is_selected


def test_a_kernel_that_cannot_be_generated_any_more_is_replaced(
    problem: Problem, environment: Environment
) -> None:
    first, slower = (result(problem, environment, low, low + 5) for low in (50, 90))
    selections.offer(first, "run 1")
    _, why = selections.offer(slower, "run 2", {slower.kernel.name})
    assert why == f"replaces {first.kernel.name}, which this version does not generate"
    assert serving().result == slower


def test_a_bundle_has_what_was_selected_for_its_times_before_it_was_begun() -> None:
    task = factories.task()
    where = factories.environment(device_name="NVIDIA H100", compiler="nvcc 13")
    selections.offer(result(task.problem, where, 90, 110), "run 1")
    row = serving()
    bucket = f"NVIDIA H100, {row.target}, {row.toolchain}"
    file = factories.done_build().library

    def pack(times: str, began: timedelta) -> None:
        moments = {"started_at": row.since + began, "finished_at": row.since + timedelta(hours=1)}
        Packing.objects.update_or_create(
            graph=task.run.graph,
            defaults={
                "key": "k", "kernels": 1, "times": times, "state": "done", "file": file, **moments
            },
        )  # fmt: skip

    shown = []
    for times, began in (
        (bucket.replace("H100", "H100 NVL"), timedelta(minutes=1)),
        (bucket, timedelta(minutes=1)),
        (f"{bucket}, m=64", timedelta(minutes=1)),
        (bucket, -timedelta(minutes=1)),
    ):
        pack(times, began)
        [use] = selection_uses([row])
        shown.append((use.bundle is not None, use.bundle_is_current))
    assert shown == [(False, False), (True, True), (True, True), (True, False)]


def test_one_lucky_sample_changes_nothing(problem: Problem, environment: Environment) -> None:
    first = result(problem, environment, 90, 110)
    lucky = result(problem, environment, 70, 70)
    lucky.samples_ns = [70.0]
    selections.offer(first, "run 1")
    selections.offer(lucky, "run 2")
    assert serving().result == first


def test_each_size_is_a_bucket_of_its_own(problem: Problem, environment: Environment) -> None:
    small = result(problem, environment, 10, 11, bindings={"s0": 16})
    large = result(problem, environment, 900, 910, bindings={"s0": 1024})
    better = result(problem, environment, 800, 810, bindings={"s0": 1024})
    for one in (small, large, better):
        selections.offer(one, "a run")
    now = Selection.objects.filter(until__isnull=True)
    assert {one.bindings["s0"]: one.result for one in now} == {16: small, 1024: better}


def test_another_compiler_chooses_anew(problem: Problem, environment: Environment) -> None:
    old, new = (result(problem, environment, low, low + 1) for low in (10, 20))
    Build.objects.filter(pk=new.build_id).update(toolchain_version="23")
    new.build.refresh_from_db()
    selections.offer(old, "run 1")
    selections.offer(new, "run 2")
    assert Selection.objects.filter(until__isnull=True).count() == 2


def test_an_earlier_choice_is_put_back_and_the_record_says_who_and_why(
    problem: Problem, environment: Environment
) -> None:
    first = result(problem, environment, 90, 110)
    before, _ = selections.offer(first, "run 1")
    selections.offer(result(problem, environment, 70, 89), "run 2")
    user = User.objects.create_user("someone")
    selections.restore(before, user, "the new one hangs on MI210")
    assert (serving().kernel, serving().result, serving().chosen_by) == (first.kernel, first, user)
    assert Selection.objects.count() == 3, "the past is kept"
    entry = AuditEntry.objects.get(action="put back")
    assert (entry.action, entry.actor, entry.why) == (
        "put back",
        user,
        "the new one hangs on MI210",
    )
    with pytest.raises(UserError, match="already"):
        selections.restore(before, user)


def test_choices_travel_as_json(problem: Problem, environment: Environment) -> None:
    first = result(problem, environment, 90, 110)
    KernelUse.objects.create(
        kernel=first.kernel, template_node=problem.template_nodes.get(), position=0
    )
    selections.offer(first, "run 1")
    text = json.dumps(selection_io.export())
    assert selection_io.import_text(text, None) == selection_io.ImportSummary(0, 1, ())
    Selection.objects.all().delete()
    assert selection_io.import_text(text, None, "from the lab") == selection_io.ImportSummary(
        1, 0, ()
    )
    assert (serving().kernel, serving().result) == (first.kernel, first)
    assert serving().reason == "imported: from the lab"
    Selection.objects.all().delete()
    assert selection_io.import_text(text, None, "y" * 500).new == 1
    unknown = text.replace(problem.digest, factories.digest())
    assert (
        selection_io.import_text(unknown, None).skipped[0].endswith("its problem is unknown here")
    )


def test_a_page_makes_no_kernels(
    problem: Problem, environment: Environment, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph that is scheduled for a choice of it would hold the page for minutes."""
    first = result(problem, environment, 90, 110)
    selections.offer(first, "run 1")
    text = json.dumps(selection_io.export())
    Selection.objects.all().delete()
    asked: list[object] = []
    monkeypatch.setattr(engine, "callers", lambda *given: asked.append(given) or {})
    user = User.objects.create_user("someone", is_superuser=True)
    client.force_login(user)
    given = {"file": SimpleUploadedFile("s.json", text.encode()), "why": "x"}
    page = client.post("/selections/import", given, follow=True).content.decode()
    assert "run kiln manage selections import FILE on the server" in page
    assert not asked
    left = selection_io.import_text(text, None).skipped
    assert left[0].endswith("its kernel is unknown here")
    assert asked, "the command tries to make it"


def a_line(**changed: object) -> str:
    """A file with one choice, changed so."""
    texts = dict.fromkeys(("problem", "kernel", "source_digest", "device_name", "toolchain"), "x")
    line = {**texts, "target": "gfx942", "bindings": {}, **changed}
    return json.dumps({"schema": 1, "selections": [line]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "schema 1"),
        ('{"schema": 2, "selections": []}', "schema 1"),
        ('{"schema": 1}', r"missing @ \$\.selections"),
        ('{"schema": 1, "selections": [3]}', r"selections\[0\]"),
        (a_line(problem=3), r"'3' is not a str @ \$\.selections\[0\]\.problem"),
        (a_line(bindings={"s0": True}), r"'True' is not an int @ .*\.bindings\['s0'\]"),
        (a_line(target="gfx000"), r"selections\[0\]\.target: unknown target 'gfx000'"),
        (a_line(device_name="x" * 201), "too long"),
        (a_line(kernel="a\0b"), "NUL"),
        (a_line(toolchain="\ud800"), "unpaired surrogate"),
        (a_line(bindings={"s\0": 1}), "NUL"),
        (a_line(bindings={"s0": 2**63}), "not sizes of a model"),
        (a_line(bindings={f"s{n}": n for n in range(1000)}), "not sizes of a model"),
        ('{"schema": 1, "more": ' + "[" * 900 + "]" * 900 + "}", "JSON|missing"),
        (b"\xff\xfe\x00", "not JSON"),
        ('{"schema": ' + "9" * 5000 + "}", "not JSON"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_file_that_holds_no_choices_changes_nothing(text: str | bytes, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        selection_io.import_text(text, None)
    assert not AuditEntry.objects.exists()


def test_the_same_kernel_again_keeps_its_date(problem: Problem, environment: Environment) -> None:
    first = result(problem, environment, 90, 110)
    selections.offer(first, "run 1")
    selections.offer(result(problem, environment, 50, 60, kernel=first.kernel), "run 2")
    assert serving().result == first


def test_a_better_measurement_of_what_serves_is_what_rivals_are_compared_with(
    problem: Problem, environment: Environment
) -> None:
    hasty = result(problem, environment, 10, 400)
    selections.offer(hasty, "run 1")
    again = result(problem, environment, 90, 110, kernel=hasty.kernel)
    BenchmarkResult.objects.filter(pk=again.pk).update(samples_ns=[90, 95, 100, 105, 110])
    again.refresh_from_db()
    selections.offer(again, "run 2")
    assert (serving().result, Selection.objects.count()) == (again, 1)
    better = result(problem, environment, 70, 80)
    selections.offer(better, "run 3")
    assert serving().result == better


@pytest.mark.parametrize(
    ("state", "takes_over"), [("rejected", True), ("quarantined", True), ("cancelled", False)]
)
def test_what_a_run_found_to_be_wrong_or_to_crash_serves_no_longer(
    problem: Problem, environment: Environment, state: str, takes_over: bool
) -> None:
    """Then a slower kernel serves: what was not tried is compared as it was measured before."""
    first, slower = result(problem, environment, 90, 110), result(problem, environment, 200, 210)
    selections.offer(first, "run 1")
    task = factories.task()
    factories.candidate(task, build=first.build, state=state, reason="no good")
    BenchmarkResult.objects.filter(pk=slower.pk).update(task=task)
    slower.refresh_from_db()
    _, why = selections.offer(slower, "run 2")
    assert serving().result == (slower if takes_over else first)
    assert why.endswith("which this run rejected: no good") is takes_over


def test_what_serves_is_compared_as_it_was_measured_at_the_same_sizes(
    problem: Problem, environment: Environment
) -> None:
    """It is faster at smaller sizes, and was measured there later."""
    large = result(problem, environment, 900, 910, bindings={"s0": 1024})
    selections.offer(large, "run 1")
    small = result(problem, environment, 10, 11, kernel=large.kernel, bindings={"s0": 16})
    selections.offer(small, "run 2")
    better = result(problem, environment, 800, 810, bindings={"s0": 1024})
    chosen, _ = selections.offer(better, "run 3")
    assert chosen.result == better
    now = Selection.objects.filter(until__isnull=True)
    assert {one.bindings["s0"]: one.result for one in now} == {16: small, 1024: better}
