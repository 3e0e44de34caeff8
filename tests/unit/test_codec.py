"""The JSON codec: what goes out comes back, and a mistake is one line that names the field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest
import sympy

from scheduler.errors import UserError
from scheduler.ir.codec import decode, key_by_name, make_codec, rename_fields
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, symbol


class Kind(StrEnum):
    """Two kinds."""

    ONE = "one"
    TWO = "two"


@dataclass(frozen=True)
class Part:
    """Something with a name."""

    name: str
    size: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True)
class Whole:
    """Everything that the files have."""

    kind: Kind
    parts: Mapping[str, Part]
    config: Mapping[str, int | str | bool]
    time: float
    most: int | None = None
    is_last: bool = False
    notes: tuple[str, ...] = field(default=())


S0 = symbol("s0")
WHOLE = Whole(
    Kind.TWO,
    {"a": Part("a", (S0 * 2, FloorDiv(S0, sympy.Integer(4))), DType.BF16)},
    {"TILE": 64, "SHUFFLE": True, "MODE": "fast"},
    1.5,
)


def codec() -> Any:
    """With fields of other names, and some that are there only now and then."""
    made = make_codec()
    key_by_name(made, Part)
    rename_fields(made, Whole, {"is_last": "last"}, where_default=("notes",))
    return made


def test_what_goes_out_comes_back() -> None:
    data = json.loads(json.dumps(codec().unstructure(WHOLE)))
    sizes = data["parts"]["a"].pop("size")
    assert all(isinstance(size, str) for size in sizes)
    assert data == {
        "kind": "two",
        "parts": {"a": {"dtype": "bf16"}},
        "config": {"TILE": 64, "SHUFFLE": True, "MODE": "fast"},
        "time": 1.5,
        "most": None,
        "last": False,
    }
    data["parts"]["a"]["size"] = sizes
    again = decode(codec(), data, Whole, "file")
    assert again == WHOLE
    assert type(again.config["SHUFFLE"]) is bool


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"time": "1.5"}, "file: '1.5' is not a float @ $.time"),
        ({"time": 10**400}, f"file: '1{'0' * 39}' is not a float @ $.time"),
        ({"most": 1.5}, "file: '1.5' is not an int @ $.most"),
        ({"most": True}, "file: 'True' is not an int @ $.most"),
        ({"last": 1}, "file: '1' is not a bool @ $.is_last"),
        ({"kind": "three"}, "file: 'three' is not a valid Kind @ $.kind"),
        ({"config": {"TILE": [64]}}, "file: '[64]' is not a number, string or boolean"),
        (
            {"parts": {"a": {"size": ["s0"], "dtype": "f8"}}},
            "'f8' is not an element type @ $.parts['a'].dtype",
        ),
        ({"parts": {"a": {"size": ["import os"], "dtype": "f16"}}}, "$.parts['a'].size[0]"),
        ({"parts": {"a": {"size": [4], "dtype": "f16"}}}, "'4' is not a str"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_field(change: dict[str, Any], expected: str) -> None:
    data = json.loads(json.dumps(codec().unstructure(WHOLE)))
    with pytest.raises(UserError) as error:
        decode(codec(), data | change, Whole, "file")
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_missing_is_named() -> None:
    data = codec().unstructure(WHOLE)
    del data["time"]
    with pytest.raises(UserError, match=r"file: required field missing @ \$\.time"):
        decode(codec(), data, Whole, "file")


@pytest.mark.parametrize("data", [None, [], 3, "text"])
def test_what_is_no_object_is_one_line(data: object) -> None:
    with pytest.raises(UserError, match=r"^file: "):
        decode(codec(), data, Whole, "file")
