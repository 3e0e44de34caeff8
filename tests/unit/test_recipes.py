"""The recipes of ARCHITECTURE.md that add to the engine, each followed in a copy: nothing
else has to be changed. Other recipes: of a backend in ``test_backends.py``, of a metric in
``tests/app/tuning/test_decision.py``, of a page and a column in ``tests/app/test_recipes.py``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.build.cache import CodeCache
from tests.support.recipe import Recipe

pytestmark = pytest.mark.full
PROGRAMS = "tests.support.recipe_programs"


def test_add_an_op(tmp_path: Path, cache: CodeCache) -> None:
    """``softsign``, of which torch has a function but no op, with a pointwise function."""
    recipe = Recipe("Add an op", tmp_path)
    recipe.insert(
        "scheduler/lowering/ops/functions.py",
        '    op("aten.erfinv"',
        '    op("aten.softsign", "self", unary("softsign"), ref.float_unary("softsign")),\n',
    )
    recipe.insert(
        "scheduler/ir/pointwise.py",
        '        _unary("erfinv"',
        '        _unary("softsign", lambda x: x / (1 + np.abs(x)), 8),\n',
    )
    recipe.insert(
        "scheduler/build/headers/common/kiln/elementary.h",
        "// ---- exponentials",
        "template <typename T>\nKILN_INLINE T softsign(T x) {\n  return x / (T(1) + abs(x));\n}\n",
    )
    recipe.insert(
        "scheduler/codegen/cutedsl/functions.py",
        '    "rsqrt":',
        '    "softsign": "{0} / (1 + cute.math.abs({0}))",\n',
    )
    recipe.run("-m", PROGRAMS, "op", str(cache.root))
    (tmp_path / "docs").mkdir()
    recipe.step("scheduler.lowering.ops.table")
    assert "| `softsign` | default |  | pointwise |" in (tmp_path / "docs" / "ops.md").read_text()


def test_add_a_target(tmp_path: Path, cache: CodeCache) -> None:
    """``gfx1103``, the GPU of Ryzen 7040: of a generation that is there."""
    recipe = Recipe("Add a target", tmp_path)
    file = "scheduler/targets/rdna3.py"
    row = 'PHOENIX = replace(STRIX_HALO, processor="gfx1103", elf_machine=0x44)\n'
    recipe.insert(file, "GPUS = (", row)
    recipe.replace(file, "GPUS = (GPU, ", "GPUS = (GPU, PHOENIX, ")
    recipe.step("scheduler.build.matrix_header")
    listed = json.loads(recipe.run("-m", "scheduler", "targets", "--json"))["targets"]
    assert listed["gfx1103"]["matrix"] == listed["gfx1151"]["matrix"]
    recipe.run("-m", PROGRAMS, "target", str(cache.root))


def test_add_a_matrix_instruction(tmp_path: Path, cache: CodeCache) -> None:
    """CDNA 3's ``i32_32x32x16_i8``, of a family that is there."""
    recipe = Recipe("Add a matrix instruction", tmp_path)
    recipe.insert(
        "scheduler/matrix_instructions.py",
        '    _mfma_row("i32_16x16x64_i8"',
        '    _mfma_row("i32_32x32x16_i8", 32, 16, "i8", MatrixSet.MFMA_I8_K32,'
        ' call="words_3", word="long"),\n',
    )
    recipe.step("scheduler.build.matrix_header")
    recipe.run("-m", PROGRAMS, "matrix_instruction", str(cache.root))


BACKWARD = """\
class BackwardSearch:
    def propose(self, history):
        untried = history.untried
        return int(untried[-1]) if untried.size else None
"""


def test_add_a_search_strategy(tmp_path: Path, cache: CodeCache) -> None:
    """Every configuration, from the last to the first."""
    recipe = Recipe("Add a search strategy", tmp_path)
    recipe.write("scheduler/tuning/strategies/backward.py", BACKWARD)
    file = "scheduler/tuning/strategies/registry.py"
    recipe.insert(
        file,
        "from scheduler.tuning.strategies.guided",
        "from scheduler.tuning.strategies.backward import BackwardSearch\n",
    )
    row = '    "backward": StrategyRow("from the last on", lambda *_: BackwardSearch()),\n'
    recipe.insert(file, '    "local":', row)
    assert "backward: from the last on" in recipe.run("-m", "scheduler", "tune", "--help")
    recipe.run("-m", PROGRAMS, "search_strategy", str(cache.root))
