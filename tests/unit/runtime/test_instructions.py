"""The device whose kernels are emulated instructions: right results, and what it says of wrong
ones."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.benchmark.verification import verify
from scheduler.bundle.emulated import emulated_kernel, library_for
from scheduler.bundle.reader import Bundle
from scheduler.errors import UserError
from scheduler.runtime.device import DeviceError
from scheduler.runtime.devices import open_device
from scheduler.runtime.isa_device import PROCESSORS, EmulatedKernel, IsaDevice
from tests.support.exported_kernels import bundle_of
from tests.unit.torch_export import as_module, export

torch = pytest.importorskip("torch")


def layers(x: Any, w: Any, b: Any, norm: Any, places: Any) -> Any:
    """A product with GELU, attention over it, a norm and a softmax, a sum of integers."""
    hidden = torch.nn.functional.gelu(x @ w + b).view(1, 20, 2, 16).transpose(1, 2)
    mixed = torch.nn.functional.scaled_dot_product_attention(hidden, hidden, hidden, is_causal=True)
    scaled = torch.nn.functional.layer_norm(mixed.float(), (16,), norm, None)
    return torch.softmax(scaled, -1).to(torch.bfloat16), torch.cumsum(places, dim=-1)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("instructions")
    half = {"dtype": torch.float16}
    args = (torch.randn(20, 40, **half), torch.randn(40, 32, **half), torch.randn(32, **half))
    more = (torch.randn(16), torch.arange(40).view(4, 10))
    _, graph = export(as_module(layers), (*args, *more), folder)
    return bundle_of(graph, folder / "bundle", PROCESSORS)


@pytest.mark.long(but=4)
@pytest.mark.full
@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_bundle_is_right_by_its_instructions(bundle: Bundle, processor: str) -> None:
    whole = processor == "gfx942"
    findings = verify(bundle, f"isa:{processor}", {}, whole_graph=whole)
    assert [finding for finding in findings if not finding.passed] == []
    assert len(findings) >= len(bundle.manifest.kernels) >= 4
    assert (findings[-1].name == "whole graph") == whole


def changed(bundle: Bundle, old: str, new: str, folder: Path) -> tuple[str, EmulatedKernel, Path]:
    """The bundle's first kernel whose listing has ``old``, with ``new`` in its place."""
    for name in bundle.manifest.kernels:
        kernel = emulated_kernel(bundle, name, "gfx942")
        if old in kernel.listing:
            text = kernel.listing.replace(old, new, 1)
            path = folder / "kernel.json"
            path.write_text(dataclasses.replace(kernel, listing=text).to_json())
            return name, kernel, path
    raise AssertionError(f"no listing has {old!r}")


def started(kernel: EmulatedKernel, path: Path) -> None:
    """One call of a kernel with plenty of memory for each pointer."""
    device = IsaDevice("gfx942")
    types = [arg.type for arg in kernel.args]
    loaded = device.load(path, kernel.symbol, types)
    args = [device.allocate(1 << 16) if kind == "ptr" else 8 for kind in types]
    loaded(args, device.allocate(max(1, loaded.workspace_bytes(args))))


@pytest.mark.full
def test_what_the_emulator_does_not_know_is_named(bundle: Bundle, tmp_path: Path) -> None:
    _, kernel, path = changed(bundle, "\ts_load_dword", "\ts_guess_dword", tmp_path)
    with pytest.raises(DeviceError, match="does not know s_guess_dword"):
        started(kernel, path)


def test_an_access_outside_all_memory_is_a_fault_with_its_line(
    bundle: Bundle, tmp_path: Path
) -> None:
    _, kernel, path = changed(bundle, "global_load", "global_load", tmp_path)
    device = IsaDevice("gfx942")
    types = [arg.type for arg in kernel.args]
    loaded = device.load(path, kernel.symbol, types)
    with pytest.raises(DeviceError, match=r"hipErrorIllegalAddress.*line \d+ of the listing"):
        loaded([1 << 40 if kind == "ptr" else 8 for kind in types], 1 << 41)


@pytest.mark.full
def test_a_wrong_instruction_is_found_by_its_results(bundle: Bundle, tmp_path: Path) -> None:
    """The gate fails where the code object does not do what the graph says."""
    folder = tmp_path / "changed"
    listings = sorted(bundle.folder.glob("kernels/*/gfx942/kernel.s"))
    product, *_ = [each for each in listings if "v_mfma_f32_16x16x16_f16" in each.read_text()]
    shutil.copytree(bundle.folder, folder)
    file = folder / product.relative_to(bundle.folder)
    # In all of them: those of the last steps along k are not run where it divides.
    instruction = r"(v_mfma_f32_16x16x16_f16) (\S+), (\S+), \S+, "
    file.write_text(re.sub(instruction, r"\1 \2, \3, \3, ", file.read_text()))
    findings = verify(Bundle(folder, bundle.manifest), "isa:gfx942", {}, whole_graph=False)
    assert [finding.passed for finding in findings].count(False) == 1


def test_memory_is_read_back_and_freed() -> None:
    device = IsaDevice("gfx942")
    pointer = device.allocate(10)
    assert pointer % 256 == 0 and device.allocate(0) == 0
    device.write(pointer, np.arange(10, dtype=np.uint8))
    out = np.empty(4, np.uint8)
    device.read(pointer + 3, out)
    assert out.tolist() == [3, 4, 5, 6]
    with pytest.raises(DeviceError, match="not within one allocation"):
        device.read(pointer + 8, out)
    device.free(pointer)
    with pytest.raises(DeviceError, match="was not allocated"):
        device.free(pointer)


def test_only_processors_that_are_known_can_be_opened(bundle: Bundle, tmp_path: Path) -> None:
    assert open_device("isa:gfx942").info.target == "gfx942"
    with pytest.raises(UserError, match="unknown device 'isa:gfx1030'"):
        open_device("isa:gfx1030")
    name = next(iter(bundle.manifest.kernels))
    library = library_for(bundle, name, "gfx942", "isa:gfx942", tmp_path)
    kernel = bundle.manifest.kernels[name]
    with pytest.raises(DeviceError, match="gfx942"):
        types = [arg.type for arg in kernel.args]
        IsaDevice("gfx90a").load(library, kernel.symbol, types)
    library.write_text("{}")
    with pytest.raises(DeviceError, match="hipErrorInvalidKernelFile"):
        IsaDevice("gfx942").load(library, kernel.symbol, [])
