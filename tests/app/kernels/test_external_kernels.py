"""A kernel of somebody else's is given with its launch, modelled by a worker, and looked at."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from codegen_app import tasks
from codegen_app.accounts.models import AuditEntry
from codegen_app.kernels.models import ForeignKernel
from codegen_app.kernels.services import external_kernels
from codegen_app.platform.models import Artifact
from codegen_app.site import retention
from codegen_app.workers import work
from codegen_app.workers.models import State
from tests.support.foreign_kernels import (
    LAUNCH,
    LISTING,
    LOOPING,
    looked_at,
    looping_launch,
    report,
)

# Workers and threads have connections of their own, which must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)


def given(client: Client, content: str = LISTING, launch: str = LAUNCH, **more: Any) -> Any:
    """The form, sent."""
    file = SimpleUploadedFile("double.s", content.encode())
    return client.post("/look", {"file": file, "launch": launch, "board": "gfx942 MI300X", **more})


def test_a_worker_models_it_and_the_page_says_where_its_cycles_go(tuner: Client) -> None:
    answer = given(tuner)
    row = ForeignKernel.objects.get()
    assert answer.headers["Location"] == row.get_absolute_url()
    page = tuner.get(row.get_absolute_url()).content.decode()
    assert 'hx-trigger="every 2s"' in page
    assert "Waiting for a worker." in page
    tasks.compile()
    row.refresh_from_db()
    assert (row.state, row.function, row.reason) == (State.DONE, "double", "")
    assert row.time_us == report().time_us.mid
    page = tuner.get(row.get_absolute_url()).content.decode()
    assert report().sentence in page
    assert "global_load_dword" in page
    assert "m-stall" in page
    twin = tuner.get(f"/look/{row.pk}.json").json()
    assert twin["row"]["time_us"] == row.time_us
    assert twin["modelled"]["sentence"] == row.sentence
    assert tuner.get(f"/look/{row.pk}/kernel.s").content.decode() == LISTING
    assert tuner.get(f"/look/{row.pk}/report.json").json()["kernel"] == "double"
    assert row.name in tuner.get("/look").content.decode()
    assert AuditEntry.objects.filter(action="look").count() == 1


@pytest.mark.full
def test_a_structure_by_value_is_given_by_its_numbers_or_bytes(tuner: Client) -> None:
    times = []
    for structure in ("[8, 1, 2]", '{"bytes": "08000000 d0070000 02000000"}'):
        assert given(tuner, LOOPING, looping_launch(structure)).status_code == 302
        tasks.compile()
        row = ForeignKernel.objects.latest("pk")
        assert (row.state, row.reason) == (State.DONE, "")
        times.append(row.time_us)
    assert times[1] > 2 * times[0], "its second number says how often the kernel doubles"
    given(tuner, LOOPING, looping_launch("7"))
    tasks.compile()
    reason = ForeignKernel.objects.latest("pk").reason
    assert "arguments[2]: 12 bytes by value are a structure: give its numbers" in reason


def test_the_launch_may_be_a_file_but_not_both(tuner: Client) -> None:
    launch = SimpleUploadedFile("launch.json", LAUNCH.encode())
    assert given(tuner, launch="", launch_file=launch).status_code == 302
    launch.seek(0)
    for sent, says in (
        ({"launch_file": launch}, "not both"),
        ({"launch": ""}, "A launch is required"),
        ({"launch": "["}, "not valid JSON"),
        ({"launch": '{"grid": [1], "block": [1]}'}, "&#x27;arguments&#x27; is a required"),
        ({"board": "gfx942 MI9"}, "is not a supported board"),
    ):
        answer = given(tuner, **sent)
        assert answer.status_code == 422
        assert says in answer.content.decode(), says
    assert ForeignKernel.objects.count() == 1


def test_what_cannot_be_modelled_is_rejected_in_a_line(tuner: Client) -> None:
    fewer = LAUNCH.replace("[{", "[null, {", 1)
    for content, launch, says in (
        ("int main() {}", LAUNCH, "not a listing of AMD's assembler"),
        (LISTING.replace("gfx942", "gfx950"), LAUNCH, "built for gfx950, not for gfx942"),
        (LISTING, fewer, "3 arguments; the kernel takes 2"),
    ):
        given(tuner, content, launch)
        tasks.compile()
        row = ForeignKernel.objects.latest("pk")
        assert row.state == State.REJECTED
        assert says in row.reason
        page = tuner.get(row.get_absolute_url()).content.decode()
        assert says.replace("'", "&#x27;") in page


def test_a_file_that_is_too_large_is_not_taken(tuner: Client, settings: Any) -> None:
    settings.FOREIGN_KERNEL_MAX_BYTES = 100
    answer = given(tuner)
    assert answer.status_code == 422
    assert "larger than 100" in answer.content.decode()
    assert ForeignKernel.objects.count() == 0


def test_nobody_has_more_than_some_at_once(tuner: Client) -> None:
    for _ in range(external_kernels.MAX_OPEN):
        assert given(tuner).status_code == 302
    answer = given(tuner)
    assert answer.status_code == 422
    assert "wait until one finishes" in answer.content.decode()


def test_it_is_cancelled_by_who_asked_for_it(tuner: Client) -> None:
    given(tuner)
    row = ForeignKernel.objects.get()
    other = Client()
    other.force_login(User.objects.create_user("other"))
    assert other.post(f"/look/{row.pk}/cancel").status_code == 403
    tuner.post(f"/look/{row.pk}/cancel")
    row.refresh_from_db()
    assert row.state == State.CANCELLED
    tasks.compile()
    row.refresh_from_db()
    assert row.state == State.CANCELLED


def test_one_that_loses_its_lease_ends_its_process(
    tuner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_MAX_INTERVAL_S", 0.05)  # heartbeats
    given(tuner)
    row = work.claim_next(ForeignKernel.objects.all(), "here")
    assert row is not None
    ForeignKernel.objects.filter(pk=row.pk).update(claim="another's")
    with pytest.raises(work.LeaseLostError):
        external_kernels.run(row)


def test_they_are_kept_for_a_while_and_their_files_with_them(settings: Any) -> None:
    kept, old = looked_at(), looked_at("old.s")
    long_ago = timezone.now() - timedelta(days=settings.KEEP_FOREIGN_KERNELS_DAYS + 1)
    ForeignKernel.objects.filter(pk=kept.pk).update(finished_at=timezone.now())
    ForeignKernel.objects.filter(pk=old.pk).update(finished_at=long_ago)
    Artifact.objects.update(used_at=long_ago)
    assert retention.sweep()["kernels of others"] == 1
    assert list(ForeignKernel.objects.all()) == [kept]
    assert Artifact.objects.count() == 2  # the file is the listing
    kept.delete()
    retention.sweep()
    assert Artifact.objects.count() == 0
