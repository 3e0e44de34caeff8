"""A model whose every text is chosen to break a page: all of it stays text, on every page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import GeneratedKernel
from codegen_app.kernels.services import preparation
from codegen_app.workers import work
from codegen_app.workers.models import State
from tests.support import exported
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db(transaction=True)

MARKUP = '</script></title></textarea><script>alert("x")</script><img src=x onerror=y>'
TURNED = "a\N{RIGHT-TO-LEFT OVERRIDE}b"
FORGED = "a\r\nSet-Cookie: x=1\r\n\r\n<b>"
SYMBOLS = {"s0": "__proto__", "s1": "constructor"}


def document() -> Any:
    """Attention with hostile names in all places that pages show."""
    made = exported.with_symbols(exported.attention(), SYMBOLS)
    names = {"q": "__proto__", "k": f"k{MARKUP}", "v": f"v{FORGED}"}
    nodes = made["graph_module"]["graph"]["nodes"]
    for node, text in zip(nodes, (MARKUP, TURNED + FORGED), strict=True):
        names[node["name"]] = text
        node["metadata"] = {
            "stack_trace": f'  File "{text[:20]}{MARKUP[:60].replace(chr(34), chr(39))}", '
            f"line 3, in {MARKUP}\n    {MARKUP}\n",
            "nn_module_stack": f"a,,b;a,{MARKUP},torch.{MARKUP}",
            "torch_fn": f"x;builtin.{MARKUP}",
        }
    made["torch_version"] = MARKUP[-55:]
    return exported.renamed(made, names)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    file = exported.write(tmp_path / "model.pt2", document())
    made, new = graphs.import_graph(file, f"{MARKUP[:150]}{TURNED}", ["gfx942"], None)
    assert new
    claimed = work.claim_next(Graph.objects.filter(pk=made.pk), "w")
    assert claimed is not None
    preparation.prepare(claimed)
    made.refresh_from_db()
    assert made.state == State.DONE, made.reason
    return made


class Reader(HTMLParser):
    """What a browser would run of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.tags.append(f"{tag} {attrs}")
        if tag in ("img", "b", "style", "textarea") or any(n.startswith("on") for n in given):
            self.tags.append(f"{tag} {attrs}")
        for name in ("href", "src", "action"):
            if re.match(r"\w+:|//", given.get(name) or ""):
                self.tags.append(f"{tag} {attrs}")


def addresses(graph: Graph) -> Iterator[str]:
    yield from ("/", "/graphs", "/kernels", "/runs", "/search?q=script", "/search?q=__proto__")
    yield graph.get_absolute_url()
    for node in TemplateNode.objects.filter(graph=graph):
        yield node.get_absolute_url()
    kernel = GeneratedKernel.objects.filter(uses__template_node__graph=graph).first()
    assert kernel is not None
    yield kernel.get_absolute_url()


def test_all_of_it_stays_text(reader: Client, graph: Graph) -> None:
    seen = ""
    for address in addresses(graph):
        answer = reader.get(address)
        assert answer.status_code == 200, address
        page = answer.content.decode()
        found = Reader()
        found.feed(page)
        assert found.tags == [], address
        assert "Set-Cookie: x" not in str(answer.headers), address
        seen += page
        twin = re.search(r'<link rel="alternate" type="application/json" href="([^"]+)">', page)
        assert twin, address
        reader.get(twin[1].replace("&amp;", "&")).json()
    assert "&lt;script&gt;alert" in seen
    assert "__proto__" in seen
    assert "n___proto__" in graph.wrapper
    assert "n___proto__" not in json.dumps(graph.symbols)


def test_downloads_keep_their_names_and_headers(reader: Client, graph: Graph) -> None:
    kernel = GeneratedKernel.objects.filter(uses__template_node__graph=graph).first()
    assert kernel is not None
    answer = reader.get(f"{kernel.get_absolute_url()}/{kernel.source_file}")
    source = b"".join(answer) if answer.streaming else answer.content
    assert source.decode() == kernel.source
    assert "nosniff" in answer.headers["X-Content-Type-Options"]
    for value in answer.headers.values():
        assert value.isprintable()
    bundle = reader.get(f"{graph.get_absolute_url()}/bundle.zip", follow=True)
    assert bundle.status_code == 200
    for value in bundle.headers.values():
        assert value.isprintable()


def test_an_offline_page_keeps_it_text_too(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    kernel.source = f"// {MARKUP}\n{kernel.source}"
    kernel.save()
    build = kernel.builds.filter(target="gfx942").get()
    page = reader.get(f"{kernel.get_absolute_url()}/{build.pk}/kernel.html").content.decode()
    assert "&lt;script&gt;alert" in page
    assert "<img" not in page
    assert page.count("<script") == 1
