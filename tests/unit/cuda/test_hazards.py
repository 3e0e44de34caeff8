"""What the instructions show to be likely to cost time, with their lines."""

from __future__ import annotations

import pytest

from scheduler.isa.cuda.hazards import width_bytes
from scheduler.isa.cuda.instructions import kind_of
from scheduler.isa.cuda.reader import READER
from scheduler.isa.hazards import HazardKind
from scheduler.isa.instructions import Kind
from scheduler.isa.listing import Instruction
from tests.unit.cuda.conftest import SampleBuild
from tests.unit.cuda.test_liveness import function_of


def test_local_memory_is_shown_at_its_instructions() -> None:
    function = function_of("STL [R1+0x4], R5", "NOP", "LDL.64 R6, [R1+0x4]", "EXIT")
    (hazard,) = READER.hazards(function)
    assert hazard.hazard is HazardKind.SCRATCH
    assert hazard.lines == tuple(function.instructions[at].line for at in (0, 2))
    assert hazard.text.startswith("2 instructions")


def test_narrow_accesses_of_the_inner_loop_alone() -> None:
    function = function_of(
        "LDG.E.U16 R3, desc[UR4][R2.64]",
        ".L_x_0:",
        "LDG.E.128 R4, desc[UR4][R2.64]",
        "LDG.E.U16 R8, desc[UR4][R2.64]",
        "LDG.E R9, desc[UR4][R2.64]",
        "STG.E desc[UR4][R2.64], R9",
        "@P0 BRA `(.L_x_0)",
        "EXIT",
    )
    (hazard,) = READER.hazards(function)
    assert hazard.hazard is HazardKind.NARROW
    assert hazard.text.endswith("narrower than 16 B: 1 of 2 B, 2 of 4 B")
    assert hazard.lines == tuple(function.instructions[at].line for at in (2, 3, 4))


def test_wide_ones_and_what_is_in_no_loop_are_none() -> None:
    assert READER.hazards(function_of("LDG.E R3, desc[UR4][R2.64]", "EXIT")) == ()


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("LDG.E.ENL2.256.CONSTANT", 32),
        ("LDG.E.U8", 1),
        ("STG.E.64", 8),
        ("ATOMG.E.ADD", 0),
        ("LDGSTS.E.BYPASS.LTC128B.128", 16),
        ("LDGSTS.E", 4),
        ("UTMALDG.2D", 0),
        ("ld.global.nc.v4.b32", 16),
        ("st.global.b16", 2),
        ("cp.async.cg.shared.global [%r1], [%rd2], 16, %r3;", 16),
        ("cp.async.ca.shared.global.L2::128B [%r1], [%rd2], 4;", 4),
    ],
)
def test_what_one_access_moves(text: str, width: int) -> None:
    mnemonic, _, operands = text.partition(" ")
    assert kind_of(mnemonic) is Kind.GLOBAL
    assert width_bytes(Instruction(1, mnemonic, operands, Kind.GLOBAL, 0)) == width


@pytest.mark.parametrize(
    ("mnemonic", "kind"),
    [
        *(("LDC.64", Kind.SCALAR), ("ULDC", Kind.SCALAR), ("ld.param.b64", Kind.SCALAR)),
        *(("LDGDEPBAR", Kind.WAIT), ("cp.async.wait_group", Kind.WAIT)),
        *(("HGMMA.64x256x16.F32.BF16", Kind.MATRIX), ("WARPGROUP.ARRIVE", Kind.WAIT)),
        *(("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", Kind.MATRIX),),
        *(("wgmma.wait_group.sync.aligned", Kind.WAIT), ("SYNCS.EXCH.64", Kind.WAIT)),
        *(("LDSM.16.M88.4", Kind.LDS), ("LDL.64", Kind.SCRATCH), ("UIADD3", Kind.SCALAR)),
    ],
)
def test_what_kind_of_work_an_instruction_does(mnemonic: str, kind: Kind) -> None:
    assert kind_of(mnemonic) is kind


def test_both_views_of_a_kernel_say_the_same_of_its_loads(sample_build: SampleBuild) -> None:
    """The matrix product of the samples reads 16 bytes at a time."""
    made = sample_build("addmm_f16", "sm_90")
    for file in ("kernel.s", "kernel.ptx"):
        listing = READER.parse((made.directory / file).read_text())
        (function,) = [one for one in listing.functions if one.loops]
        kinds = {one.hazard for one in READER.hazards(function)}
        assert not kinds & {HazardKind.NARROW, HazardKind.SCRATCH}, file
