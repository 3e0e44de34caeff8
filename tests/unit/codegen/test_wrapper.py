"""``wrapper.py`` runs beside its bundle with Python and NumPy alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy

from scheduler.bundle.manifest import Manifest, kernel_entry
from scheduler.bundle.writer import wrapper_of
from scheduler.codegen.rocm.pointwise.template import PointwiseTemplate
from scheduler.codegen.rocm.reduction.template import ReductionTemplate
from scheduler.codegen.wrapper import render_wrapper
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import (
    Buffer,
    BufferKind,
    GroupKind,
    Pointwise,
    Reduction,
    ReductionKind,
    Store,
)
from scheduler.ir.values import Accumulator, Call, Const, Load
from scheduler.targets import find
from tests.support.memory import contiguous
from tests.unit.codegen.loopnest import at, axes, compiled, group, ints

S = symbol("s27")
F32 = DType.F32


def named(name: str, kind: BufferKind, source: str, sizes: tuple) -> Buffer:
    return Buffer(name, F32, ints(*sizes), contiguous(sizes), kind, source)


def make_bundle(folder: Path) -> Manifest:
    """y = (x + w) * 2 and the sum of y, in three kernels with a pooled buffer between two."""
    walked = axes(S, 8)
    buffers = [
        named("arg0", BufferKind.INPUT, "x", (S, 8)),
        named("class", BufferKind.PARAMETER, "layer.weight", (8,)),  # no name for a variable
        named("buf0", BufferKind.INTERMEDIATE, "", (S, 8)),
        named("buf1", BufferKind.OUTPUT, "y", (S, 8)),
        named("buf2", BufferKind.OUTPUT, "total", ()),
    ]
    added = Call("add", (Load("arg0", at(walked), F32), Load("class", (walked[1].var,), F32)), F32)
    doubled = Call("mul", (Load("buf0", at(walked), F32), Const(2.0, F32)), F32)
    callers = []
    info = SymbolInfo("s27", 6, 1, 64)
    for name, target, value in (("op0", "buf0", added), ("op1", "buf1", doubled)):
        member = Pointwise(name, walked, Store(target, at(walked), value), ("add0",))
        node, lowered = group(GroupKind.POINTWISE, [member], buffers, (info,))
        made = PointwiseTemplate(node, lowered, (find("cpu"),))
        callers.append(made.generate(made.default_config()))
    total = Store("buf2", (), Accumulator(F32))
    read = Load("buf1", at(walked), F32)
    summed = Reduction("op2", (), walked, ReductionKind.SUM, read, F32, total, ("sum0",))
    node, lowered = group(GroupKind.REDUCTION, [summed], buffers, (info,))
    template = ReductionTemplate(node, lowered, (find("cpu"),))
    callers.append(template.generate(template.default_config()))
    for caller in callers:
        place = folder / "kernels" / caller.name / "cpu"
        place.mkdir(parents=True)
        shutil.copy(compiled(caller).directory / "kernel.so", place / "kernel.so")
    manifest = Manifest(
        graph_name='tiny"""\nimport os',
        graph_digest="0",
        symbols={"s27": info},
        targets=("cpu",),
        buffers={b.name: b for b in buffers},
        kernels={c.name: kernel_entry(c.kernel) for c in callers},
        calls=tuple(c.call for c in callers),
        externs=(),
        inputs=("arg0",),
        outputs=("buf1", "buf2"),
        storage={"buf0": "pool0"},
        pools={"pool0": sympy.Integer(32) * S},
    )
    (folder / "manifest.json").write_text(json.dumps(manifest.to_json()))
    (folder / "wrapper.py").write_text(wrapper_of(manifest))
    return manifest


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    make_bundle(folder)
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "wrapper.py"), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd="/")


def test_outputs_come_from_the_inputs_given(bundle: Path, tmp_path: Path) -> None:
    x = np.arange(40, dtype=np.float32).reshape(5, 8)
    weight = np.linspace(-1, 1, 8, dtype=np.float32)
    np.savez(tmp_path / "in.npz", **{"x": x, "layer.weight": weight})
    done = run(
        bundle, "--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz"),
        "--bind", "s27=5",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as outputs:
        assert np.array_equal(outputs["y"], (x + weight) * 2)
        np.testing.assert_allclose(outputs["total"], outputs["y"].sum(), rtol=1e-6)
        assert outputs["total"].shape == (), "the model's shape, without dimensions too"


def test_it_runs_on_random_inputs_without_any_option(bundle: Path) -> None:
    done = run(bundle)
    assert done.returncode == 0, done.stderr
    assert "3 kernels" in done.stdout
    assert "y float32 (6, 8)" in done.stdout
    assert "total float32 ()" in done.stdout


def test_it_is_a_module_with_call(bundle: Path) -> None:
    script = (
        "import sys, numpy as np; sys.path.insert(0, sys.argv[1]); import wrapper\n"
        "x = np.ones((3, 8), np.float32)\n"
        "y, total = wrapper.call({'x': x, 'layer.weight': np.ones(8, np.float32)})\n"
        "assert (y == 4).all() and y.shape == (3, 8) and y.flags.c_contiguous\n"
        "assert total == 96 and total.shape == () and total.dtype == np.float32\n"
    )
    python(script, bundle)


def test_a_number_that_its_argument_does_not_hold_is_refused(bundle: Path) -> None:
    script = """if True:
        import sys; sys.path.insert(0, sys.argv[1])
        import wrapper
        name = wrapper.MANIFEST["calls"][0]["kernel"]
        pointers = [0 for arg in wrapper.MANIFEST["kernels"][name]["args"] if arg["type"] == "ptr"]
        try:
            wrapper.Run(wrapper.open_device("cpu")).kernel(name, *pointers, 2**31)
        except SystemExit as refused:
            assert "2147483648 does not fit into an argument of 32 bits" in str(refused)
        else:
            raise AssertionError("it was cut off")
    """
    python(script, bundle)


def python(script: str, *arguments: Path) -> None:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd="/")
    assert done.returncode == 0, done.stderr


def test_many_kernels_take_few_mappings_of_the_process(tmp_path: Path) -> None:
    """Linux allows a process some 65,000, and a model may have thousands of kernels."""
    manifest = make_bundle(tmp_path)
    summing = manifest.calls[-1].kernel
    script = """if True:
        import ctypes, shutil, sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])
        import numpy as np, wrapper
        folder, name, copies = Path(sys.argv[1], "kernels"), sys.argv[2], 12
        run = wrapper.Run(wrapper.open_device("cpu"))
        x = np.ones((64, 8), np.float32)
        total = np.zeros((), np.float32)
        pointers = run.device.allocate(x.nbytes), run.device.allocate(4)
        run.device.write(pointers[0], x)
        def mapped():
            lines = Path("/proc/self/maps").read_text().splitlines()
            ends = [line.split()[0].split("-") for line in lines]
            return len(lines), sum(int(end, 16) - int(begin, 16) for begin, end in ends)
        def sum_with(kernel):
            run.kernel(kernel, *pointers, 64)
            run.device.read(pointers[1], total)
            assert total == 512, total
        sum_with(name)
        before = mapped()
        for number in range(copies):
            copy = f"{name}_{number}"
            shutil.copytree(folder / name, folder / copy)
            wrapper.MANIFEST["kernels"][copy] = wrapper.MANIFEST["kernels"][name]
            sum_with(copy)
        maps, size = ((a - b) / copies for a, b in zip(mapped(), before))
        assert maps <= 10 and size < 2**21, f"{maps} mappings, {size} bytes a kernel"
        wrapper.call({"x": x, "layer.weight": x[0]})  # a device of its own
        assert mapped()[0] < before[0] + copies * 10 + 40
    """
    python(script, tmp_path, Path(summing))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--device", "cpu-gfx1100"), "this bundle is built for cpu, not for cpu-gfx1100"),
        (("--device", "rocm"), "this bundle is built for no rocm GPU: name --target"),
        (("--bind", "q=3"), "symbols are s27"),
        (("--bind", "s27=65"), "s27 is 65, but the model was exported for 1 to 64"),
        (("--bind", "s27=0"), "s27 is 0, but the model was exported for 1 to 64"),
    ],
)
def test_a_mistake_is_one_line(bundle: Path, arguments: tuple[str, ...], says: str) -> None:
    done = run(bundle, *arguments)
    assert done.returncode != 0
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_buffers_are_freed_after_their_last_use(bundle: Path) -> None:
    text = (bundle / "wrapper.py").read_text()
    body = text[text.index("def call(") : text.index("def random_inputs(")]
    order = [body.index(part) for part in (
        "pool0 = run.device.allocate(32*s27)", "buf0 = pool0", "run.device.free(pool0)", "return",
    )]  # fmt: skip
    assert order == sorted(order)
    assert not any(line.startswith("import os") for line in text.splitlines()), "a name is no code"


def test_what_has_no_kernel_is_reported(tmp_path: Path) -> None:
    manifest = make_bundle(tmp_path).to_json()
    manifest["externs"] = [
        {"node": "n", "op": "aten.sort.default", "reason": "no lowering", "position": 1,
         "outputs": []}
    ]  # fmt: skip
    (tmp_path / "wrapper.py").write_text(render_wrapper(manifest, {"cpu": "kernel.so"}))
    done = run(tmp_path)
    assert done.returncode == 1
    assert "aten.sort.default has no kernel (no lowering)" in done.stderr
