"""What the database itself refuses."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from codegen_app.tuning.models import Candidate
from codegen_app.workers.models import State
from tests.app import factories

pytestmark = pytest.mark.django_db


def test_migrations_say_what_the_models_say() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize(
    "fields",
    [{"state": "asleep"}, {"state": State.RUNNING}, {"state": State.REJECTED, "reason": ""}],
    ids=["unknown state", "running without a lease", "a loss without a reason"],
)
def test_impossible_work_is_rejected(fields: dict[str, object]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        factories.graph(**fields)


def test_the_same_graph_is_recorded_once() -> None:
    known = factories.graph()
    with pytest.raises(IntegrityError), transaction.atomic():
        factories.graph(digest=known.digest)


def test_a_build_is_asked_for_once() -> None:
    known = factories.build()
    with pytest.raises(IntegrityError), transaction.atomic():
        factories.build(kernel=known.kernel, toolchain_digest=known.toolchain_digest)


def test_a_build_without_code_is_not_done() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        factories.build(state=State.DONE)


@pytest.mark.parametrize(
    "fields",
    [{"state": State.DONE}, {"kernel": None, "build": None}],
    ids=["measured without a result", "no kernel and not refused"],
)
def test_the_ledger_cannot_lie(fields: dict[str, object]) -> None:
    task = factories.task()
    with pytest.raises(IntegrityError), transaction.atomic():
        factories.candidate(task, **fields)


def test_one_candidate_wins_a_problem() -> None:
    task = factories.task()
    factories.candidate(task, chosen=True)
    with pytest.raises(IntegrityError), transaction.atomic():
        factories.candidate(task, chosen=True)
    assert Candidate.objects.filter(task=task, chosen=True).count() == 1
