"""The rows of matrix instructions: layouts against the makers' documents, and what is written
from them."""

from __future__ import annotations

from collections import Counter

import pytest

from scheduler.build import matrix_header
from scheduler.ir.dtypes import DType
from scheduler.matrix_instructions import (
    INSTRUCTIONS,
    Layout,
    MatrixInstruction,
    MatrixSet,
)
from scheduler.targets import find, names
from scheduler.targets.generations import AMD_GPUS
from scheduler.targets.model import hip_hardware

(MMA_M16N8K16,) = (one for one in INSTRUCTIONS if one.name == "mma_m16n8k16_f32_f16")
(MMA_I8,) = (one for one in INSTRUCTIONS if one.name == "mma_m16n8k32_i32_i8")
(MMA_TF32,) = (one for one in INSTRUCTIONS if one.element == "tf32")


def instruction(target: str, element: str, m: int = 16) -> MatrixInstruction | None:
    return hip_hardware(find(target)).matrix_instruction(element, m)


def by_name(one: MatrixInstruction) -> str:
    return one.name


@pytest.mark.parametrize("one", INSTRUCTIONS, ids=by_name)
def test_the_lanes_hold_every_element_as_often_as_the_row_says(one: MatrixInstruction) -> None:
    for layout, values, size, copies in (
        (one.a, one.a_values, (one.m, one.k), one.copies),
        (one.b, one.b_values, (one.k, one.n), one.copies),
        (one.d, one.d_values, (one.m, one.n), 1),
    ):
        held = Counter(layout.evaluate(lane, v) for lane in range(one.lanes) for v in range(values))
        every = ((row, column) for row in range(size[0]) for column in range(size[1]))
        assert held == dict.fromkeys(every, copies)


@pytest.mark.parametrize("one", INSTRUCTIONS, ids=by_name)
def test_a_lane_has_the_same_k_of_each_of_its_rows_of_a_and_of_its_column_of_b(
    one: MatrixInstruction,
) -> None:
    """What ``kiln::mma::Tile`` relies on: it reads a run of LDS for each row, and of B one, and
    deals their elements out in the order of k, whatever the instruction calls them."""
    for lane in range(one.lanes):
        places = [one.a.evaluate(lane, value) for value in range(one.a_values)]
        of_b = [one.b.evaluate(lane, value) for value in range(one.b_values)]
        rows = sorted({row for row, _ in places})
        (column,) = {column for _, column in of_b}
        assert rows == [rows[0] + r * (one.m // one.a_rows) for r in range(one.a_rows)]
        assert rows[0] == column
        assert [k for k, _ in of_b] == sorted(k for k, _ in of_b)
        for row in rows:
            assert sorted(k for each, k in places if each == row) == [k for k, _ in of_b]


@pytest.mark.parametrize("one", INSTRUCTIONS, ids=by_name)
def test_products_are_summed_in_the_type_that_kernels_compute_in(one: MatrixInstruction) -> None:
    """Rules count a lane's accumulators, and templates name their type, by ``product_sum``."""
    assert one.accumulator == DType.from_label(one.register_type).product_sum.label


@pytest.mark.parametrize("one", INSTRUCTIONS, ids=by_name)
def test_a_lanes_results_are_a_grid_of_the_same_rows_and_columns(one: MatrixInstruction) -> None:
    columns = one.d_columns
    for lane in range(one.lanes):
        for value in range(one.d_values):
            row, _ = one.d.evaluate(lane, value // columns * columns)
            _, column = one.d.evaluate(lane, value % columns)
            assert one.d.evaluate(lane, value) == (row, column)


def test_results_in_no_grid_are_rejected() -> None:
    turned = Layout(MMA_M16N8K16.d.column, MMA_M16N8K16.d.row)
    row = MatrixInstruction(
        "x", MatrixSet.MMA, 8, 16, 16, 32, "f16", "f32", turned, turned, turned, ""
    )
    with pytest.raises(ValueError, match="no grid of rows and columns"):
        _ = row.d_columns


def test_a_column_may_depend_on_the_value_as_nvidias_does() -> None:
    """The formulae of the PTX ISA: groupID = lane / 4, threadID_in_group = lane % 4."""
    one = MMA_M16N8K16
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(8):
            row = group if i < 2 or 4 <= i < 6 else group + 8
            column = thread * 2 + (i & 1) + (8 if i >= 4 else 0)
            assert one.a.evaluate(lane, i) == (row, column)
        for i in range(4):
            assert one.b.evaluate(lane, i) == (thread * 2 + (i & 1) + (8 if i >= 2 else 0), group)
            assert one.d.evaluate(lane, i) == (group if i < 2 else group + 8, thread * 2 + (i & 1))
    assert (one.a_values, one.b_values, one.d_values, one.d_columns) == (8, 4, 4, 2)


def test_integers_lie_as_the_ptx_isa_says() -> None:
    """Matrix fragments for mma.m16n8k32 of .s8."""
    one = MMA_I8
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(16):
            row = group if i < 4 or 8 <= i < 12 else group + 8
            assert one.a.evaluate(lane, i) == (row, thread * 4 + (i & 3) + (16 if i >= 8 else 0))
        for i in range(8):
            assert one.b.evaluate(lane, i) == (thread * 4 + (i & 3) + (16 if i >= 4 else 0), group)
    assert (one.a_values, one.b_values, one.d_values, one.d) == (16, 8, 4, MMA_M16N8K16.d)


@pytest.mark.parametrize(
    ("processor", "element", "name"),
    [
        ("gfx90a", "i8", "mfma_i32_16x16x16i8"),
        ("gfx942", "i8", "mfma_i32_16x16x32_i8"),
        ("gfx950", "i8", "mfma_i32_16x16x64_i8"),
        ("gfx1100", "i8", "wmma_i32_16x16x16_iu8_w32"),
        ("gfx1201", "f8e4m3fn", "wmma_f32_16x16x16_fp8_fp8_w32_gfx12"),
        ("gfx950", "f8e5m2", "mfma_f32_16x16x128_f8f6f4_bf8"),
        ("sm_80", "i8", "mma_m16n8k32_i32_i8"),
        *((one, "f8e4m3fn", None) for one in ("gfx90a", "gfx942", "gfx1100", "sm_90")),
        ("gfx1030", "i8", None),
    ],
)
def test_elements_of_8_bits(processor: str, element: str, name: str | None) -> None:
    """gfx942 has floats of 8 bits of other formats than torch's usual ones."""
    assert getattr(instruction(processor, element), "name", None) == name


def test_tf32_lies_as_the_ptx_isa_says() -> None:
    """Matrix fragments for mma.m16n8k8 of .tf32: four values of A, two of B, four of D a lane."""
    one = MMA_TF32
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(4):
            row = group if i in (0, 2) else group + 8
            assert one.a.evaluate(lane, i) == (row, thread if i < 2 else thread + 4)
            assert one.d.evaluate(lane, i) == (group if i < 2 else group + 8, thread * 2 + (i & 1))
        for i in range(2):
            assert one.b.evaluate(lane, i) == (thread + 4 * i, group)
    assert (one.a_values, one.b_values, one.d_values) == (4, 2, 4)


def test_xf32_lies_as_amds_calculator_says() -> None:
    """Each lane has two neighbours along k of one row; results as all of that size."""
    for one in (each for each in INSTRUCTIONS if each.element == "xf32"):
        for lane in range(64):
            for value in range(2):
                assert one.a.evaluate(lane, value) == (lane % one.m, lane // one.m * 2 + value)
                assert one.b.evaluate(lane, value) == (lane // one.m * 2 + value, lane % one.m)
        plain = instruction("gfx942", "f32", one.m)
        assert plain is not None and one.d == plain.d
        assert (one.a_values, one.b_values, one.d_values) == (2, 2, plain.d_values)
        assert (one.k, one.step_k) == (2 * plain.k, plain.step_k)


@pytest.mark.parametrize(
    ("processor", "size", "name"),
    [
        ("gfx942", 16, "mfma_f32_16x16x8_xf32"),
        ("gfx942", 32, "mfma_f32_32x32x4_xf32"),
        ("sm_80", 16, "mma_m16n8k8_f32_tf32"),
        ("sm_120", 16, "mma_m16n8k8_f32_tf32"),
        *((one, 16, None) for one in ("gfx90a", "gfx950", "gfx1030", "gfx1100", "gfx1201")),
        ("sm_90", 32, None),
    ],
)
def test_f32_that_may_be_rounded(processor: str, size: int, name: str | None) -> None:
    """gfx950 has none of it any more."""
    assert getattr(instruction(processor, "tf32", size), "name", None) == name


@pytest.mark.parametrize("name", names())
def test_products_of_f32_are_rounded_nowhere(name: str) -> None:
    """f32 is multiplied as f32, by an instruction of its own (CDNA) or by FMA, never as tf32."""
    chosen = instruction(name, "f32")
    assert chosen is None or chosen.element == "f32"


def test_the_header_is_up_to_date() -> None:
    """``python -m scheduler.build.matrix_header`` writes it anew."""
    assert matrix_header.HEADER_FILE.read_text() == matrix_header.render_header()


@pytest.mark.parametrize("name", names())
def test_a_targets_instructions_are_one_family_for_its_waves(name: str) -> None:
    gpu = hip_hardware(find(name))
    found = gpu.matrix_instructions
    assert {one.family for one in found} == ({gpu.matrix} if gpu.matrix else set())
    assert {one.lanes for one in found} <= {gpu.wavefront}


def test_cdna_has_mfma_and_rdna_from_the_third_on_wmma() -> None:
    for gpu in AMD_GPUS:
        since_the_third = "" if gpu.major == 10 else "wmma"
        assert gpu.matrix == ("mfma" if gpu.architecture == "cdna" else since_the_third)


def test_the_instruction_that_takes_the_most_of_k_is_selected() -> None:
    chosen = {
        processor: getattr(instruction(processor, "f16", 32), "name", None)
        for processor in ("gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201")
    }
    assert chosen == {
        "gfx90a": "mfma_f32_32x32x8f16",
        "gfx942": "mfma_f32_32x32x8f16",
        "gfx950": "mfma_f32_32x32x16_f16",
        **dict.fromkeys(("gfx1030", "gfx1100", "gfx1201")),
    }
