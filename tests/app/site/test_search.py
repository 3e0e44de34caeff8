"""Search and the palette: anything by what is typed, within a limit, and only what one may do."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.db import connection
from django.test import Client

from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build, GeneratedKernel, InstructionUse
from codegen_app.kernels.services import instructions
from codegen_app.platform import artifacts
from codegen_app.site.pages.search.query import SearchResult, palette, search
from codegen_app.site.search import model
from codegen_app.site.search.model import Finder, Hit, Rank
from scheduler import samples
from tests.app import factories, track_factories
from tests.support.catalogue import Index, indexes
from tests.support.pages_world import World
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db


def group(found: SearchResult, key: str) -> list[Hit]:
    return [hit for one in found.groups if one.key == key for hit in one.hits]


def ask(client: Client, query: str, at: str = "/") -> dict[str, list[dict[str, str]]]:
    answer = client.get(f"/palette.json?{urlencode({'q': query, 'at': at})}")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    return {one["key"]: one["hits"] for one in answer.json()["groups"]}


def test_everything_is_found_by_what_people_call_it(world: World) -> None:
    kernel, run, graph = world.kernels[0], world.run, world.graph
    factories.environment(device_name="Epyc 9554")
    alert = track_factories.regression("softmax 512")
    assert alert.revision is not None
    name = alert.revision.name
    for query, key, url in (
        ("tiny", "graphs", graph.get_absolute_url()),
        (graph.digest[:8], "graphs", graph.get_absolute_url()),
        ("op0", "nodes", world.nodes[0].get_absolute_url()),
        (kernel.name[5:], "kernels", kernel.get_absolute_url()),
        (" ".join(kernel.name.split("_")[::-1]), "kernels", kernel.get_absolute_url()),
        (f"op0 {world.nodes[0].op}", "nodes", world.nodes[0].get_absolute_url()),
        ("layers.0.mlp", "modules", f"{graph.get_absolute_url()}?node=gelu_0"),
        ("gelu_0", "graph_nodes", f"{graph.get_absolute_url()}?node=gelu_0"),
        (f"run {run.pk}", "runs", run.get_absolute_url()),
        (str(run.pk), "runs", run.get_absolute_url()),
        ("gfx94", "targets", "/kernels?target=gfx942"),
        ("softmax", "ops", "/ops?words=aten.softmax"),
        ("coverage", "pages", "/ops"),
        (f"alert {alert.pk}", "alerts", alert.get_absolute_url()),
        (name[:8], "alerts", alert.get_absolute_url()),
        (name[:8], "revisions", f"/compare/revisions?after={name}"),
        ("epyc", "devices", "/series?device=Epyc+9554"),
        ("occupancy", "terms", "/glossary#occupancy"),
    ):
        assert url in [hit.url for hit in group(search(query), key)], query
    assert search("  ").groups == ()
    assert search("a").is_short


def test_the_best_matches_come_first(reader: Client) -> None:
    for number in (1, *range(10, 20)):
        factories.graph(name=f"gpt{number}")
    factories.graph(name="my gpt1")
    hits = ask(reader, "gpt1")["graphs"]
    assert hits[0]["text"] == "gpt1", "exactly, though it is the oldest"
    assert {hit["text"][:4] for hit in hits[:-1]} == {"gpt1"}
    assert next(iter(ask(reader, "glossary"))) == "pages"
    assert "operations" in ask(reader, "results")
    assert [Rank.of("op1", text) for text in ("op1 addmm", "op10 mm", "my op1", "stop1")] == [
        *(Rank.EXACT, Rank.PREFIX, Rank.WORD, Rank.OTHER)
    ]


def test_a_line_of_the_model_is_found_as_it_was_imported() -> None:
    graph, _ = graphs.import_graph(samples.path("gpt2_2layer"), "gpt2", [], None)
    node = graph.nodes.exclude(source="").first()
    assert node is not None
    file, _, line = node.source.rpartition(":")
    assert line.isdigit()
    assert not file.startswith("/torch/")
    (hit, *_) = group(search(node.source), "sources")
    assert (hit.text, hit.url.partition("?")[0]) == (node.source, graph.get_absolute_url())


def test_kernels_are_found_by_a_parameter_and_its_values(world: World) -> None:
    one, other = (GeneratedKernel.objects.get(pk=kernel.pk) for kernel in world.kernels[:2])
    found = search(f"BLOCK={one.config['block']}")
    assert [hit.text for hit in group(found, "parameters")] == [one.name]
    values = {hit.text for hit in group(search("block"), "parameters")}
    assert values == {f"block={one.config['block']}", f"block={other.config['block']}"}
    assert group(search("block=77"), "parameters") == []
    assert group(search("config__source=1"), "parameters") == []


def test_instructions_are_counted_once_and_found(world: World) -> None:
    build = Build.objects.get(kernel=world.kernels[0], target="gfx942")
    assert build.instructions is None
    assert instructions.count_some(at_most=1) == 1
    while instructions.count_some():
        pass
    build.refresh_from_db()
    uses = InstructionUse.objects.filter(build=build)
    assert build.instructions == sum(uses.values_list("count", flat=True)) > 10
    instructions.record(build)  # by another worker at the same time
    assert uses.count() == InstructionUse.objects.filter(build=build).count()
    assert build.listing is not None
    text = artifacts.read(build.listing).decode()
    assert "s_endpgm" in text
    (hit,) = [one for one in group(search("s_endp"), "instructions") if one.text == "s_endpgm"]
    assert hit.url == "/search?q=s_endpgm"
    found = group(search("s_endpgm"), "with_instruction")
    assert f"{build.kernel.get_absolute_url()}?build={build.pk}" in [one.url for one in found]
    assert any("gfx942" in one.where for one in found)


def test_a_lost_listing_has_no_instructions_and_is_not_looked_for_again(world: World) -> None:
    build = Build.objects.get(kernel=world.kernels[0], target="gfx942")
    assert build.listing is not None
    default_storage.delete(build.listing.path)
    instructions.record(build)
    build.refresh_from_db()
    assert build.instructions == 0


def test_people_are_found_by_who_is_logged_in(world: World, reader: Client) -> None:
    User.objects.create_user("grace")
    User.objects.create_user("gracious", is_active=False)
    (hit,) = ask(reader, "grac")["people"]
    assert hit["url"] == "/alerts?assignee=grace&state=all"
    assert group(search("grace"), "people") == []
    assert len(group(search("grace", with_people=True), "people")) == 1


def test_each_kind_is_listed_up_to_a_limit_and_says_that_there_is_more(reader: Client) -> None:
    for number in range(60):
        factories.graph(name=f"model {number}")
    found = search("model")
    (graphs,) = [one for one in found.groups if one.key == "graphs"]
    assert (len(graphs.hits), graphs.count) == (50, "50+")
    page = reader.get("/search?q=model").content.decode()
    assert '<a href="#graphs">' in page
    assert "50+" in page
    assert len(ask(reader, "model")["graphs"]) == 6


def test_a_kind_that_takes_too_long_is_said_and_holds_up_no_other(world: World) -> None:
    limits: list[str] = []

    def slow(query: str, most: int) -> list[Hit]:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            limits.append(cursor.fetchone()[0])
            cursor.execute("SET LOCAL statement_timeout = 1")  # which is over at once
            cursor.execute("SELECT pg_sleep(600)")
        return []

    quick = Finder("quick", "Quick", lambda query, most: [Hit("graph", query, "/")])
    before = connection.cursor().execute("SHOW statement_timeout").fetchone()
    found = model.run_finders((Finder("slow", "Slow", slow), quick), "x", 5, limit_ms=600_000)
    assert limits == ["10min"]
    assert [(one.key, one.is_cut, one.count) for one in found] == [
        ("slow", True, "?"),
        ("quick", False, "1"),
    ]
    assert connection.cursor().execute("SHOW statement_timeout").fetchone() == before


def test_large_tables_have_the_indexes_that_they_are_searched_by() -> None:
    """What grows with kernels and builds: parameters and instructions."""
    kernels = indexes(GeneratedKernel._meta.db_table)
    assert kernels["kernel_config"] == Index("gin", ("config",)), "for what a config contains"
    uses = indexes(InstructionUse._meta.db_table).values()
    assert "mnemonic_id" in {one.columns[0] for one in uses if not one.where}
    uncounted = frozenset({"listing_id IS NOT NULL", "instructions IS NULL"})
    builds = indexes(Build._meta.db_table)
    assert builds["build_not_counted"] == Index("btree", ("id",), where=uncounted)


def test_actions_are_offered_to_who_may_do_them(world: World, tuner: Client) -> None:
    node, kernel = world.nodes[0], world.kernels[0]
    (retune, *_) = ask(tuner, "retune op0")["actions"]
    assert retune["url"] == f"/retune?node={node.pk}"
    assert tuner.get(retune["url"]).status_code == 200
    assert ask(tuner, "retune tiny")["actions"][0]["url"] == f"/retune?graph={world.graph.pk}"
    for at, url in (
        (node.get_absolute_url(), f"/retune?node={node.pk}"),
        (kernel.get_absolute_url(), f"/retune?kernel={kernel.name}"),
        (world.run.get_absolute_url(), f"/retune?run={world.run.pk}"),
    ):
        assert url in [hit["url"] for hit in ask(tuner, "retune", at)["actions"]]
        assert url in [hit["url"] for hit in ask(tuner, "", at)["actions"]]


def test_no_action_is_offered_to_who_may_not(world: World, reader: Client) -> None:
    for query in ("retune op0", "import", "", "token"):
        hits = ask(reader, query, world.nodes[0].get_absolute_url()).get("actions", [])
        assert [hit["text"] for hit in hits if hit["text"] != "Change my password"] == [], query


def test_a_kernel_is_compared_with_another_target_from_its_page(
    world: World, reader: Client
) -> None:
    kernel = world.kernels[0]
    first, second = (
        Build.objects.get(kernel=kernel, target=target) for target in ("gfx1100", "gfx942")
    )
    at = f"{kernel.get_absolute_url()}?build={first.pk}"
    (hit,) = ask(reader, "compare with gfx942", at)["actions"]
    assert hit["url"] == f"/compare?build={first.pk}&build={second.pk}"
    assert reader.get(hit["url"]).status_code == 200
    assert "actions" not in ask(reader, "compare with gfx1100", at)
    other = ask(reader, "compare", f"{kernel.get_absolute_url()}?build={second.pk}")["actions"]
    assert [one["text"] for one in other] == ["Compare with gfx1100"]
    assert "actions" not in ask(reader, "compare with gfx942", "/kernels")


def test_the_palette_costs_as_much_whatever_there_is(world: World, tuner: Client) -> None:
    at, counts = world.kernels[0].get_absolute_url(), []
    for more in (1, 20):
        for number in range(more):
            factories.graph(name=f"model {more} {number}")
        counts.append(
            [
                queries_of(palette, query, at, User.objects.get(username="tuner"))
                for query in ("", "model", "retune op0", "s_endpgm", "block=64")
            ]
        )
    assert_steady(*counts, usual=[13, 57, 55, 57, 53])
