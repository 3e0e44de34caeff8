"""The comparison with Triton's kernels: what of it needs no Triton."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.errors import UserError
from scheduler.targets import find
from tests.benchmarks.cycles.candidates import spread
from tests.benchmarks.cycles.peers.compiling import Compiler
from tests.benchmarks.cycles.peers.launches import Kernel, f16
from tests.benchmarks.cycles.peers.modelling import summary
from tests.benchmarks.cycles.peers.problems import PROBLEMS
from tests.benchmarks.cycles.peers.table import Modelled, Row, table
from tests.support.foreign_kernels import LISTING, report
from tests.support.stores import width_bytes

ROW = Row(
    *("gfx942", "gemm", 0.95, 100.0, Modelled("default", 200.0)),
    (Modelled("slow", 300.0), Modelled("fast", 150.0), Modelled("none", error="out of LDS")),
)


def test_the_fastest_peer_counts_and_rates_are_compared() -> None:
    assert ROW.peer is not None and ROW.peer.title == "fast"
    assert ROW.ratio == pytest.approx(0.75)
    assert ROW.missed == ("rate 0.75, 0.95 wanted",)
    assert replace(ROW, bar=None).missed == ()
    assert replace(ROW, ours=Modelled("default", 150.0)).missed == ()


def test_what_the_bars_ask_of_our_kernels_beside_their_rate() -> None:
    ours = Modelled("default", 100.0, conflict=1.2, spills=3, narrow=0.5)
    assert replace(ROW, ours=ours).missed == (
        "LDS conflicts x1.20, x1.05 allowed",
        "3 registers spilled",
        "50% of stored bytes by fewer than 8 at once",
    )


def test_a_peer_that_is_missing_misses_the_bar() -> None:
    assert replace(ROW, peers=()).missed == ("rate none, 0.95 wanted",)


def test_the_table_says_where_the_peer_is_faster_and_what_was_not_to_be_had() -> None:
    text = table([replace(ROW, candidates=(Modelled("128x128", 120.0),))])
    cells = [cell.strip() for cell in text.splitlines()[2].strip("|").split("|")]
    assert cells[:8] == ["gfx942", "gemm", "200.0", "50%", "150.0", "67%", "0.75", "0.95 missed"]
    assert "- gfx942, gemm: best candidate 120.0 µs, 1.25 of Triton's rate: 128x128" in text
    assert "- gfx942, gemm: Triton, none: out of LDS" in text


@pytest.mark.parametrize(
    ("mnemonic", "width"),
    [
        ("global_store_short", 2),
        ("global_store_short_d16_hi", 2),
        ("global_store_d16_hi_b16", 2),
        ("buffer_store_dwordx2", 8),
        ("global_store_b128", 16),
        ("global_load_dwordx4", 0),
        ("ds_write_b128", 0),
    ],
)
def test_stores_are_as_wide_as_their_names_say(mnemonic: str, width: int) -> None:
    assert width_bytes(mnemonic) == width


def test_a_summary_sees_narrow_stores_and_spills() -> None:
    found = summary("one", find("gfx942"), [(LISTING, report())])
    assert found.narrow == 1.0  # one global_store_dword a thread
    assert (found.spills, found.conflict) == (0, 1.0)
    assert found.time_us == report().time_us.mid


def test_a_launch_says_what_tritons_own_launcher_would() -> None:
    arguments = {"x": f16(64, 64), "n": 4096, "odd": 7, "eps": 1e-5}
    kernel = Kernel("rows", "softmax", arguments, {"B": 64}, (4, 1, 1), {"num_warps": 8})
    asked = kernel.request("gfx942", 64)
    assert asked["signature"] == {"x": "*fp16", "n": "i32", "odd": "i32", "eps": "fp32"}
    assert asked["aligned"] == ["x", "n"]
    assert asked["small"] == ["x"]
    launch = kernel.launch(64, 1024)
    assert (launch.block, launch.dynamic_lds_bytes) == ((512, 1, 1), 1024)
    assert launch.arguments[-2:] == (None, None)


def test_every_kernel_is_given_its_parameters_in_their_order() -> None:
    for problem in PROBLEMS:
        for peer in problem.peers(64):
            for kernel in peer.kernels:
                given = [*kernel.arguments, *kernel.constants]
                assert given == _parameters(kernel), f"{problem.name}, {peer.title}"


def test_a_kernel_that_leaves_its_buffers_has_no_rate() -> None:
    whole = report()
    astray = replace(whole.launches[0], notes=("write outside all buffers: instruction 3",))
    found = summary("one", find("gfx942"), [(LISTING, replace(whole, launches=(astray,)))])
    assert found.error == "not this problem: write outside all buffers: instruction 3"


def _parameters(kernel: Kernel) -> list[str]:
    """As the function that its source defines names them."""
    source = ast.parse(Path(str(kernel.request("gfx942", 64)["file"])).read_text())
    functions = (node for node in source.body if isinstance(node, ast.FunctionDef))
    found = next(one for one in functions if one.name == kernel.function)
    return [parameter.arg for parameter in found.args.args]


def test_a_folder_without_triton_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no Triton is there; pip install"):
        Compiler(tmp_path, tmp_path).version  # noqa: B018


def test_candidates_are_taken_evenly() -> None:
    assert spread(range(10), 4) == [0, 3, 6, 9]
    assert spread([1, 2], 4) == [1, 2]
    assert spread([1, 2], 1) == [1]
