"""The overview's answers: the same figures as on the pages behind them, and what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from codegen_app.graphs.models import Graph, Problem, TemplateNode
from codegen_app.graphs.pages.graph.query import graph_page
from codegen_app.kernels.models import KernelUse, ProblemWork
from codegen_app.kernels.pages.compare.query import compare_page
from codegen_app.kernels.pages.kernel.query import kernel_page
from codegen_app.site.pages.overview.query import overview
from codegen_app.tracking.models import Alert, Series
from codegen_app.tuning.models import BenchmarkResult, Environment, Selection, TuningRun
from codegen_app.tuning.queries.coverage import Coverage, featured_graph
from codegen_app.web.templatetags.kiln import us
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
    found, page = overview().summary, graph_page(tuned.graph.pk)
    assert found is not None
    assert found.ranking == page.ranking
    assert found.ranking.total_ns == page.total_ns == 2 * 60_460.0
    assert found.tuned == page.selected == 2
    # What was learned is what Compare says of these two builds.
    assert found.gain is not None
    keys = BenchmarkResult.objects.filter(kernel__in=tuned.kernels[:2]).order_by("median_ns")
    now, then = keys.values_list("build", flat=True)
    (verdict,) = compare_page([then, now]).verdicts
    assert found.gain.url == f"/compare?build={then}&build={now}"
    assert found.gain.comparison.ratio == verdict.ratio
    assert found.gain.comparison.outcome == verdict.outcome == "faster"
    assert reader.get(found.gain.url).status_code == 200


def test_the_narrowest_kernel_has_the_waves_of_its_own_page(tuned: World) -> None:
    found = overview().summary
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
    summary = text.partition('aria-labelledby="summary"')[2].partition("</section>")[0]
    for part in ("CPU emulation", "s0=16", "2 of 2 nodes", "n = 24", "emulated", "100.0", "120.9"):
        assert part in summary, part
    assert "lowest occupancy" in summary or "full occupancy" in summary


def test_another_graph_is_asked_for_by_the_address(
    tuned: World, code_cache: Path, reader: Client
) -> None:
    other = make_world(code_cache, "other", layers=1, compiled=1).graph
    assert (
        reader.get(f"/overview.json?graph={other.pk}").json()["summary"]["ranking"]["name"]
        == "other"
    )
    tiny = reader.get(f"/overview.json?graph={tuned.graph.pk}").json()["summary"]["ranking"]
    assert tiny["name"] == "tiny"
    page = reader.get("/?graph=999999").content.decode()
    assert 'aria-labelledby="summary"' in page


def test_who_keeps_an_older_graph_is_offered_the_newer_one(
    tuned: World, code_cache: Path, reader: Client
) -> None:
    """The region says which graph its news are of; what is usual offers nothing."""
    assert overview().offered is None
    assert overview(tuned.graph.pk).offered is None
    newer = make_world(code_cache, "newer", layers=3, compiled=1).graph
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
    found = reader.get("/overview.json").json()["summary"]
    target, bucket = found["ranking"]["built_for"], found["ranking"]["bucket"]
    assert target == found["narrowest"]["target"] != bucket["target"]
    assert found["elsewhere"] is True
    bottleneck = _bottleneck(reader)
    assert 'class="elsewhere"' in bottleneck
    assert f'<span class="tag">on {target}</span>' in bottleneck
    for part in ("the times are from another target", bucket["device_name"]):
        assert part in bottleneck, part
    Environment.objects.update(target=target)
    Selection.objects.update(target=target)
    same = reader.get("/overview.json").json()["summary"]
    assert same["ranking"]["bucket"]["target"] == same["ranking"]["built_for"] == target
    assert same["elsewhere"] is False
    assert "from another target" not in _bottleneck(reader)


def _bottleneck(reader: Client) -> str:
    text = " ".join(reader.get("/").content.decode().split())
    before, _, after = text.partition("<dt> Bottleneck")
    return before[-60:] + after.partition("</dd>")[0]


def test_an_empty_site_teaches_the_first_three_steps(reader: Client, tuner: Client) -> None:
    page = overview()
    assert (page.summary, page.next_step) == (None, None)
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
    assert "Times on this site: none yet" in " ".join(tuner.get("/").content.decode().split())
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
    assert "100.0%" in step.why
    assert 'class="button primary"' not in reader.get("/").content.decode()
    assert "requires the permission" in reader.get("/").content.decode()
    alert = own_alert(tuned, 140.0)
    step = overview().next_step
    assert step is not None
    assert (step.url, step.permission) == (f"/alerts/{alert.pk}", "")
    summary = _summary(reader)
    assert f'href="/alerts/{alert.pk}"' in summary
    assert "1.372 \N{EN DASH} 1.428" in summary


def own_alert(world: World, after: float, **fields: object) -> Alert:
    """An open regression of a series of the world's problem."""
    alert = alerts.alert(**fields)
    change = alerts.change(alert, 100.0, after)
    Series.objects.filter(pk=change.series_id).update(own_problem=world.nodes[0].problem)
    return alert


def _summary(reader: Client) -> str:
    page = " ".join(reader.get("/").content.decode().split())
    return page.partition('aria-labelledby="summary"')[2].partition("</section>")[0]


def test_the_panel_of_a_graph_has_its_own_regressions_alone(tuned: World, reader: Client) -> None:
    """Those of other series are listed below; one that has recovered comes last, and is nothing to
    do next."""
    others = alerts.alert(worst_ratio=9.0)
    alerts.change(others, 100.0, 900.0)
    recovered = own_alert(tuned, 300.0, recovered_at=timezone.now())
    page = overview()
    assert page.summary is not None
    assert [row.id for row in page.summary.regressions] == [recovered.pk]
    assert page.next_step is not None and "/alerts/" not in page.next_step.url
    assert f"/alerts/{others.pk}" not in _summary(reader)
    assert [row.id for row in page.changes.worst_regressions] == [others.pk, recovered.pk]
    assert page.regression is not None and page.regression.id == others.pk
    current = own_alert(tuned, 110.0)
    summary, step = overview().summary, overview().next_step
    assert summary is not None and step is not None
    assert [row.id for row in summary.regressions] == [current.pk, recovered.pk]
    assert (step.text, step.url) == ("Review 1 open regression", f"/alerts/{current.pk}")


def test_the_sum_names_what_it_lacks(tuned: World, reader: Client) -> None:
    """The largest node without a time, with its lower bound where the device has a roofline."""
    device = {"device_name": "AMD Instinct MI300X", "target": "gfx942"}
    Environment.objects.update(emulated=False, **device)
    BenchmarkResult.objects.update(emulated=False)
    Selection.objects.update(**device)
    problem = Problem.objects.create(
        digest=factories.digest(), kind="gemm", op="mm", summary="", text="t"
    )
    ProblemWork.objects.create(
        problem=problem, read_bytes=53 * 10**9, written_bytes=0, matrix_flops=0, vector_ops=0
    )
    head = TemplateNode.objects.create(
        graph=tuned.graph, problem=problem, position=9, name="head", kind="gemm", op="mm"
    )
    KernelUse.objects.create(
        kernel=factories.kernel(), template_node=head, position=0, is_default=True
    )
    summary = _summary(reader)
    assert "2 of 3 nodes" in summary
    link = f'<a href="{head.get_absolute_url()}">head mm</a>'
    shown = overview().summary
    assert shown is not None
    (missing,) = shown.ranking.missing
    assert 9e6 < (missing.least_ns or 0) < 11e6, "53 GB at the 5.3 TB/s of the board"
    at_least = us(missing.least_ns).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert f"without {link} (at least {at_least} \N{MICRO SIGN}s)" in summary


def test_open_work_says_how_far_it_is(tuned: World, reader: Client) -> None:
    """A run of the world is open, and a graph waits for its preparation."""
    fresh = factories.graph(name="fresh")
    assert {row.kind.name for row in overview().kinds} == {"emulated"}
    rows = {row.subject: row for row in overview().work}
    assert (rows["fresh"].url, rows["fresh"].state, rows["fresh"].text) == (
        fresh.get_absolute_url(),
        State.QUEUED,
        "queued for preparation",
    )
    run = rows[f"run {tuned.run.pk} of tiny, cpu"]
    assert run.text == "2 of 2 candidates are measured"
    page = reader.get("/").content.decode()
    assert f'<a href="{fresh.get_absolute_url()}">fresh</a>: queued for preparation' in page
    assert "No worker is online" not in page
    Worker.objects.all().delete()
    assert {row.state for row in overview().work} == {State.QUEUED}
    assert reader.get("/").content.decode().count("No worker is online") == 1


def test_a_newcomer_finds_a_kernel_a_regression_and_tuning(tuned: World, tuner: Client) -> None:
    """A regression with a known cause is preferred; who may not tune is led to a finished run."""
    unknown = own_alert(tuned, 190.0)
    explained = alerts.alert()
    alerts.change(explained, 100.0, 110.0, cause="code")
    TuningRun.objects.update(state=State.DONE, finished_at=timezone.now())
    start = _start(tuner)
    kernel, node = tuned.kernels[1], tuned.nodes[0]
    assert f'href="{kernel.get_absolute_url()}?node={node.pk}' in start
    assert f'href="/alerts/{explained.pk}"' in start
    assert f"/alerts/{unknown.pk}" not in start
    assert f'href="/retune?node={node.pk}"' in start
    assert "CPU emulation" in start
    tuner.force_login(User.objects.create_user("reader"))
    start = _start(tuner)
    assert "/retune" not in start
    assert f'href="{tuned.run.get_absolute_url()}"' in start


def _start(client: Client) -> str:
    page = " ".join(client.get("/").content.decode().split())
    return page.partition('<div class="start">')[2].partition("</ul>")[0]


def test_queries_do_not_grow_with_what_there_is(tuned: World, code_cache: Path) -> None:
    make_world(code_cache, "another")
    few = [queries_of(overview, tuned.graph.pk)]
    make_world(code_cache, "larger", layers=7, candidates=6)
    assert_steady(few, [queries_of(overview, tuned.graph.pk)], usual=[36])


def test_a_graph_of_which_little_is_measured_is_not_the_first(
    tuned: World, code_cache: Path
) -> None:
    """Three of its seven nodes have a time: the cost that it would name says little."""
    newer = make_world(code_cache, "newer", layers=3).graph
    assert overview().summary.ranking.name == "newer", "all of it"  # type: ignore[union-attr]
    for place in (3, 4, 5, 6):
        problem = Problem.objects.create(
            digest=factories.digest(), kind="gemm", op="mm", summary="", text="t"
        )
        node = TemplateNode.objects.create(
            graph=newer, problem=problem, position=place, name=f"op{place}", kind="gemm", op="mm"
        )
        KernelUse.objects.create(
            kernel=factories.kernel(), template_node=node, position=0, is_default=True
        )
    shown, requested = overview().summary, overview(newer.pk).summary
    assert shown is not None and requested is not None
    rankings = (shown.ranking, requested.ranking)
    assert [(row.graph, str(row.measured)) for row in rankings] == [
        (tuned.graph.pk, "2 of 2"),
        (newer.pk, "3 of 7"),
    ]


def test_the_graph_with_the_most_measured_nodes_is_the_first() -> None:
    """Of graphs measured by half: times of a device before emulated ones, then the number of
    measured nodes, then the newest."""
    emulated, small = Coverage(90, 90, emulated=True), Coverage(16, 16)
    little, large, unmeasured = Coverage(40, 90), Coverage(86, 88), Coverage(0, 99)
    newest_first = {5: unmeasured, 4: little, 3: small, 2: large, 1: emulated}
    for expected in (2, 3, 1, 4, 5):
        assert featured_graph(newest_first) == expected
        del newest_first[expected]
    assert featured_graph({}) is None
    assert featured_graph({2: small, 1: small}) == 2
    assert featured_graph({2: unmeasured, 1: Coverage()}) == 2
