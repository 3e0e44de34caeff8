"""Targets' names stand in ``scheduler/targets``: elsewhere code asks for a property."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import scheduler
from scheduler import targets
from scheduler.targets.generations import AMD_GPUS, GPUS

ENGINE = Path(scheduler.__file__).parent
NAME = re.compile(r"(gfx|sm_)(\d|$)", re.IGNORECASE)  # also f"sm_{...}" and a prefix alone
# File below scheduler/ and text: why the name is needed.
EXCEPTIONS = {
    ("matrix_instructions.py", "_gfx12"): "the end of builtins' names in clang",
}


def code_texts(path: Path) -> Iterator[str]:
    """All string literals of a module besides documentation strings."""
    tree = ast.parse(path.read_text())
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            if isinstance(node.value, bytes):
                yield node.value.decode("latin-1")
            elif isinstance(node.value, str):
                yield node.value


def test_no_other_module_names_a_target() -> None:
    found = {
        (path.relative_to(ENGINE).as_posix(), text)
        for path in ENGINE.rglob("*.py")
        if not path.is_relative_to(ENGINE / "targets")
        for text in code_texts(path)
        if NAME.search(text)
    }
    assert found == set(EXCEPTIONS)


def test_the_pattern_finds_every_gpus_name() -> None:
    assert all(NAME.match(gpu.processor) for gpu in GPUS)


def test_each_of_amds_gpus_is_named_in_one_file() -> None:
    texts = [path.read_text() for path in (ENGINE / "targets").glob("*.py")]
    for gpu in AMD_GPUS:
        assert sum(f'"{gpu.processor}"' in text for text in texts) == 1, gpu.processor


def test_numbers_of_amds_gpus_are_those_of_their_names() -> None:
    assert [f"gfx{gpu.major}" for gpu in AMD_GPUS] == [gpu.processor[:-2] for gpu in AMD_GPUS]
    assert len({gpu.elf_machine for gpu in AMD_GPUS}) == len(AMD_GPUS)


def test_facts_of_the_engine_are_in_no_table() -> None:
    assert "elf_machine" not in targets.find("cpu").facts()
