"""Live registers of SASS: never more than ptxas allocated, and what a slow search finds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.isa.cuda.liveness import live_registers
from scheduler.isa.cuda.operands import registers
from scheduler.isa.cuda.reader import READER
from scheduler.isa.listing import Function
from tests.unit.cuda.conftest import SAMPLES, SampleBuild

TARGETS = ["sm_80", "sm_90", "sm_100", "sm_120"]


def function_of(*lines: str) -> Function:
    body = "".join(
        f"{line}\n" if line.endswith(":") else f"        /*{number * 16:04x}*/   {line} ;\n"
        for number, line in enumerate(lines)
    )
    text = f"\t.target\tsm_90\n        .type           f,@function\nf:\n{body}"
    function = READER.parse(text).function("f")
    assert function is not None
    return function


@pytest.mark.long(but=3)
@pytest.mark.full(but=["addmm_f16-sm_80"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_never_more_than_allocated_and_most_of_it_is_used(
    sample: str, target: str, sample_build: SampleBuild
) -> None:
    made = sample_build(sample, target)
    listing = READER.parse((made.directory / "kernel.s").read_text())
    for name, resources in made.resources.items():
        function = listing.function(name)
        assert function is not None
        live = live_registers(function)
        assert len(live.counts) == len(function.instructions)
        assert 0.6 * resources["registers"] <= live.peak <= resources["registers"]
        assert live.counts[0] <= 2  # a kernel begins with nothing in registers
        assert live.counts[-1] == 0  # and nothing is needed after its end
        assert all(live.counts[index] == live.peak for index in live.peaks)


def test_ptx_has_values_and_no_registers(sample_build: SampleBuild) -> None:
    made = sample_build("layer_norm_f16", "sm_90")
    listing = READER.parse((made.directory / "kernel.ptx").read_text())
    assert listing.functions
    assert {READER.live_registers(function) for function in listing.functions} == {None}


def test_a_straight_line() -> None:
    live = live_registers(
        function_of(
            "S2R R0, SR_TID.X",
            "LDC.64 R2, c[0x0][0x210]",
            "IMAD.WIDE R2, R0, 0x10, R2",
            "LDG.E.128 R4, desc[UR4][R2.64]",
            "FADD R4, R4, R5",
            "STG.E desc[UR4][R2.64], R4",
            "EXIT",
        )
    )
    # R5 is read once, R6 and R7 are written and never read.
    assert live.counts == (1, 3, 3, 6, 4, 3, 0)
    assert (live.peak, live.peaks) == (6, (3,))


def test_values_that_go_round_a_loop_stay_live_in_it() -> None:
    live = live_registers(
        function_of(
            "MOV R1, RZ",
            ".L_x_0:",
            "MOV R2, 0x1",
            "FADD R1, R1, R2",
            "@P0 BRA `(.L_x_0)",
            "STS [0x10], R1",
            "EXIT",
        )
    )
    assert live.counts == (1, 2, 2, 1, 1, 0)


def test_what_is_written_under_a_predicate_may_keep_its_value() -> None:
    live = live_registers(
        function_of("MOV R1, RZ", "S2R R2, SR_TID.X", "@P0 MOV R1, R2", "STS [R2], R1", "EXIT")
    )
    assert live.counts == (1, 2, 2, 2, 0)
    first = live_registers(
        function_of("S2R R2, SR_TID.X", "NOP", "@P0 MOV R1, R2", "@P0 STS [R2], R1", "EXIT")
    )
    assert first.counts == (1, 1, 2, 2, 0)  # nothing was in R1 before


def test_a_called_function_takes_its_arguments_and_writes_over_others() -> None:
    text = (
        "\t.target\tsm_90\n        .type f,@function\nf:\n"
        "        /*0000*/   MOV R2, 0x1 ;\n"
        "        /*0010*/   MOV R9, 0x50 ;\n"
        "        /*0020*/   CALL.REL.NOINC `($g) ;\n"
        "        /*0030*/   STS [0x10], R3 ;\n"
        "        /*0040*/   EXIT ;\n"
        "        .type $g,@function\n$g:\n"
        "        /*0050*/   MUFU.RCP R3, R2 ;\n"
        "        /*0060*/   MOV R8, R9 ;\n"
        "        /*0070*/   MOV R9, RZ ;\n"
        "        /*0080*/   RET.REL.NODEC R8 `(f) ;\n"
    )
    function = READER.parse(text).function("f")
    assert function is not None
    assert live_registers(function).counts == (1, 2, 4, 1, 0)  # R2 R9, then R3 R8 R9


def mask(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("HMMA.16816.F32 R8, R16, R20, R8", [*range(8, 12), *range(16, 20), 20, 21], range(8, 12)),
        ("HMMA.16816.F16 R8, R16, R20, RZ", [*range(16, 20), 20, 21], range(8, 10)),
        ("HMMA.1688.F32.TF32 R8, R16, R20, RZ", [*range(16, 20), 20, 21], range(8, 12)),
        ("HGMMA.64x32x16.F32 R24, gdesc[UR8], R24, gsb0", range(24, 40), range(24, 40)),
        (
            "HGMMA.64x8x16.F32 R24, R4, gdesc[UR8], R24",
            [*range(4, 8), *range(24, 28)],
            range(24, 28),
        ),
        ("LDSM.16.M88.4 R8, [R2+0x10]", [2], range(8, 12)),
        ("LDG.E.64.CONSTANT R8, desc[UR4][R2.64+0x8]", [2, 3], [8, 9]),
        ("LDG.E.ENL2.256.CONSTANT R12, R8, desc[UR4][R2.64]", [2, 3], range(8, 16)),
        ("STG.E.128 desc[UR4][R2.64], R8", [2, 3, *range(8, 12)], []),
        ("STS.U16 [R2+UR4], R8", [2, 8], []),
        ("LDGSTS.E.BYPASS.128 [R5], desc[UR4][R2.64]", [2, 3, 5], []),
        ("IMAD.WIDE.U32 R2, R4, 0x4, R6", [4, 6, 7], [2, 3]),
        ("IMAD.HI.U32 R3, R3, R9, R2", [2, 3, 9], [3]),
        ("LOP3.LUT P1, RZ, R4, R11, R3, 0xf8, !PT", [3, 4, 11], []),
        ("ISETP.GE.AND P2, PT, R6, R7, PT", [6, 7], []),
        ("IADD3.X R13, PT, PT, RZ, R13, RZ, P2, !PT", [13], [13]),
        ("SHFL.IDX PT, R57, R28, R19, 0x1f", [19, 28], [57]),
        ("CS2R R38, SRZ", [], [38, 39]),
        ("CS2R.32 R38, SR_CLOCKLO", [], [38]),
        ("DFMA R2, R4, R6, R8", range(4, 10), [2, 3]),
        ("F2F.F32.F64 R2, R4", [4, 5], [2]),
        ("I2F.F64.S64 R2, R4", [4, 5], [2, 3]),
        ("ATOMG.E.ADD.STRONG.GPU PT, R5, desc[UR4][R2.64], R9", [2, 3, 9], [5]),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R9", [2, 3, 9], []),
        ("REDUX.SUM UR4, R5", [5], []),
        ("R2UR UR4, R5", [5], []),
        ("RET.REL.NODEC R4 `(f)", [4, 5], []),
        ("FFMA2 R4, R6.F32x2.HI_LO, R8.F32x2.HI_LO, R10.F32x2.HI_LO", range(6, 12), [4, 5]),
        ("STL.128 [R1+0x10], R8", [1, *range(8, 12)], []),
    ],
)
def test_how_many_registers_an_operand_has(text: str, reads: list[int], writes: list[int]) -> None:
    mnemonic, _, operands = text.partition(" ")
    assert registers(mnemonic, operands) == (mask(*reads), mask(*writes))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["use", "define", "may define", "branch"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=150)
@given(STEPS)
def test_as_a_search_along_every_path_finds(program: list[tuple[str, int, int]]) -> None:
    """All six registers are written first, so that each may hold something."""
    lines = [f"MOV R{number}, RZ" for number in range(6)]
    reads: list[set[int]] = []
    writes: list[set[int]] = []
    keeps: list[bool] = []
    follow: list[list[int]] = []
    for index, (what, one, other) in enumerate(program):
        goal = (6 * one + other) % len(program)
        lines.append(f".L_x_{index}:")
        lines.append(
            {
                "use": f"STS [R{one}], R{other}",
                "define": f"MOV R{one}, R{other}",
                "may define": f"@!P0 MOV R{one}, R{other}",
                "branch": f"@P1 BRA `(.L_x_{goal})",
            }[what]
        )
        reads.append({"use": {one, other}, "branch": set()}.get(what, {other}))
        writes.append({one} if "define" in what else set())
        keeps.append(what == "may define")
        follow.append([goal, index + 1] if what == "branch" else [index + 1])
    function = function_of(*lines, "EXIT")

    def needed(index: int, register: int) -> bool:
        """Whether some path from before the instruction reads the register before writing it."""
        seen, stack = set(), [index]
        while stack:
            at = stack.pop()
            if at in seen or at >= len(program):
                continue
            seen.add(at)
            if register in reads[at]:
                return True
            if register not in writes[at] or keeps[at]:
                stack += follow[at]
        return False

    live = live_registers(function)
    for index in range(len(program)):
        after = {r for r in range(6) for each in follow[index] if needed(each, r)}
        before = {r for r in range(6) if needed(index, r)}
        assert live.counts[6 + index] == len(before | after | writes[index]), index
