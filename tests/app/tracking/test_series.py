"""Our own measurements become histories: each once, whole with the choice, and kept for good."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from codegen_app.kernels.models import Build
from codegen_app.tracking.models import Datum, Revision, Series, Source
from codegen_app.tracking.services import history, point_storage
from codegen_app.tuning.models import BenchmarkResult, Candidate, ResultImport
from codegen_app.tuning.services import candidate_results
from codegen_app.workers.models import State
from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from tests.app import factories
from tests.support.catalogue import Index, indexes

pytestmark = pytest.mark.django_db


def chosen(median_ns: float = 100.0, **fields: object) -> tuple[Candidate, BenchmarkResult]:
    """A candidate of a finished task with its result."""
    task = factories.task()
    build = factories.build(target="gfx942", code_digest="c" * 64)
    result = factories.result(
        build,
        median_ns,
        task=task,
        problem=task.problem,
        environment=factories.environment(driver="6.4"),
        **fields,
    )
    row = factories.candidate(
        task, build=build, state=State.DONE, result=result, finished_at=timezone.now()
    )
    return row, result


def test_a_choice_adds_its_time_to_the_history_of_its_problem() -> None:
    candidate, result = chosen(bindings={"s0": 16}, metrics={}, readings={})
    candidate_results.choose(candidate, result, [])
    row, datum = Series.objects.get(), Datum.objects.get()
    assert row.own_problem == result.problem
    assert (row.metric, row.unit, row.better) == ("time", "ns", "lower")
    assert (row.target, row.device_name) == ("gfx942", "AMD Instinct MI300X")
    assert (row.toolchain, row.sizes, row.points) == ("bundled", {"s0": 16}, 1)
    assert row.unchecked_from == row.last_at == datum.at == result.created_at
    assert (datum.value, datum.low, datum.high, datum.n) == (100.0, 100.0, 100.0, 5)
    assert datum.samples == [100.0] * 5
    assert (datum.kernel, datum.build, datum.result) == (result.kernel, result.build, result)
    assert datum.run == candidate.task.run
    assert datum.source == Source.TUNING
    assert datum.revision.name == history.own_revision()
    facts = datum.conditions.facts
    assert (facts["driver"], facts["code_digest"]) == ("6.4", "c" * 64)
    assert facts["source_digest"] == result.kernel.source_digest


def test_a_result_is_in_its_history_once() -> None:
    candidate, result = chosen()
    for _ in range(2):
        candidate_results.choose(candidate, result, [])
    assert Datum.objects.count() == 1
    assert Series.objects.get().points == 1
    datum = Datum.objects.get()
    datum.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        datum.save()


def test_the_history_goes_on_with_another_kernel_driver_and_compiler_version() -> None:
    candidate, result = chosen()
    candidate_results.choose(candidate, result, [])
    build = factories.build(target="gfx942", toolchain_version="23")
    task = factories.task()
    again = factories.result(
        build,
        90.0,
        task=task,
        problem=result.problem,
        environment=factories.environment(driver="6.5"),
    )
    other = factories.candidate(
        task, build=build, state=State.DONE, result=again, finished_at=timezone.now()
    )
    candidate_results.choose(other, again, [])
    row = Series.objects.get()
    assert row.points == 2
    assert len({one.conditions_id for one in row.data.all()}) == 2


def test_imported_results_are_of_their_own_commit_and_moment() -> None:
    candidate, result = chosen()
    moment = datetime(2026, 11, 1, 12, tzinfo=UTC)
    ResultImport.objects.create(
        run=candidate.task.run, digest=factories.digest(), commit="c" * 40, measured_at=moment
    )
    candidate_results.choose(candidate, result, [], moment)
    datum = Datum.objects.get()
    assert (datum.source, datum.at) == (Source.IMPORT, moment)
    assert (datum.revision.name, datum.revision.repository) == ("c" * 40, "kiln")


def test_a_choice_that_is_rolled_back_leaves_no_point() -> None:
    candidate, result = chosen()
    with pytest.raises(RuntimeError), transaction.atomic():
        candidate_results.choose(candidate, result, [])
        raise RuntimeError
    assert (Datum.objects.count(), Series.objects.count()) == (0, 0)


def test_a_point_outlives_run_build_and_kernel_and_still_names_its_code() -> None:
    candidate, result = chosen()
    candidate_results.choose(candidate, result, [])
    facts = Datum.objects.get().conditions.facts
    result.selections.all().delete()
    candidate.task.run.delete()
    BenchmarkResult.objects.all().delete()
    Build.objects.all().delete()
    datum = Datum.objects.get()
    assert (datum.run, datum.build, datum.result) == (None, None, None)
    assert datum.value == 100.0
    assert datum.conditions.facts == facts


def points(count: int) -> list[Point]:
    of = SeriesKey("mm", {}, "", "H200", "", "time", "ns")
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return [Point(of, float(n), moment, RevisionKey(f"r{n % 7}")) for n in range(count)]


TABLE = Datum._meta.db_table
OF_HISTORY = f"SELECT * FROM {TABLE} WHERE series_id = %s AND is_trunk ORDER BY at, id LIMIT 10"
OF_REVISION = f"SELECT * FROM {TABLE} WHERE revision_id = %s"


def test_what_is_read_and_deleted_by_has_an_index() -> None:
    """At ten million points each of these would else read all of them."""
    point_storage.store(points(50), Source.API)
    found = indexes(TABLE)
    of_history = {"datum_history": "is_trunk", "datum_of_branches": "NOT is_trunk"}
    for name, where in of_history.items():
        assert found[name] == Index("btree", ("series_id", "at"), where=frozenset({where}))
    assert found["datum_by_revision"].columns == ("revision_id",)
    assert found["datum_by_batch"] == Index("brin", ("batch_id",))
    for column in ("kernel_id", "build_id", "run_id"):
        name = f"datum_by_{column.removesuffix('_id')}"
        assert found[name] == Index("btree", (column,), where=frozenset({f"{column} IS NOT NULL"}))
    once = found["datum_result_once"]
    assert (once.columns[0], once.where) == ("result_id", {"result_id IS NOT NULL"})


@pytest.mark.long
def test_of_many_points_none_reads_all() -> None:
    """What the planner takes, where there are enough for it to have no choice."""
    (one,) = points(1)
    many = [
        replace(
            one,
            series=replace(one.series, problem=f"mm {n % 100}"),
            revision=RevisionKey(f"r{n % 1000}"),
        )
        for n in range(100_000)
    ]
    point_storage.store(many, Source.API)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {TABLE}")
        for statement, of in ((OF_HISTORY, Series), (OF_REVISION, Revision)):
            cursor.execute(f"EXPLAIN {statement}", [of.objects.all()[0].pk])
            plan = "\n".join(row[0] for row in cursor.fetchall())
            assert "Seq Scan" not in plan, plan


def test_two_that_know_different_moments_of_a_revision_agree() -> None:
    first, second = points(1)[0], points(1)[0]
    of = RevisionKey("v1", datetime(2026, 2, 1, tzinfo=UTC))
    late = RevisionKey("v1", datetime(2026, 3, 1, tzinfo=UTC))
    point_storage.store([Point(first.series, 1.0, first.measured_at, of)], Source.API)
    point_storage.store([Point(second.series, 2.0, second.measured_at, late)], Source.API)
    assert set(Datum.objects.values_list("at", flat=True)) == {of.at}
