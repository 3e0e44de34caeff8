"""Downloads: bundles that run elsewhere, and a kernel's page that works without the site."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build, GeneratedKernel, KernelUse
from codegen_app.kernels.pages.compare import listings
from codegen_app.kernels.pages.compare import query as comparing
from codegen_app.kernels.pages.kernel import files as kernel_files
from codegen_app.kernels.services import builds, preparation
from codegen_app.platform import artifacts
from codegen_app.tuning.pages.bundles import view as views
from codegen_app.tuning.services import bundles
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.build.recipe import recipe_of
from scheduler.bundle import reader as bundle_reader
from scheduler.ir.graph import ConstantOutput
from scheduler.targets import find
from tests.app import factories
from tests.support.pages_world import World

# Heartbeats come over a connection of their own and must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def prepared() -> Graph:
    return factories.prepared_graph("gpt2_2layer")


def unpacked(answer: object, folder: Path) -> Path:
    """The one folder in a downloaded zip."""
    assert "attachment" in answer.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        archive.extractall(folder)
    (only,) = folder.iterdir()
    return only


@pytest.mark.full
def test_one_kernels_bundle_runs_by_itself(reader: Client, prepared: Graph, tmp_path: Path) -> None:
    """The wrapper in it, in a process of its own, against numpy."""
    use = KernelUse.objects.filter(
        template_node__graph=prepared, template_node__op="addmm", is_default=True
    ).first()
    assert use is not None
    address = f"{use.kernel.get_absolute_url()}/bundle.zip?node={use.template_node_id}"
    page = reader.get(address, follow=True).content.decode()
    assert "is not built for any target yet" in page
    asked = builds.request_build(use.kernel, "cpu", DEFAULT_FLAGS, None)
    claimed = work.claim_next(Build.objects.filter(pk=asked.pk), "w")
    assert claimed is not None
    builds.run_build(claimed)

    folder = unpacked(reader.get(address), tmp_path / "out")
    bundle = bundle_reader.open_bundle(folder)
    assert (list(bundle.manifest.kernels), bundle.manifest.targets) == ([use.kernel.name], ("cpu",))
    given, outputs = tmp_path / "in.npz", tmp_path / "out.npz"
    rng = np.random.default_rng(0)
    values = {
        bundle.manifest.buffers[name].source_name or name: 0.1
        * rng.standard_normal([5 if str(s) in prepared.symbols else int(s) for s in sizes])
        for name in bundle.manifest.inputs
        for sizes in [bundle.manifest.buffers[name].size]
    }
    halves = {name: value.astype(np.float16) for name, value in values.items()}
    np.savez(given, **halves)
    (symbol,) = prepared.symbols
    done = subprocess.run(
        [
            *(sys.executable, str(folder / "wrapper.py"), "--bind", f"{symbol}=5"),
            *("--inputs", str(given), "--outputs", str(outputs)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (got,) = np.load(outputs).values()
    by_rank = sorted(halves.values(), key=lambda value: value.ndim)
    bias, weight, x = (value.astype(np.float64) for value in by_rank)
    np.testing.assert_allclose(got, bias + x.reshape(-1, x.shape[-1]) @ weight, atol=2e-2)


@pytest.mark.full
def test_a_graphs_bundle_has_every_kernel_for_the_targets_that_all_are_built_for(
    reader: Client, prepared: Graph, tmp_path: Path
) -> None:
    address = f"/graphs/{prepared.pk}/bundle.zip"
    page = reader.get(address, follow=True).content.decode()
    assert "no target has a build of every kernel yet: tune the graph" in page
    defaults = KernelUse.objects.filter(template_node__graph=prepared, is_default=True)
    kernels = {use.kernel for use in defaults}
    for kernel in kernels:
        made_build(kernel, "gfx942")
    made_build(next(iter(kernels)), "gfx1100")
    # What is kept of the file's schedule may come from a graph of another name.
    Graph.objects.filter(pk=prepared.pk).update(name="mine")
    answers = [reader.get(address) for _ in range(2)]
    folders = [unpacked(a, tmp_path / str(n)) for n, a in enumerate(answers)]
    bundle = bundle_reader.open_bundle(folders[0])
    assert bundle.manifest.targets == ("gfx942",)
    assert (bundle.manifest.graph_name, bundle.graph.name) == ("mine", "mine")
    assert set(bundle.manifest.kernels) == {kernel.name for kernel in kernels}
    assert len(bundle.manifest.calls) == prepared.template_nodes.exclude(kind="extern").count()
    for kernel in kernels:
        place = folders[0] / "kernels" / kernel.name
        assert (place / "source.hip").read_text() == kernel.source
        assert (place / "gfx942" / "kernel.so").read_bytes() == f"so {kernel.pk}".encode()
        assert not (place / "gfx1100").exists()
    files = [
        {f.relative_to(one): f.read_bytes() for f in one.rglob("*") if f.is_file()}
        for one in folders
    ]
    assert files[0] == files[1]

    gone = artifacts.local_file(bundle_build(kernels).library)
    gone.unlink()
    assert "kernel.so of" in unescape(reader.get(address, follow=True).content.decode())


@pytest.mark.full
def test_a_graphs_name_leads_nowhere(
    reader: Client, prepared: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither on the server nor for who unpacks it: the name is text, wherever it points."""
    for use in KernelUse.objects.filter(template_node__graph=prepared, is_default=True):
        if not use.kernel.builds.exists():
            made_build(use.kernel, "gfx942")
    place = tmp_path / "around" / "temporary"
    place.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    outside = tmp_path / "around" / "outside"
    outside.mkdir()
    (outside / "manifest.json").write_text("somebody else's")
    for name in (str(outside), "../../outside", "a/../../b", "\\\\host\\share", "x\r\ny: z", "CON"):
        Graph.objects.filter(pk=prepared.pk).update(name=name)
        answer = reader.get(f"/graphs/{prepared.pk}/bundle.zip")
        assert answer.status_code == 200, name
        with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
            (top,) = {member.split("/")[0] for member in archive.namelist()}
            data = json.loads(archive.read(f"{top}/manifest.json"))
        assert re.fullmatch(r"[A-Za-z0-9_-]+-[0-9a-f]{12}", top), name
        assert f'filename="{top}.zip"' in answer.headers["Content-Disposition"]
        assert data["graph"]["name"] == name, "what it is called stays what it is called"
        assert not list(place.iterdir()), name
        assert [path.name for path in outside.iterdir()] == ["manifest.json"], name
        assert sorted(outside.parent.iterdir()) == [outside, place], name


@pytest.mark.full
def test_packing_holds_one_thread_and_no_large_graph(
    reader: Client, prepared: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes longer than a page may wait is packed by a worker, or by a command."""
    for use in KernelUse.objects.filter(template_node__graph=prepared, is_default=True):
        if not use.kernel.builds.exists():
            made_build(use.kernel, "gfx942")
    address = f"/graphs/{prepared.pk}/bundle.zip"
    with views._packing_lock:
        assert "try again in a moment" in reader.get(address, follow=True).content.decode()
    unpacked(reader.get(address), tmp_path / "direct")
    file = tmp_path / "by hand.zip"
    for limit, too_much in (
        ("MAX_NODES", 1),
        ("MAX_BUILDS", 1),
        ("MAX_BYTES", 1),
        ("MAX_PREPARATION", timedelta(0)),
    ):
        with monkeypatch.context() as smaller:
            smaller.setattr(bundles, limit, too_much)
            answer = reader.get(address)
            assert answer.headers["Location"] == f"/graphs/{prepared.pk}/pack", limit
    call_command("bundle", prepared.pk, file)
    assert zipfile.is_zipfile(file)
    with pytest.raises(CommandError, match="exists"):
        call_command("bundle", prepared.pk, file)


def bundle_build(kernels: set[GeneratedKernel]) -> Build:
    return next(iter(kernels)).builds.get(target="gfx942")


@pytest.mark.full
def test_one_kernels_bundle_returns_no_constants_of_its_model(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Constants(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return 3, x + 1, None

    torch.export.save(torch.export.export(Constants(), (torch.ones(4),)), tmp_path / "m.pt2")
    imported, _ = graphs.import_graph(tmp_path / "m.pt2", "m", ["cpu"], None)
    held = work.claim_next(Graph.objects.filter(pk=imported.pk), "w")
    assert held is not None
    preparation.prepare(held)
    use = KernelUse.objects.get(template_node__graph=imported, is_default=True)
    made_build(use.kernel, "cpu")
    found = {}
    for name, requested in (
        ("kernel", bundles.kernel_bundle(use)),
        ("graph", bundles.graph_bundle(held)),
    ):
        with zipfile.ZipFile(bundles.open_bundle(requested)) as archive:
            archive.extractall(tmp_path / name)
        (folder,) = (tmp_path / name).iterdir()
        found[name] = bundle_reader.open_bundle(folder).manifest.constant_outputs
    assert found == {"kernel": (), "graph": (ConstantOutput(0, 3), ConstantOutput(2, None))}


def made_build(kernel: GeneratedKernel, target: str) -> Build:
    """A done build whose files say whose they are."""
    return factories.build(
        kernel=kernel,
        target=target,
        state=State.DONE,
        code_digest=factories.digest(),
        duration_s=1.0,
        listing=artifacts.store(f"s {kernel.pk}".encode(), ".s"),
        code_object=artifacts.store(f"hsaco {kernel.pk}".encode(), ".hsaco"),
        library=artifacts.store(f"so {kernel.pk}".encode(), ".so"),
    )


def test_the_page_as_one_file_has_every_line_and_needs_nothing(
    reader: Client, world: World
) -> None:
    kernel = world.kernels[0]
    build = kernel.builds.get(target="gfx942")
    answer = reader.get(f"/kernels/{kernel.name}/{build.pk}/kernel.html")
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    text = answer.content.decode()
    assert not re.findall(r"""(?:src|href)=["'](?!#)[^"']*["']""", text)
    assert "@import" not in text
    assert "url(" not in text
    rows = re.findall(r'id="I\d+".*?<span class="t">(.*?)</span></div>', text, re.DOTALL)
    assert build.listing is not None
    listing = artifacts.read(build.listing).decode().removesuffix("\n").split("\n")
    assert [unescape(re.sub("<[^>]*>", "", row)) for row in rows] == listing
    rows = re.findall(r'id="L\d+".*?<span class="t">(.*?)</span></div>', text, re.DOTALL)
    assert [unescape(re.sub("<[^>]*>", "", row)) for row in rows] == kernel.source.split("\n")
    assert kernel.source_digest in text


def test_text_from_a_kernel_stays_text_in_the_file(reader: Client, world: World) -> None:
    kernel = world.kernels[0]
    kernel.source = "// </script><script>alert(1)</script>\n" + kernel.source
    kernel.save()
    build = kernel.builds.get(target="gfx942")
    text = reader.get(f"/kernels/{kernel.name}/{build.pk}/kernel.html").content.decode()
    assert text.count("<script>") == 1


def test_every_file_of_a_build_has_a_download(reader: Client, world: World) -> None:
    build = world.kernels[0].builds.get(target="gfx942")
    for file in recipe_of(find("gfx942")).files:
        answer = reader.get(f"/kernels/{world.kernels[0].name}/{build.pk}/{file}")
        assert answer.status_code == 200, file
        assert "attachment" in answer.headers["Content-Disposition"], file


def test_what_is_too_large_for_one_page_says_so(
    reader: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the page to take along nor a comparison is made of any amount of text."""
    builds_ = [one.pk for one in world.kernels[0].builds.order_by("pk")]
    compare = f"/compare?build={builds_[0]}&build={builds_[1]}"
    assert reader.get(f"{compare.replace('?', '.json?')}").json()["functions"]
    monkeypatch.setattr(kernel_files, "OFFLINE_MAX_BYTES", 10)
    for module in (comparing, listings):
        monkeypatch.setattr(module, "MAX_LISTING_BYTES", 10)
    page = f"/kernels/{world.kernels[0].name}/{builds_[0]}/kernel.html"
    assert "download the listing instead" in reader.get(page, follow=True).content.decode()
    found = reader.get(f"{compare.replace('?', '.json?')}").json()
    assert not found["functions"]
    assert not found["missing"]
    assert "A listing exceeds the" in found["too_large"][0]
    world.kernels[1].source = "\n" * (comparing.MAX_SOURCE_LINES + 1)
    world.kernels[1].save()
    other = made_build(world.kernels[1], "gfx942")
    found = reader.get(f"/compare.json?build={builds_[0]}&build={other.pk}").json()
    assert not found["source"]
    assert len(found["too_large"]) == 2
