"""What the addresses of SASS show: conflicts of banks, accesses to scattered sectors."""

from __future__ import annotations

import re

import pytest

from scheduler.isa.cuda.access_hazards import access_hazards
from scheduler.isa.cuda.lane_values import register_value, states
from scheduler.isa.cuda.reader import READER
from scheduler.isa.hazards import HazardKind
from tests.unit.cuda.conftest import SampleBuild
from tests.unit.cuda.test_liveness import function_of

THREAD = "S2R R0, SR_TID.X"
# A row for every four threads, 16 bytes of it for each, as a matrix product reads its operands.
ROWS = (
    *(THREAD, "SHF.R.U32.HI R1, RZ, 0x2, R0", "LOP3.LUT R2, R0, 0x3, RZ, 0xc0, !PT"),
    "IMAD.SHL.U32 R2, R2, 0x10, RZ",
)


@pytest.mark.parametrize(
    ("instructions", "passes"),
    [
        ((THREAD, "IMAD.SHL.U32 R1, R0, 0x4, RZ", "LDS R2, [R1]"), ""),
        ((THREAD, "IMAD.SHL.U32 R1, R0, 0x8, RZ", "LDS R2, [R1]"), "2 bank passes instead of 1"),
        (
            (THREAD, "IMAD.SHL.U32 R1, R0, 0x80, RZ", "LDS R2, [R1]"),
            "32 bank passes instead of 1",
        ),
        ((THREAD, "IMAD R1, R0, 0x84, RZ", "STS [R1+0x40], R2"), ""),
        ((THREAD, "LOP3.LUT R1, R0, 0x1, RZ, 0xc0, !PT", "LDS R2, [R1]"), ""),
        ((THREAD, "LEA R1, R0, UR4, 0x3", "LDS R2, [R1+UR5]"), "2 bank passes instead of 1"),
        ((THREAD, "IMAD.SHL.U32 R1, R0, 0x8, RZ", "LDS.64 R2, [R1]"), ""),
        (
            (THREAD, "IMAD.SHL.U32 R1, R0, 0x10, RZ", "LDS.64 R2, [R1]"),
            "4 bank passes instead of 2",
        ),
        ((*ROWS, "IMAD R3, R1, 0x110, R2", "LDS.128 R4, [R3]"), "8 bank passes instead of 4"),
        ((*ROWS, "IMAD R3, R1, 0x140, R2", "LDS.128 R4, [R3]"), ""),
        (
            (THREAD, "IMAD.SHL.U32 R1, R0, 0x80, RZ", "LDSM.16.M88.4 R4, [R1]"),
            "32 bank passes instead of 4",
        ),
        ((THREAD, "IMAD R1, R0, 0x90, RZ", "LDSM.16.M88.4 R4, [R1]"), ""),
        # Eight rows of 128 bytes, their parts exchanged by the row's number.
        (
            (
                *(THREAD, "LOP3.LUT R1, R0, 0x7, RZ, 0xc0, !PT", "IMAD.SHL.U32 R2, R1, 0x10, RZ"),
                *("IMAD.SHL.U32 R3, R0, 0x80, RZ", "LOP3.LUT R4, R3, R2, RZ, 0x3c, !PT"),
                "LDSM.16.M88.4 R8, [R4]",
            ),
            "",
        ),
    ],
)
def test_passes_of_the_banks(instructions: tuple[str, ...], passes: str) -> None:
    found = access_hazards(function_of(*instructions, "EXIT"))
    assert [passes in one.text for one in found] == ([True] if passes else [])
    assert all(one.hazard is HazardKind.BANK_CONFLICTS for one in found)


@pytest.mark.parametrize(
    ("instructions", "sectors"),
    [
        ((THREAD, "IMAD.WIDE R2, R0, 0x4, R4", "LDG.E R6, desc[UR4][R2.64]"), ""),
        (
            (THREAD, "IMAD.WIDE R2, R0, 0x40, R4", "LDG.E R6, desc[UR4][R2.64]"),
            "32 sectors of 32 B instead of 4",
        ),
        ((THREAD, "IMAD.WIDE R2, R0, 0x10, R4", "LDG.E.128 R8, desc[UR4][R2.64]"), ""),
        (
            (THREAD, "IMAD.WIDE R2, R0, 0x100, R4", "STG.E.128 desc[UR4][R2.64], R8"),
            "32 sectors of 32 B instead of 16",
        ),
        (("LDC.64 R2, c[0x0][0x210]", "LDG.E R6, desc[UR4][R2.64]"), ""),
    ],
)
def test_sectors_of_global_memory(instructions: tuple[str, ...], sectors: str) -> None:
    found = access_hazards(function_of("LDC.64 R4, c[0x0][0x218]", *instructions, "EXIT"))
    assert [sectors in one.text for one in found] == ([True] if sectors else [])
    assert all(one.hazard is HazardKind.UNCOALESCED for one in found)


def test_nothing_is_said_of_an_address_that_is_not_known() -> None:
    strided = ("IMAD.SHL.U32 R1, R0, 0x80, RZ", "LDS R2, [R1]")
    assert access_hazards(function_of(THREAD, *strided, "EXIT"))
    for unknown in ("LDG.E R0, desc[UR4][R6.64]", "SHFL.IDX PT, R0, R0, R5, 0x1f", "LDS R0, [R9]"):
        assert access_hazards(function_of(THREAD, unknown, *strided, "EXIT")) == ()
    # Times a stride that is an argument.
    assert access_hazards(function_of(THREAD, "IMAD R1, R0, UR4, RZ", "LDS R2, [R1]", "EXIT")) == ()
    # Written in some threads, read in others.
    mixed = ("@P0 IMAD.SHL.U32 R1, R0, 0x80, RZ", "LDS R2, [R1]")
    assert access_hazards(function_of(THREAD, "IMAD.MOV R1, RZ, RZ, R0", *mixed, "EXIT")) == ()
    guarded = ("@P0 IMAD.SHL.U32 R1, R0, 0x80, RZ", "@P0 LDS R2, [R1]")
    assert len(access_hazards(function_of(THREAD, *guarded, "EXIT"))) == 1
    renewed = (guarded[0], "ISETP.GE.AND P0, PT, R0, 0x8, PT", guarded[1])
    assert access_hazards(function_of(THREAD, *renewed, "EXIT")) == ()


def test_a_loop_moves_all_threads_alike() -> None:
    function = function_of(
        *(THREAD, "IMAD.SHL.U32 R1, R0, 0x8, RZ", ".L_x_0:", "LDS R2, [R1]", "VIADD R1, R1, 0x100"),
        *("@P0 BRA `(.L_x_0)", "EXIT"),
    )
    (hazard,) = access_hazards(function)
    assert hazard.lines == (function.instructions[2].line,)
    other = function_of(
        *(
            THREAD,
            "IMAD.SHL.U32 R1, R0, 0x8, RZ",
            ".L_x_0:",
            "LDS R2, [R1]",
            "IADD3 R1, R1, R0, RZ",
        ),
        *("@P0 BRA `(.L_x_0)", "EXIT"),
    )
    assert access_hazards(other) == ()


@pytest.mark.full(but=["addmm_f16"])
@pytest.mark.parametrize("sample", ["addmm_f16", "attention_f16"])
def test_where_real_kernels_read_shared_memory_is_known(
    sample: str, sample_build: SampleBuild
) -> None:
    listing = READER.parse((sample_build(sample, "sm_90").directory / "kernel.s").read_text())
    (function,) = [one for one in listing.functions if one.loops]
    reads = {n for n, one in enumerate(function.instructions) if one.mnemonic.startswith("LDS")}
    before = states(function, reads)
    registers = {n: re.findall(r"\[R(\d+)", function.instructions[n].operands) for n in reads}
    known_ones = [
        n for n in reads if registers[n] and register_value(before[n], registers[n][0], "")
    ]
    assert 2 * len(known_ones) > len(reads)
