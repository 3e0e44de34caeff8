"""A kernel called in this process: what it stored is judged as in the worker."""

from __future__ import annotations

import re

import pytest

from scheduler.bundle.reader import Bundle
from tests.benchmarks.cycles.oracle import judge, table
from tests.support.exported_kernels import bundle_of
from tests.unit.torch_export import as_module, export

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("outputs")
    function = as_module(lambda x, n: (torch.tanh(x / 3), (n * 5).cumsum(-1)))
    args = (torch.randn(6, 50), torch.arange(36).view(6, 6))
    _, graph = export(function, args, folder)
    return bundle_of(graph, folder / "bundle", ("gfx90a", "cpu-gfx90a"))


@pytest.mark.full
def test_instructions_agree_with_the_source_and_the_reference(bundle: Bundle) -> None:
    found = judge(bundle.folder, "small", "gfx90a", 19)
    assert [each.wrong for each in found] == [""] * len(bundle.manifest.kernels)
    assert table(found, ["gfx90a"])[-1].split() == ["all", f"{len(found)}/{len(found)}"]


def test_what_differs_from_the_source_is_said(bundle: Bundle) -> None:
    """A changed bit that the machine code stores and the source does not."""
    listing = next(
        path
        for path in sorted(bundle.folder.glob("kernels/*/gfx90a/kernel.s"))
        if "\tglobal_store_dword" in path.read_text()
    )
    text = listing.read_text()
    store = re.search(r"\tglobal_store_dword\w* v\S+, v\[?(\d+)", text)
    assert store
    change = f"\tv_xor_b32_e32 v{store[1]}, 0x800000, v{store[1]}\n"
    listing.write_text(text[: store.start()] + change + text[store.start() :])
    try:
        found = judge(bundle.folder, "small", "gfx90a", 19)
    finally:
        listing.write_text(text)
    assert sum(bool(each.wrong) for each in found) == 1
