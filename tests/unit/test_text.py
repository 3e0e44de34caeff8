"""Text of others fits its place, whatever it holds."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import Rejected, Stage, UserError
from scheduler.text import escape_comment, escape_docstring, one_line, shorten, to_identifier
from tests.support.cpp_code import code

#: Characters that end, open or turn something somewhere, and some that do not.
MARKS = st.text(
    st.sampled_from("*/\\?'\"#\n\r\0\t\v\f\x1b\x85\u2028\u202e\ud800 a%{}"), max_size=40
)
TEXTS = st.one_of(st.text(max_size=40), MARKS)


@given(TEXTS)
def test_a_comment_ends_with_its_line(text: str) -> None:
    plain = ["int", "x", ";"]
    assert code(f"// {escape_comment(text)}\nint x;") == plain
    assert code(f"/* {escape_comment(text)} */ int x;") == plain
    assert ast.dump(ast.parse(f"# {escape_comment(text)}\nx = 1")) == ast.dump(ast.parse("x = 1"))


@given(TEXTS)
def test_a_docstring_is_one_string(text: str) -> None:
    module = ast.parse(f'"""{escape_docstring(text)}"""')
    assert len(module.body) == 1
    assert ast.get_docstring(module) is not None


@given(TEXTS)
def test_a_line_is_one_line_of_what_prints(text: str) -> None:
    line = one_line(text)
    assert line.isprintable()
    assert line == text or not text.isprintable()


@given(TEXTS)
def test_an_identifier_holds_nothing_else(text: str) -> None:
    assert f"n{to_identifier(text)}".isidentifier()
    assert to_identifier(text).isascii()


@pytest.mark.parametrize("text", ["x" * 10**6, "\n" * 10**6, "\ud800" * 500])
def test_a_line_is_short(text: str) -> None:
    assert len(one_line(text)) <= 1000
    assert len(shorten(text, 100)) <= 100


def test_a_line_keeps_its_beginning_and_its_end() -> None:
    line = one_line("the node " + "x" * 10**6 + " has no output: export the model again")
    assert line.startswith("the node x")
    assert line.endswith(": export the model again")


@pytest.mark.parametrize("name", ["x" * 10**6, "x\n2026-01-01 ERROR forged", "x\x1b[2J", "x\u202e"])
def test_a_mistake_is_one_short_line_whatever_it_names(name: str) -> None:
    said = str(UserError(f"node {name}: has no output"))
    assert said.isprintable()
    assert len(said) <= 1000
    assert said.endswith(": has no output")


def test_a_rejections_reason_is_one_line_for_a_table() -> None:
    rejected = Rejected(Stage.CRASH, "the worker wrote a\n\x1b[2Jb" + "x" * 10**6, "a\n\tb\0")
    assert rejected.reason.isprintable()
    assert len(rejected.reason) <= 1000
    assert rejected.detail == r"a@@b\x00".replace("@@", "\n\t")
