"""Sample models as bundles, and whether their code is what a GPU takes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from scheduler import pipeline, samples
from scheduler.build.cache import CodeCache
from scheduler.build.elf import dynamic_symbols
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled_clang
from scheduler.bundle import reader, writer
from scheduler.targets import find

# EF_AMDGPU_MACH of LLVM's AMDGPU usage guide: what a loader checks before it takes the code.
MACHINES = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx950": 0x4F, "gfx1100": 0x41, "gfx1201": 0x4E}
_EM_AMDGPU = 224


def compiled(model: str, targets: Sequence[str], cache: CodeCache, folder: Path) -> reader.Bundle:
    """The model's bundle for these targets, written to ``folder``."""
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path(model))))
    chosen = [find(name) for name in targets]
    generated = pipeline.generate(plan, chosen)
    toolchain = bundled_clang(cache)
    results = pipeline.build_kernels(generated.kernels, chosen, lambda *_: toolchain, cache)
    builds = {key: one for key, one in results.items() if isinstance(one, Build)}
    missing = {key: one for key, one in results.items() if key not in builds}
    assert not missing, missing
    writer.write(folder, plan, generated.manifest(), generated.kernels, builds)
    return reader.open_bundle(folder)


def assert_valid_code(bundle: reader.Bundle, targets: Sequence[str]) -> None:
    """Every kernel has, for each GPU, a code object of that GPU with the functions launched."""
    for name, kernel in bundle.manifest.kernels.items():
        for target in targets:
            code = (bundle.folder / "kernels" / name / target / "kernel.hsaco").read_bytes()
            assert code[:4] == b"\x7fELF"
            assert struct.unpack_from("<H", code, 18)[0] == _EM_AMDGPU
            assert struct.unpack_from("<I", code, 48)[0] & 0xFF == MACHINES[target]
            for launch in kernel.launches:
                assert f"{launch.function}.kd".encode() + b"\0" in code, (name, target)
            library = bundle.library(name, target).read_bytes()
            assert kernel.symbol in dynamic_symbols(library).defined
