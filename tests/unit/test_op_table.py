"""Every row of the op table is whole, and nothing is written that no row uses."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scheduler.build.sandbox_paths import HEADER_ROOT
from scheduler.ir.ops import NoKernel, Op, op, parse_signature
from scheduler.ir.pointwise import FUNCTIONS, Domain, PointwiseFunction, Result
from scheduler.lowering.ops import ROWS
from scheduler.lowering.rule_arguments import WITHOUT_EFFECT

SCHEDULER = Path(__file__).parents[2] / "scheduler"
HEADER_TEXT = "".join(
    path.read_text() for path in sorted((HEADER_ROOT / "common" / "kiln").glob("*.h"))
)


def faults(row: Op) -> Iterator[str]:
    """What is missing from a row, or does not fit within it."""
    schemas = {}
    for overload, text in row.signatures.items():
        try:
            schemas[overload] = {param.name for param in parse_signature(text)}
        except SyntaxError:
            yield f"the schema of {overload!r} cannot be read"
    if not schemas:
        yield "no schema"
    if not callable(row.reference):
        yield "no reference"
    if isinstance(row.lowering, NoKernel):
        if not row.lowering.reason:
            yield "no lowering, and no reason"
    elif not callable(row.lowering):
        yield "no lowering"
    else:
        yield from _misfits(row.lowering, schemas)


def _misfits(rule: object, schemas: dict[str, set[str]]) -> Iterator[str]:
    """Arguments that the lowering rule needs and a schema lacks."""
    assert callable(rule)
    builder, *parameters = inspect.signature(rule).parameters.values()
    if builder.name != "b":
        yield "the lowering rule does not take the builder first"
    for parameter in parameters:
        needed = parameter.default is inspect.Parameter.empty
        if needed and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            for overload, names in schemas.items():
                if parameter.name not in names:
                    yield f"{overload!r} lacks the lowering rule's argument {parameter.name!r}"


def test_every_row_is_whole() -> None:
    assert {row.name: found for row in ROWS if (found := list(faults(row)))} == {}


WHOLE = op("aten.f", "self; dim: self, dim", lambda b, self: self, lambda a: a["self"])


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (replace(WHOLE, signatures={}), "no schema"),
        (replace(WHOLE, signatures={"default": "self,, dim"}), "the schema of 'default' cannot"),
        (replace(WHOLE, reference=None), "no reference"),
        (replace(WHOLE, lowering=None), "no lowering"),
        (replace(WHOLE, lowering=NoKernel("")), "no lowering, and no reason"),
        (replace(WHOLE, lowering=lambda self: self), "does not take the builder first"),
        (replace(WHOLE, lowering=lambda b, self, dim: self), "'default' lacks"),
    ],
)
def test_a_row_that_lacks_something_is_noticed(row: Op, fault: str) -> None:
    assert list(faults(WHOLE)) == []
    assert fault in "; ".join(faults(row))


def test_what_a_lowering_rule_takes_some_row_of_it_has() -> None:
    taken: dict[str, set[str]] = {}
    given: dict[str, set[str]] = {}
    for row in ROWS:
        if not isinstance(row.lowering, NoKernel):
            rule = f"{row.lowering.__module__}.{row.lowering.__qualname__}"
            _, *parameters = inspect.signature(row.lowering).parameters.values()
            named = {p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD}
            taken.setdefault(rule, set()).update(named)
            for text in row.signatures.values():
                names = {param.name for param in parse_signature(text)}
                given.setdefault(rule, set()).update(names)
    assert {rule: names - given[rule] for rule, names in taken.items() if names - given[rule]} == {}


def test_an_op_has_one_row() -> None:
    names = Counter(target for row in ROWS for target in row.targets)
    assert [name for name, count in names.items() if count > 1] == []
    assert [row.name for row in ROWS if not re.fullmatch(r"\w+\.\w+", row.name)] == []


def test_arguments_without_effect_are_some_ops() -> None:
    named = {p.name for row in ROWS for t in row.signatures.values() for p in parse_signature(t)}
    assert named >= WITHOUT_EFFECT


def lacks(function: PointwiseFunction) -> Iterator[str]:
    """What is missing from the row of a pointwise function."""
    if function.operator:
        if function.arity != {"!": 1, "~": 1, "?:": 3}.get(function.operator, function.arity):
            yield "the operator has another number of operands"
        if function.arity == 1 and function.operator not in "-!~":
            yield "no prefix operator"
    elif not re.search(
        rf"(?:KILN_BUILTIN\(|KILN_INLINE (?:constexpr )?[\w<>]+ ){function.name}\b", HEADER_TEXT
    ):
        yield "no C++ function"
    if function.cost < 1:
        yield "no cost"


def test_every_pointwise_function_is_in_numpy_and_in_the_headers() -> None:
    found = {name: list(lacks(function)) for name, function in FUNCTIONS.items()}
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_a_pointwise_function_without_its_c_plus_plus_is_noticed() -> None:
    nowhere = PointwiseFunction("nowhere", 1, Domain.FLOAT, Result.SAME, np.sqrt)
    assert list(lacks(nowhere)) == ["no C++ function"]


def _used_names(files: Iterator[Path]) -> Counter[str]:
    """How often each name stands in code, definitions and imports not counted."""
    found: Counter[str] = Counter()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Name):
                found[node.id] += 1
            elif isinstance(node, ast.Attribute):
                found[f".{node.attr}"] += 1
    return found


@pytest.mark.full
@pytest.mark.parametrize("package", ["ir/reference", "lowering"])
def test_no_rule_is_without_a_row(package: str) -> None:
    """Every function of the packages that rows take their rules from is named somewhere."""
    used = _used_names(SCHEDULER.rglob("*.py"))
    unused = [
        f"{path.name}: {node.name}"
        for path in (SCHEDULER / package).glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and not used[node.name] and not used[f".{node.name}"]
    ]
    assert unused == []


def test_every_pointwise_function_is_called_by_some_rule() -> None:
    texts = {
        node.value
        for path in (SCHEDULER / "lowering").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    # ``bitwise("and")`` is ``bitwise_and`` or ``logical_and``, as its operands are.
    texts |= {f"{kind}_{name}" for kind in ("bitwise", "logical") for name in texts}
    assert set(FUNCTIONS) - texts == set()
