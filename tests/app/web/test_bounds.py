"""What the bounds of a figure are called, wherever it stands: of one sample nothing, of fewer than
six a range, else a 95% interval."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from codegen_app.accounts import tokens
from codegen_app.tracking.models import Datum, Series
from codegen_app.tracking.pages.history import plots
from codegen_app.tracking.pages.history.plots import plot_data
from codegen_app.tuning.models import BenchmarkResult
from codegen_app.tuning.services import selection_io
from tests.app import track_factories as make
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db
AT = datetime(2026, 5, 1, tzinfo=UTC)
DASH = "\N{EN DASH}"
NAMES = {1: "", 2: "range", 5: "range", 6: "95% interval"}
each_count = pytest.mark.parametrize(("n", "name"), NAMES.items())


def series_of(n: int) -> tuple[Series, Datum]:
    series = make.series(points=1, first_at=AT, last_at=AT)
    return series, make.datum(series=series, value=2000.0, low=1234.0, high=4321.0, n=n, at=AT)


@each_count
def test_of_a_point(admin_client: Client, n: int, name: str) -> None:
    series, datum = series_of(n)
    ends = f"1.234 µs {DASH} 4.321 µs"
    for address in (series.get_absolute_url(), datum.get_absolute_url()):
        html = admin_client.get(address).content.decode()
        assert (f"{name} {ends}" in " ".join(html.split())) is (n > 1), address
        assert ("95% interval 1" in html) is (name == "95% interval"), address
    assert f"{name or 'interval unknown'}" in plots.badge(plot_data(series.pk), 30)
    listing = admin_client.get("/series").content.decode()
    admin = admin_client.get("/admin/codegen_app/datum/").content.decode()
    for html, text in ((listing, ends), (admin, f"1\u202f234.000 {DASH} 4\u202f321.000")):
        assert (f"range {text}" in html) is (name == "range")
        assert (text in html) is (n > 1)


@each_count
def test_of_a_point_to_programs(admin_client: Client, n: int, name: str) -> None:
    series, datum = series_of(n)
    owner = User.objects.create_user("ci")
    owner.user_permissions.add(Permission.objects.get(codename="make_tokens"))
    token = tokens.create_token(owner, "CI", ["read"], None)[1]
    (row,) = (
        Client()
        .get(f"/api/v1/series/{series.pk}/data", headers={"Authorization": f"Bearer {token}"})
        .json()["data"]
    )
    assert (row["n"], row["bounds"]) == (n, name)
    assert admin_client.get(f"{series.get_absolute_url()}.json").json()["latest"]["bounds"] == name
    assert admin_client.get(f"{datum.get_absolute_url()}.json").json()["reading"]["bounds"] == name
    answer = admin_client.get(f"/series/{series.pk}.csv")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    (line,) = csv.DictReader(io.StringIO(text))
    assert (line["n"], line["bounds"]) == (str(n), name)


@each_count
def test_of_a_measurement(admin_client: Client, world: World, n: int, name: str) -> None:
    result = BenchmarkResult.objects.get(kernel=world.kernels[0])
    result.samples_ns = [120_000.0] * n
    result.median_ns, result.low_ns, result.high_ns = 120_000.0, 110_000.0, 130_000.0
    result.save()
    ends = f"110.0 {DASH} 130.0"
    node, run = world.nodes[0].get_absolute_url(), world.run.get_absolute_url()
    for address in (node, run, world.kernels[0].get_absolute_url(), "/"):
        html = " ".join(admin_client.get(address).content.decode().split())
        assert (f"95% interval {ends}" in html) is (name == "95% interval"), address
        assert (f"range {ends}" in html) is (name == "range"), address
    for address in ("/selections", "/admin/codegen_app/benchmarkresult/"):
        html = admin_client.get(address).content.decode()
        assert (f"range {ends}" in html) is (name == "range"), address
    rows = admin_client.get(f"{run}.json").json()["ledger"]
    (row,) = (one for one in rows if one["kernel"] == world.kernels[0].name)
    assert (row["bounds"], row["metrics"]["time"]["bounds"]) == (name, name)
    kernels = admin_client.get("/kernels.json").json()["kernels"]
    (row,) = (one for one in kernels if one["name"] == world.kernels[0].name)
    assert (row["n"], row["bounds"]) == (n, name)
    (line,) = (
        one for one in selection_io.export()["selections"] if one["kernel"] == world.kernels[0].name
    )
    assert (line["n"], line["bounds"]) == (n, name)
