"""Tests that need optional packages are skipped where these are not installed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
OPTIONAL = {"cuda", "cutlass", "diffusers", "timm", "torch", "transformers"}


def unguarded(text: str) -> Iterator[str]:
    """Optional packages that a module imports before ``pytest.importorskip`` was asked for one."""
    for statement in ast.parse(text).body:
        if "importorskip" in ast.unparse(statement):
            return
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        else:
            names = [statement.module or ""] if isinstance(statement, ast.ImportFrom) else []
        yield from (name for name in names if name.partition(".")[0] in OPTIONAL)


def test_what_counts_as_unguarded() -> None:
    assert [*unguarded("import os\nimport torch.nn\nfrom cutlass import cute")] == [
        "torch.nn",
        "cutlass",
    ]
    assert not [*unguarded('import pytest\npytest.importorskip("torch")\nimport torch')]
    assert not [*unguarded("def test():\n    import torch")]


def test_no_test_module_fails_to_be_collected_without_them() -> None:
    modules = {path: [*unguarded(path.read_text())] for path in TESTS.rglob("test_*.py")}
    assert len(modules) > 100
    found = {str(path.relative_to(TESTS)): names for path, names in modules.items() if names}
    assert not found, 'call pytest.importorskip("…") above these imports'
