"""What ROCmCPPScheduling promises, and faults of Inductor's that must not come back."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.problem import problem_of
from scheduler.codegen.rocm.kernel import ROCmTemplateKernel
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.runtime.cpu import CpuDevice
from scheduler.runtime.device import DeviceError
from scheduler.targets import find
from tests.unit.matrix.contractions import buffer, matmul
from tests.unit.matrix.running import Runner, random_values

TARGETS = (find("gfx942"), find("gfx1100"), find("cpu"))


def scheduling(schedule: Schedule) -> ROCmCPPScheduling:
    return ROCmCPPScheduling(schedule, TARGETS)


def candidate(schedule: Schedule, **config: int) -> TemplateCaller:
    template = scheduling(schedule).template(schedule.nodes[0])
    return template.generate({**template.default_config(), **config})


# ---- the backend


def test_nodes_that_render_the_same_text_share_one_kernel() -> None:
    """Sizes and strides are arguments: other numbers, the same kernel."""
    first, second = matmul(256, 512, 128, DType.F16), matmul(1024, 384, 64, DType.F16)
    renamed = replace(second.nodes[0], name="node1")
    both = replace(first, nodes=(first.nodes[0], renamed))
    backend = scheduling(both)
    config = backend.template(both.nodes[0]).default_config()
    large = backend.template(both.nodes[0]).generate(config)
    small = backend.template(renamed).generate(config)
    kernel, call = backend.codegen(both.nodes[0], large)
    again, other_call = backend.codegen(renamed, small)
    assert kernel is again
    assert backend.kernels == (kernel,)
    assert (call.args["M"], other_call.args["M"]) == (256, 1024)


def test_a_layout_is_part_of_the_text() -> None:
    plain, transposed = (
        candidate(matmul(64, 64, 64, DType.F16, b_transposed=way)) for way in (False, True)
    )
    assert plain.name != transposed.name


def test_a_template_node_has_no_reduction_extent() -> None:
    schedule = matmul(64, 64, 64, DType.F16)
    node = replace(schedule.nodes[0], group=(sympy.Integer(64), sympy.Integer(64)))
    backend = scheduling(replace(schedule, nodes=(node,)))
    with pytest.raises(ValueError, match="reduction extent 64"):
        backend.codegen(node, backend.default(node))


def test_a_candidate_serves_its_own_node_only() -> None:
    schedule = matmul(64, 64, 64, DType.F16)
    backend = scheduling(schedule)
    caller = replace(backend.default(schedule.nodes[0]), node="another")
    with pytest.raises(ValueError, match="candidate of another cannot be used for node0"):
        backend.codegen(schedule.nodes[0], caller)


def test_a_candidate_that_leaves_other_outputs_cannot_serve() -> None:
    schedule = matmul(64, 64, 64, DType.F16)
    backend, node = scheduling(schedule), schedule.nodes[0]
    caller = backend.default(node)
    other = replace(node, writes=("elsewhere",))
    with pytest.raises(ValueError, match=r"gemm leaves \['buf0'\] of .* makes \['elsewhere'\]"):
        backend.codegen(other, caller)


def test_sizes_beyond_the_types_of_the_kernels_arguments_are_user_errors() -> None:
    rows = symbol("s0")
    size = {"s0": SymbolInfo("s0", 64, 1, None)}
    caller = candidate(matmul(rows, 64, 64, DType.F16, symbols=size))
    assert caller.benchmark_request("gfx942", {"s0": 2**31 - 1}).bindings == {"s0": 2**31 - 1}
    with pytest.raises(UserError, match=r"argument M of .* has 32 bits, .* than s0"):
        caller.benchmark_request("gfx942", {"s0": 2**31})


# ---- the C interface


def test_arguments_are_unique_inputs_in_call_order_then_outputs() -> None:
    x, w, b, y = (buffer(name, DType.F16, [4, 4]) for name in "xwby")
    kernel = ROCmTemplateKernel()
    kernel.def_kernel(
        [x, w, None, b], [y], ["X", "W", "C", "Bias", "Y"], input_reorder=[3, 0, 1, 2]
    )
    kernel.add_scalar("M", 4)
    assert [arg.name for arg in kernel.args] == ["Bias", "X", "W", "Y", "M"]
    assert [arg.is_output for arg in kernel.args] == [False, False, False, True, False]
    assert kernel.arg_name(w) == "W"
    assert kernel.signature("f") == (
        'extern "C" PT_EXPORT int f(const _Float16* Bias, const _Float16* X, const _Float16* W,'
        " _Float16* Y, int32_t M, size_t* workspace_size, uint8_t* workspace, hipStream_t stream)"
    )
    call = kernel.call_kernel("f", ("mm",))
    assert dict(call.args) == {"Bias": "b", "X": "x", "W": "w", "Y": "y", "M": 4}


def test_names_must_fit_inputs_and_outputs() -> None:
    x, y = buffer("x", DType.F16, [4]), buffer("y", DType.F16, [4])
    with pytest.raises(ValueError, match="1 names for 1 inputs and 1 outputs"):
        ROCmTemplateKernel().def_kernel([x], [y], ["X"])
    with pytest.raises(ValueError, match="not a permutation of 1 inputs"):
        ROCmTemplateKernel().def_kernel([x], [y], ["X", "Y"], input_reorder=[1])
    with pytest.raises(ValueError, match="a kernel cannot write buffer x, which it reads"):
        ROCmTemplateKernel().def_kernel([x], [x], ["X", "Y"])


def test_sizes_of_a_range_of_dimensions() -> None:
    kernel = ROCmTemplateKernel()
    x = buffer("x", DType.F16, [2, 3, symbol("s0")])
    assert kernel.size(x, 0, 1) == 6
    assert kernel.size(x, -2) == 3 * symbol("s0")
    assert kernel.size(x, 0, -2) == 6
    assert kernel.size(x, 3, default=1) == 1


# ---- faults of Inductor's


def test_fault_1_everything_that_changes_a_time_is_measured_for_itself() -> None:
    """A measurement is of a kernel, by its name, on a problem at its sizes; what it was built
    with is fault 4."""

    def measured(schedule: Schedule, bindings: Mapping[str, int], **config: int) -> tuple[str, str]:
        problem = problem_of(schedule.nodes[0], schedule.lowered)
        return problem.key(bindings), candidate(schedule, **config).name

    rows = symbol("s0")
    sizes = {"s0": SymbolInfo("s0", 256, 1, None)}
    plain, dynamic = (
        matmul(m, 256, 4096, DType.F16, symbols=sizes if m is rows else None) for m in (256, rows)
    )
    keys = [
        *(measured(plain, {}, SPLIT_K=split) for split in (1, 2, 4, 8)),
        measured(plain, {}, STAGES=3 - int(candidate(plain).kernel.config["STAGES"])),
        measured(matmul(256, 256, 2048, DType.F16), {}),
        measured(matmul(256, 256, 4096, DType.BF16), {}),
        measured(matmul(256, 256, 4096, DType.F16, b_transposed=True), {}),
        *(measured(dynamic, {"s0": size}) for size in (256, 512)),
    ]
    assert len(set(keys)) == len(keys)
    assert measured(matmul(256, 256, 4096, DType.F16), {}, SPLIT_K=1) == keys[0]


def test_fault_1_no_two_configurations_are_one_kernel() -> None:
    schedule = matmul(256, 256, 4096, DType.F16)
    callers = scheduling(schedule).candidates(schedule.nodes[0]).callers
    assert len({caller.name for caller in callers}) == len(callers) > 100


def test_fault_3_an_unsupported_call_returns_an_error(
    runner: Runner, rng: np.random.Generator
) -> None:
    """Null or misaligned pointers come back as an error's number: nothing is thrown or launched."""
    caller = candidate(matmul(64, 64, 64, DType.F16))
    request = caller.benchmark_request("cpu", {})
    device = CpuDevice(find("cpu"), 1)
    try:
        library = runner.build(caller).directory / "kernel.so"
        kernel = device.load(library, request.symbol, request.arg_types)
        memory = device.allocate(3 * 64 * 64 * 2)
        device.write(memory, random_values(rng, (3 * 64 * 64,), DType.F16).astype(np.float16))
        numbers = [arg.value for arg in request.args[3:]]  # type: ignore[union-attr]
        good = [memory, memory + 64 * 64 * 2, memory + 2 * 64 * 64 * 2]
        kernel([*good, *numbers])
        for bad in (
            [0, *good[1:]],
            [good[0], 0, good[2]],
            [*good[:2], 0],
            [good[0] + 2, *good[1:]],
        ):
            with pytest.raises(DeviceError, match="hipErrorInvalidValue"):
                kernel([*bad, *numbers])
    finally:
        device.close()


@pytest.mark.full
def test_fault_4_the_compiler_and_the_target_are_part_of_what_is_built(
    cache: CodeCache, toolchain: Toolchain
) -> None:
    caller = candidate(matmul(64, 64, 64, DType.F16))
    other = replace(toolchain, version=f"{toolchain.version} patched")
    builds = [
        build(caller.kernel.source, caller.name, find(target), which, cache)
        for target, which in (("cpu", toolchain), ("cpu", other), ("cpu-gfx1100", toolchain))
    ]
    directories = {result.directory for result in builds if isinstance(result, Build)}
    assert len(directories) == 3


def test_fault_5_the_winner_is_not_compiled_again(cache: CodeCache, toolchain: Toolchain) -> None:
    """A candidate has its final name and symbol from the start."""
    schedule = matmul(64, 64, 64, DType.F16)
    backend = scheduling(schedule)
    caller = backend.default(schedule.nodes[0])
    build(caller.kernel.source, caller.name, find("cpu"), toolchain, cache)
    kernel, _ = backend.codegen(schedule.nodes[0], caller)
    again = build(kernel.source, kernel.symbol, find("cpu"), toolchain, cache)
    assert isinstance(again, Build)
    assert again.cached


def test_fault_6_the_comments_path_is_the_sources_own() -> None:
    caller = candidate(matmul(64, 64, 64, DType.F16))
    first_line = caller.kernel.source.splitlines()[0]
    assert first_line == f"// kernel path: kernels/{caller.name}/source.hip"


def test_fault_11_an_epilogue_costs_no_launch_of_its_own() -> None:
    plain = candidate(matmul(64, 64, 64, DType.F16))
    fused = candidate(matmul(64, 64, 64, DType.F16, bias=[64], relu=True))
    assert len(fused.kernel.launches) == len(plain.kernel.launches) == 1


# ---- what others build on


def test_a_request_survives_json_and_pickle() -> None:
    symbols_free = candidate(matmul(64, 48, 520, DType.BF16, bias=[48]), SPLIT_K=2)
    request = symbols_free.benchmark_request("gfx942", {})
    built = BuiltCandidate("0", "kernel.so", request)
    sent = json.loads(json.dumps(built.to_json()))
    assert sent["request"]["args"][0]["kind"] == "tensor"
    received = BuiltCandidate.from_json(sent)
    assert received.to_json() == built.to_json()
    assert received.request.args == request.args
    del sent["request"]["args"][0]["size"]
    with pytest.raises(UserError, match=r"candidate: required field missing .*args\[0\]\.size"):
        BuiltCandidate.from_json(sent)
    assert pickle.loads(pickle.dumps(request)) == request


def test_lines_know_the_graph_nodes_that_they_compute() -> None:
    kernel = candidate(matmul(64, 64, 64, DType.F16, relu=True)).kernel
    lines = kernel.source.splitlines()
    marked = [
        "\n".join(lines[origin.first - 1 : origin.last])
        for origin in kernel.line_origins
        if origin.nodes == ("mm",)
    ]
    assert any("tile.multiply" in text for text in marked)
    assert any("p.Y[" in text for text in marked)
    assert "\x00" not in kernel.source


def test_the_launch_in_the_manifest_is_the_one_of_the_host_function() -> None:
    """Grid and LDS are in the result as data: 130x70 in tiles of 64x32, two stages."""
    caller = candidate(
        matmul(130, 70, 64, DType.F16), BLOCK_M=64, BLOCK_N=32, BLOCK_K=64, THREADS=128, STAGES=2
    )
    (launch,) = caller.kernel.launches
    sizes = {symbol("M"): 130, symbol("N"): 70, symbol("batches"): 1}
    assert [int(extent.subs(sizes)) for extent in launch.grid] == [9, 1, 1]
    assert launch.block == (128, 1, 1)
    assert launch.lds_bytes == 2 * (64 + 32) * 64 * 2
    assert launch.function == f"{caller.name}_tiles"


@pytest.mark.full
def test_the_text_is_the_same_in_any_process() -> None:
    """Names are digests of texts, so nothing may depend on the order of a set or a hash seed."""
    script = (
        "from tests.unit.matrix.test_scheduling import candidate, matmul, DType;"
        "print(candidate(matmul(64, 64, 64, DType.F16, bias=[64, 1])).name)"
    )
    root = Path(__file__).resolve().parents[3]
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {candidate(matmul(64, 64, 64, DType.F16, bias=[64, 1])).name}
