"""The hardware table agrees with the figures that its own sources give."""

from __future__ import annotations

import json
import re

import pytest

from scheduler import targets
from scheduler.errors import UserError
from scheduler.targets import Board
from scheduler.targets.amd import AmdHardware
from scheduler.targets.model import hip_hardware
from scheduler.targets.nvidia import NvidiaHardware, nvidia_hardware
from scheduler.targets.terms import AMD, NVIDIA

BOARDS = [board for name in targets.names() for board in targets.boards(name)]


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_peak_and_bandwidth_are_those_of_the_product_page(board: Board) -> None:
    page = board.sources[-1]
    found = re.search(r"([\d.]+) (TB|GB)/s, ([\d.]+) ([TP])FLOPS (f16|f32)(, two)?", page)
    assert found, page
    dies = 2 if found[6] else 1
    bandwidth = float(found[1]) * (1e12 if found[2] == "TB" else 1e9)
    assert dies * board.memory_bytes_per_s == pytest.approx(bandwidth, rel=0.03)
    peak = float(found[3]) * (1e12 if found[4] == "T" else 1e15)
    own = board.peak_flops(found[5])
    assert own is not None
    assert dies * own == pytest.approx(peak, rel=0.01)


@pytest.mark.parametrize(
    ("target", "device", "board"),
    [
        ("sm_80", "NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("sm_86", "NVIDIA GeForce RTX 3090", "GeForce RTX 3090"),
        ("sm_86", "NVIDIA GeForce RTX 3090 Ti", None),
        ("sm_89", "NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("sm_89", "NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("sm_89", "NVIDIA GeForce RTX 4090 D", None),
        ("sm_90", "NVIDIA H100 80GB HBM3", "H100 80GB HBM3"),
        ("sm_90", "NVIDIA H200", "H200"),
        ("sm_90", "NVIDIA H200 NVL", None),
        ("sm_100", "NVIDIA B200", "B200"),
        ("sm_100", "NVIDIA GB200", None),
        ("sm_120", "NVIDIA GeForce RTX 5090", "GeForce RTX 5090"),
        ("gfx1100", "AMD Radeon RX 7900 XTX", "RX 7900 XTX"),
        ("gfx90a", "AMD Instinct MI250X/MI250", "MI250X (one die)"),
        ("gfx942", "AMD Instinct MI300X VF", "MI300X"),
    ],
)
def test_a_device_is_its_own_board_and_no_other_edition(
    target: str, device: str, board: str | None
) -> None:
    found = targets.board_of(target, device)
    assert (found.name if found else None) == board


# Of Strix Halo no maker's page gives all that a board needs.
WITHOUT_BOARD = {"gfx1151"}


def test_every_gpu_has_a_board_and_the_emulation_none() -> None:
    with_board = {name for name in targets.names() if targets.boards(name)}
    gpus = {name for name in targets.names() if not targets.find(name).emulates}
    assert with_board == gpus - WITHOUT_BOARD


def test_rates_that_nobody_publishes_are_none() -> None:
    (board,) = targets.boards("gfx1201")
    assert board.peak_flops("f64") is None
    assert board.peak_flops("f16") == 2 * (board.peak_flops("f16", use_matrix=False) or 0)


def test_an_unknown_target_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"unknown target 'gfx000'; use one of: gfx90a, gfx942"):
        targets.find("gfx000")


FACTS = {"name", "family", "wavefront", "matrix", "emulates", "max_lds_per_block_bytes"}
OF_A_MAKER = {
    AmdHardware: {
        *("vgprs_per_simd", "vgpr_granule", "max_waves_per_simd", "simds_per_cu", "lds_bytes"),
    },
    NvidiaHardware: {
        *("registers", "register_granule", "max_registers", "max_warps", "max_blocks"),
        *("warp_granule", "shared_bytes", "shared_granule_bytes", "reserved_shared_bytes"),
    },
}


@pytest.mark.parametrize("name", targets.names())
def test_what_readers_of_the_table_rely_on_is_there(name: str) -> None:
    """Fields of ``targets --json`` are only ever added."""
    target = targets.find(name)
    facts = target.facts()
    assert set(facts) >= FACTS | OF_A_MAKER[type(target.hardware)]
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.parametrize("name", targets.names())
def test_a_table_of_targets_finds_its_figures(name: str) -> None:
    target = targets.find(name)
    facts = target.facts()
    assert target.hardware.figures
    assert all(isinstance(facts[figure.field], int) for figure in target.hardware.figures)


def test_each_maker_has_its_own_words() -> None:
    assert targets.find("gfx1100").words == targets.find("cpu").words == AMD
    assert targets.find("sm_90").words == NVIDIA
    assert (AMD.shared, AMD.wave, AMD.register, AMD.unit) == ("LDS", "wave", "VGPR", "CU")
    assert (NVIDIA.shared, NVIDIA.wave, NVIDIA.unit) == ("shared memory", "warp", "SM")


@pytest.mark.parametrize("name", targets.names())
def test_what_is_emulated_is_known_and_alike(name: str) -> None:
    target = targets.find(name)
    gpu = hip_hardware(target)
    if target.emulates:
        assert gpu == targets.find(target.emulates).hardware
    assert gpu.processor == (target.emulates or target.name)
    of_a_unit = (
        gpu.lds_bytes if isinstance(gpu, AmdHardware) else nvidia_hardware(target).shared_bytes
    )
    assert gpu.max_lds_per_block_bytes <= of_a_unit
