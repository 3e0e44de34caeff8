"""A backend that is in no file of ours (tests/support/tiny_backend) serves from the model's graph
to a measured result: every stage finds its parts through the registry alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from scheduler import pipeline
from scheduler.benchmark.measurement import Measurement
from scheduler.benchmark.verification import verify
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.flags import DEFAULT_FLAGS
from scheduler.build.model import Build, Toolchain
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.bundle import reader, writer
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref, SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.isa.occupancy import rules_of
from scheduler.isa.reader import reader_of
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import default_device, open_device, probe_devices
from scheduler.targets import Target, find, names
from scheduler.targets.registry import (
    BUILT_IN,
    Backend,
    backend_of,
    backends,
    load_part,
    targets_of,
)
from scheduler.tuning.budget import Budget, Meter
from scheduler.tuning.compile_pool import LocalCompilePool
from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.problems import find_problems
from scheduler.tuning.run import SearchOptions, tune
from tests.unit.lowering.graphs import graph, meta, node
from tests.unit.matrix.contractions import matmul

PACKAGE = Path(__file__).parent.parent / "support" / "tiny_backend"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is on the path of this process and of those that it starts."""
    monkeypatch.syspath_prepend(PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE))


@pytest.fixture
def plan() -> Schedule:
    """x * w + x, of as many rows as wanted."""
    rows = symbol("s0")
    tensors = {name: meta(DType.F32, rows, 48) for name in ("x", "product", "sum")}
    tensors["w"] = meta(DType.F32, 48)
    nodes = [
        node("product", "aten.mul.Tensor", Ref("x"), Ref("w")),
        node("sum", "aten.add.Tensor", Ref("product"), Ref("x")),
    ]
    inputs = [GraphInput(name, InputKind.USER) for name in ("x", "w")]
    sizes = {"s0": SymbolInfo("s0", 16, 1, 4096)}
    return pipeline.schedule(pipeline.lower(graph(inputs, nodes, tensors, ("sum",), sizes)))


def toolchain_for(target: Target, source_file: str = "") -> Toolchain:
    return pick_toolchain(find_target_toolchains(target, Search()), target, source_file)


def compiled(
    plan: Schedule, cache: CodeCache
) -> tuple[pipeline.GeneratedCode, dict[tuple[str, str], Build]]:
    target = find("tiny")
    generated = pipeline.generate(plan, (target,))
    built = pipeline.build_kernels(generated.kernels, (target,), toolchain_for, cache)
    builds = {key: one for key, one in built.items() if isinstance(one, Build)}
    assert builds.keys() == built.keys()
    return generated, builds


@pytest.mark.full
def test_a_bundle_of_it_is_written_read_and_right(
    plan: Schedule, cache: CodeCache, tmp_path: Path
) -> None:
    generated, builds = compiled(plan, cache)
    out = tmp_path / "bundle"
    writer.write(out, plan, generated.manifest(), generated.kernels, builds)
    (name,) = (kernel.name for kernel in generated.kernels)
    assert name.startswith("tiny_fused_add_mul_")
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert files >= {
        f"kernels/{name}/source.c",
        *(f"kernels/{name}/tiny/{file}" for file in ("kernel.lst", "kernel.bin", "build.json")),
    }
    assert '"kernel.bin"' in (out / "wrapper.py").read_text()
    assert not {file for file in files if file.endswith((".hip", ".so", ".hsaco"))}
    facts = json.loads((out / "kernels" / name / "tiny" / "build.json").read_text())
    assert facts["resources"]["loop"]["library_bytes"] > 0
    bundle = reader.open_bundle(out)
    assert bundle.manifest.kernels[name].source == f"kernels/{name}/source.c"
    for rows in (1, 16, 31):
        findings = verify(bundle, "tiny:0", {"s0": rows})
        assert [(one.name, one.passed) for one in findings] == [(name, True), ("whole graph", True)]


@pytest.mark.full
def test_candidates_of_it_are_measured_in_the_worker_process(
    plan: Schedule, cache: CodeCache
) -> None:
    target = find("tiny")
    problems = find_problems(plan, pipeline.scheduling(plan, (target,)), target, {"s0": 16})
    device = open_device("tiny:0")
    pool = LocalCompilePool(target, toolchain_for, cache, 1, DEFAULT_FLAGS)
    budget = Budget(60.0, None, None)
    result = tune(plan, problems, device.info, pool, Meter(budget), SearchOptions("exhaustive"))
    entries = {entry.config["unroll"]: entry for entry in result.entries}
    assert set(entries) == {1, 2, 4, 5}
    rejected = entries.pop(5)
    assert (rejected.stage, rejected.reason) == ("rule", "48 is no multiple of 5")
    measured = [entry.measurement for entry in entries.values()]
    readings = [one.readings["launches"] for one in measured if one is not None]
    assert readings == [(one.batch,) * len(one.samples_ns) for one in measured if one is not None]
    assert all(isinstance(one, Measurement) and one.median_ns > 0 for one in measured)
    states = [entry.state for entry in entries.values()]
    assert states.count(CandidateState.CHOSEN) == 1


def test_what_it_has_no_template_for_is_reported() -> None:
    product = matmul(32, 32, 32, DType.F32)
    with pytest.raises(UserError, match="node0: no gemm kernels in c are supported on tiny"):
        pipeline.generate(product, (find("tiny"),))


def test_its_listings_are_read_by_its_own_reader(plan: Schedule, cache: CodeCache) -> None:
    generated, builds = compiled(plan, cache)
    (made,) = builds.values()
    text = (made.directory / "kernel.lst").read_text()
    own = reader_of(find("tiny"))
    function = own.parse(text).function(generated.kernels[0].symbol)
    assert function is not None
    assert function.loops
    last = len(generated.kernels[0].source.splitlines())
    assert {i.source_line for i in function.instructions} <= set(range(last + 1))
    assert own.live_registers(function) is None
    assert rules_of(find("tiny")) is None


def test_an_error_of_its_compiler_points_at_its_own_source(cache: CodeCache) -> None:
    target = find("tiny")
    made = build("int go() {\n  return y;\n}\n", "go", target, toolchain_for(target), cache)
    assert not isinstance(made, Build)
    assert made.reason.startswith("line 2: use of undeclared identifier 'y'")


def test_targets_that_share_no_sources_are_compiled_one_by_one(plan: Schedule) -> None:
    assert pipeline.scheduling(plan, (find("gfx942"), find("cpu"))).targets
    with pytest.raises(UserError, match="cannot support both gfx942, cpu and tiny: compile for"):
        pipeline.scheduling(plan, (find("gfx942"), find("cpu"), find("tiny")))


def test_it_is_listed_with_those_that_are_built_in() -> None:
    assert names()[-1] == "tiny"
    assert default_device(find("tiny")) == "tiny:0"
    assert "tiny:0" in [one.id for one in probe_devices() if isinstance(one, DeviceInfo)]
    with pytest.raises(UserError, match=r"unknown device 'tiny:7'; available: .*tiny:0"):
        open_device("tiny:7")
    text = subprocess.run(
        [sys.executable, "-m", "scheduler", "targets", "--json"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    facts = json.loads(text)["targets"]["tiny"]
    assert facts == {
        **{"name": "tiny", "family": "tiny", "backend": "tiny", "wavefront": 1, "emulates": ""}
    }


@pytest.mark.parametrize("backend", BUILT_IN, ids=lambda one: one.name)
def test_every_part_that_a_row_names_is_there(backend: Backend) -> None:
    for name, reference in asdict(backend).items():
        if ":" in reference and name not in ("device_ids", "default_device"):
            assert load_part(reference) is not None, name
    for target in targets_of(backend):
        assert backend_of(target) is backend
        assert re.fullmatch(backend.device_ids, default_device(target))


def test_packages_are_looked_for_only_where_a_name_is_not_built_in() -> None:
    """Starting must not cost a look at every package that is installed."""
    script = (
        "import importlib.metadata as m\n"
        "def fail(**_): raise AssertionError('looked for packages')\n"
        "m.entry_points = fail\n"
        "from scheduler.targets import boards, find\n"
        "from scheduler.codegen.scheduling import scheduling_for\n"
        "from scheduler.build.recipe import recipe_of\n"
        "from scheduler.runtime.devices import open_device\n"
        "for name in ('gfx942', 'cpu-gfx1201'): recipe_of(find(name)), boards(name)\n"
        "open_device('cpu').close()\n"
        "import sys\n"
        "assert 'hip' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_package_whose_backend_is_none_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "broken-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[kiln.backends]\nbroken = nowhere.at_all:BACKEND\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"cannot load the backend part nowhere\.at_all:BACKEND"):
        list(backends())
