"""The overview's answers: the same figures as on the pages behind them, and what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from codegen_app.graphs.models import Graph, Problem, TemplateNode
from codegen_app.graphs.pages.graph.query import graph_page
from codegen_app.kernels.models import KernelUse
from codegen_app.kernels.pages.compare.query import compare_page
from codegen_app.kernels.pages.kernel.query import kernel_page
from codegen_app.site.pages.overview.query import overview
from codegen_app.tuning.models import BenchmarkResult, Environment, Selection
from codegen_app.workers.models import State
from codegen_app.workers.models.worker import Worker
from tests.app import factories
from tests.support import alerts
from tests.support.pages_world import World, make_world
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def tuned(code_cache: Path) -> World:
    """The second candidate won: faster than the default, which was measured too."""
    world = make_world(code_cache, layers=2, candidates=2, compiled=2)
    won = BenchmarkResult.objects.get(kernel=world.kernels[1])
    won.samples_ns = [60_000.0 + 40 * at for at in range(24)]
    won.median_ns, won.low_ns, won.high_ns = 60_460.0, 60_300.0, 60_620.0
    won.save()
    first = BenchmarkResult.objects.get(kernel=world.kernels[0])
    first.samples_ns = [120_000.0 + 40 * at for at in range(24)]
    first.save()
    Selection.objects.update(kernel=world.kernels[1], result=won)
    return world


def test_every_figure_is_that_of_the_page_behind_it(tuned: World, reader: Client) -> None:
    found, page = overview().glance, graph_page(tuned.graph.pk)
    assert found is not None
    assert (found.total_ns, found.measured, found.bucket) == (
        page.total_ns,
        page.measured,
        page.bucket,
    )
    assert found.total_ns == 2 * 60_460.0
    top = max(page.scheduled, key=lambda row: row.share or 0)
    assert found.top is not None
    assert top.serving is not None
    assert (found.top.share, found.top.kernel) == (top.share, top.serving.kernel)
    assert found.top.metrics == top.serving.metrics
    assert found.tuned == page.selected == 2
    # What was learned is what Compare says of these two builds.
    assert found.learned is not None
    keys = BenchmarkResult.objects.filter(kernel__in=tuned.kernels[:2]).order_by("median_ns")
    now, then = keys.values_list("build", flat=True)
    (verdict,) = compare_page([then, now]).verdicts
    assert found.learned.url == f"/compare?build={then}&build={now}"
    assert found.learned.comparison.ratio == verdict.ratio
    assert found.learned.comparison.outcome == verdict.outcome == "faster"
    assert reader.get(found.learned.url).status_code == 200


def test_the_narrowest_kernel_has_the_waves_of_its_own_page(tuned: World) -> None:
    found = overview().glance
    assert found is not None
    narrowest = found.narrowest
    assert narrowest is not None
    page = kernel_page(narrowest.kernel, None, None)
    (build,) = [row for row in page.builds if narrowest.url.endswith(f"?build={row.id}")]
    assert build.target == narrowest.target
    waves, _, most = narrowest.waves.partition(" of ")
    assert 0 < int(waves) <= int(most)
    assert narrowest.is_full == (waves == most)


def test_the_page_says_sizes_device_n_and_that_times_are_emulated(
    tuned: World, reader: Client
) -> None:
    text = " ".join(reader.get("/").content.decode().split())
    glance = text.partition('aria-labelledby="glance"')[2].partition("</section>")[0]
    for part in ("CPU emulation", "s0=16", "2 of 2 nodes", "n = 24", "emulated", "50.0%", "120.9"):
        assert part in glance, part
    assert "lowest occupancy" in glance or "full occupancy" in glance


def test_another_graph_is_asked_for_by_the_address(
    tuned: World, code_cache: Path, reader: Client
) -> None:
    other = make_world(code_cache, "other", layers=1, compiled=1).graph
    assert reader.get(f"/overview.json?graph={other.pk}").json()["glance"]["name"] == "other"
    tiny = reader.get(f"/overview.json?graph={tuned.graph.pk}").json()["glance"]
    assert tiny["name"] == "tiny"
    page = reader.get("/?graph=999999").content.decode()
    assert 'aria-labelledby="glance"' in page


def test_who_keeps_an_older_graph_is_offered_the_newer_one(
    tuned: World, code_cache: Path, reader: Client
) -> None:
    """The region says which graph its news are of; what is usual offers nothing."""
    assert overview().offered is None
    assert overview(tuned.graph.pk).offered is None
    newer = make_world(code_cache, "newer", layers=1, compiled=1).graph
    kept = reader.get(f"/?graph={tuned.graph.pk}").content.decode()
    assert f'data-live-keep="graph={tuned.graph.pk}"' in kept
    text = " ".join(kept.split())
    assert 'A newer graph has been measured: <a href="/">show newer</a>' in text
    offered = reader.get(f"/overview.json?graph={tuned.graph.pk}").json()["offered"]
    assert offered == {"id": newer.pk, "name": "newer", "url": "/", "is_newer": True}
    assert overview(newer.pk).offered is None
    fresh = factories.graph(name="fresh")
    without_times = overview(fresh.pk).offered
    assert without_times is not None
    assert (without_times.id, without_times.is_newer) == (newer.pk, False)
    assert "Another graph has been measured" in reader.get(f"/?graph={fresh.pk}").content.decode()


def test_what_holds_kernels_back_says_of_which_target(tuned: World, reader: Client) -> None:
    """Times of one device, waves of another: a line of its own says so; not where both agree."""
    found = reader.get("/overview.json").json()["glance"]
    assert found["held_on"] == found["narrowest"]["target"] != found["bucket"]["target"]
    assert found["held_elsewhere"] is True
    held = _held(reader)
    assert 'class="elsewhere"' in held
    assert f'<span class="tag">on {found["held_on"]}</span>' in held
    for part in ("the times are from another target", found["bucket"]["device_name"]):
        assert part in held, part
    target = found["held_on"]
    Environment.objects.update(target=target)
    Selection.objects.update(target=target)
    same = reader.get("/overview.json").json()["glance"]
    assert (same["bucket"]["target"], same["held_on"]) == (target, target)
    assert same["held_elsewhere"] is False
    assert "from another target" not in _held(reader)


def _held(reader: Client) -> str:
    text = " ".join(reader.get("/").content.decode().split())
    before, _, after = text.partition("Bottleneck")
    return before[-60:] + after.partition("</dd>")[0]


def test_an_empty_site_teaches_the_first_three_steps(reader: Client, tuner: Client) -> None:
    page = overview()
    assert (page.glance, page.next_step) == (None, None)
    assert [step.is_done for step in page.first_steps] == [False, False, False]
    text = tuner.get("/").content.decode()
    for part in (
        "torch.export.save",
        "kiln manage import_graph",
        "kiln manage retune",
        "kiln demo",
    ):
        assert part in text, part
    assert 'href="/import"' in text


def test_the_steps_go_on_with_what_was_done(tuner: Client) -> None:
    graph = factories.graph(name="fresh")
    page = overview()
    assert [step.is_done for step in page.first_steps] == [True, True, False]
    assert page.next_step is not None
    assert page.next_step.url == "/devices", "nobody is there to prepare it"
    Worker.objects.create(
        name="w", host="h", pid=1, started_at=timezone.now(), seen_at=timezone.now()
    )
    following = overview().next_step
    assert following is not None
    assert following.url == graph.get_absolute_url()
    Graph.objects.update(state=State.DONE)
    text = tuner.get("/").content.decode()
    assert f'href="/retune?graph={graph.pk}"' in text


def test_what_to_do_next_is_the_most_pressing(tuned: World, reader: Client) -> None:
    step = overview().next_step
    assert step is not None
    assert step.url == f"/retune?node={tuned.nodes[0].pk}"
    assert "50.0%" in step.why
    assert 'class="button primary"' not in reader.get("/").content.decode()
    assert "requires the permission" in reader.get("/").content.decode()
    alert = alerts.alert()
    alerts.change(alert, 100.0, 140.0)
    step = overview().next_step
    assert step is not None
    assert (step.url, step.permission) == (f"/alerts/{alert.pk}", "")
    glance = reader.get("/").content.decode().partition('id="glance"')[2].partition("</section>")[0]
    assert f'href="/alerts/{alert.pk}"' in glance
    assert "1.372 \N{EN DASH} 1.428" in glance


def test_queries_do_not_grow_with_what_there_is(tuned: World, code_cache: Path) -> None:
    make_world(code_cache, "another")
    few = [queries_of(overview, tuned.graph.pk)]
    make_world(code_cache, "larger", layers=7, candidates=6)
    assert_steady(few, [queries_of(overview, tuned.graph.pk)], usual=[29])


def test_a_graph_of_which_little_is_measured_is_not_the_first(
    tuned: World, code_cache: Path
) -> None:
    """One of its three nodes has a time: the cost that it would name says little."""
    newer = make_world(code_cache, "newer").graph
    assert overview().glance.name == "newer", "all of it is measured"  # type: ignore[union-attr]
    for place in (1, 2):
        problem = Problem.objects.create(
            digest=factories.digest(), kind="gemm", op="mm", summary="", text="t"
        )
        node = TemplateNode.objects.create(
            graph=newer, problem=problem, position=place, name=f"op{place}", kind="gemm", op="mm"
        )
        KernelUse.objects.create(
            kernel=factories.kernel(), template_node=node, position=0, is_default=True
        )
    found, asked = overview().glance, overview(newer.pk).glance
    assert found is not None and asked is not None
    assert (found.graph, str(found.measured)) == (tuned.graph.pk, "2 of 2")
    assert (asked.graph, str(asked.measured)) == (newer.pk, "1 of 3")
