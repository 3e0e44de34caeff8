"""How good defaults are, for shapes of real models: what of the command is quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.errors import UserError
from scheduler.ir.operations import GroupKind
from tests.benchmarks.cycles.defaults import Chosen, table
from tests.benchmarks.cycles.shapes import Shape, read

A_SHAPE = Shape("gemm", "a model", {"m": 16, "n": 64, "k": 32})


def test_there_are_sixty_shapes_and_each_says_of_which_model() -> None:
    shapes = read()
    assert len(shapes) == 60
    assert all(shape.of for shape in shapes)
    assert len({(shape.name, shape.of) for shape in shapes}) == 60


def test_each_kind_of_shape_is_one_kernel() -> None:
    first = {shape.kind: shape for shape in reversed(read())}
    kinds = {kind: [node.kind for node in shape.plan().nodes] for kind, shape in first.items()}
    assert {len(nodes) for nodes in kinds.values()} == {1}
    assert kinds["gemm"] == [GroupKind.GEMM]
    assert kinds["attention"] == [GroupKind.ATTENTION]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[sort]]\nof = 'a'", "no kind sort; there are gemm"),
        ("[[gemm]]\nof = 'a'\nm = 1\nn = 2", "gemm 1: it has of, m, n, k"),
        ("[[gemm]]\nof = 'a'\nm = 0\nn = 2\nk = 3", "sizes from 1"),
        ("[[gemm]]\nof = 'a'\nm = 1\nn = 2\nk = 3\nl = 4", "gemm 1: it has of"),
        ("[[gemm", "shapes.toml"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "shapes.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=says):
        read(file)


def test_the_table_has_the_share_within_a_tenth() -> None:
    rows = [
        Chosen(A_SHAPE, 10.0, 10.0, "the default", 9),
        Chosen(A_SHAPE, 12.0, 10.0, "64x64", 9),
        Chosen(A_SHAPE, error="no compiler"),
    ]
    assert [row.good for row in rows] == [True, False, False]
    text = table(rows)
    cells = [cell.strip() for cell in text.splitlines()[3].strip("|").split("|")]
    assert cells == ["gemm 16x64x32", "a model", "12.0", "10.0", "1.20", "9", "64x64"]
    assert "- within a tenth of the best: 1 of 3" in text
    assert "- gemm 16x64x32: no compiler" in text
