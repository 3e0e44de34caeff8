"""A bundle runs at the sizes that its model was exported for, and refuses all others in one line:
whoever runs it, torch is the oracle of which those are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import sympy

from scheduler import pipeline
from scheduler.bundle.manifest import Manifest
from scheduler.bundle.reader import Bundle
from scheduler.bundle.writer import wrapper_of
from scheduler.commands.run import read_inputs
from scheduler.errors import UserError
from scheduler.frontends.guards import read_guards
from scheduler.ir.bindings import (
    SizeSource,
    check_bindings,
    hint_bindings,
    size_sources,
    trial_bindings,
)
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo, TensorMeta
from scheduler.ir.index.functions import FloorDiv, Mod, symbol
from scheduler.ir.serialize import graph_from_json, graph_to_json
from scheduler.targets import find
from tests.unit.torch_export import export

torch = pytest.importorskip("torch")

Shapes = tuple[tuple[int, ...], ...]


class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
    """One whose forward has named arguments, as guards speak of them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, y: Any) -> Any:
        return self.function(x, y)


DIM, AUTO = torch.export.Dim, torch.export.Dim.AUTO
N, M = DIM("n", min=2, max=9), DIM("m", min=3, max=7)
#: What it computes, sizes of the example, which are dynamic.
MODELS: dict[str, tuple[Callable[..., Any], Shapes, Any]] = {
    "a range": (lambda x, y: (x + 1, y + 1), ((5, 2), (4, 2)), ({0: N}, {0: M})),
    "equal sizes": (lambda x, y: x + y, ((5, 2), (5, 2)), ({0: N}, {0: N})),
    "twice the size": (lambda x, y: x[::2] + y, ((10,), (5,)), ({0: 2 * N}, {0: N})),
    "an even size alone": (lambda x, y: x.reshape(-1, 2), ((10,), (5,)), ({0: 2 * N}, None)),
    "one more": (lambda x, y: x[1:] + y, ((6,), (5,)), ({0: N + 1}, {0: N})),
    "fixed sizes": (lambda x, y: x + y, ((3, 4), (4,)), (None, None)),
    "a multiple of four": (
        lambda x, y: x * (2 if x.shape[0] % 4 == 0 else 3),
        ((8,), (3,)),
        ({0: AUTO}, None),
    ),
    "a branch": (lambda x, y: x * (2 if x.shape[0] > 4 else 3), ((6,), (3,)), ({0: AUTO}, None)),
    "another branch": (lambda x, y: x + (x.shape[0] == 7), ((6,), (3,)), ({0: AUTO}, None)),
    "sizes together": (
        lambda x, y: x * (2 if x.shape[0] + y.shape[0] < 12 else 3),
        ((5,), (4,)),
        ({0: AUTO}, {0: AUTO}),
    ),
    "one or the other": (
        lambda x, y: x * (2 if max(x.shape[0], y.shape[0]) < 7 else 3),
        ((5,), (4,)),
        ({0: AUTO}, {0: AUTO}),
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def case(request: Any, tmp_path_factory: Any) -> tuple[Any, Bundle, ModuleType, Shapes]:
    function, shapes, dynamic = MODELS[request.param]
    folder = tmp_path_factory.mktemp("model")
    args = tuple(torch.zeros(shape) for shape in shapes)
    program, graph = export(Model(function), args, folder, dynamic_shapes=dynamic)
    plan = pipeline.schedule(pipeline.lower(graph))
    manifest = pipeline.generate(plan, [find("cpu")]).manifest()
    (folder / "graph.json").write_text(json.dumps(graph_to_json(graph)))
    (folder / "manifest.json").write_text(json.dumps(manifest.to_json()))
    wrapper = ModuleType("wrapper")
    wrapper.__file__ = str(folder / "wrapper.py")
    exec(compile(wrapper_of(manifest), wrapper.__file__, "exec"), wrapper.__dict__)
    # Which sizes are refused is known before any kernel runs.
    wrapper.Run.kernel = lambda *_: None
    read = Manifest.from_json(json.loads((folder / "manifest.json").read_text()))
    return program.module(), Bundle(folder, read), wrapper, shapes


def around(shapes: Shapes) -> Iterator[Shapes]:
    """These shapes, and those of every extent from 2 to 11 for their first dimensions: torch lets
    sizes of 1 pass that it was not told of."""
    for x, y in product(range(2, 12), repeat=2):
        yield (x, *shapes[0][1:]), (y, *shapes[1][1:])
    yield (*shapes[0][:-1], shapes[0][-1] + 1), shapes[1]


def refusal(run: Callable[[], Any], error: type[BaseException]) -> str:
    try:
        run()
    except error as refused:
        return str(refused)
    return ""


def test_it_runs_where_torch_does(
    case: tuple[Any, Bundle, ModuleType, Shapes], tmp_path: Path
) -> None:
    model, bundle, wrapper, example = case
    accepted = 0
    for shapes in around(example):
        arrays = {
            name: np.zeros(shape, np.float32) for name, shape in zip("xy", shapes, strict=True)
        }
        try:
            model(*map(torch.from_numpy, arrays.values()))
            right = True
        except (AssertionError, RuntimeError):
            right = False
        for line in lines_of(bundle, wrapper, tmp_path, *shapes):
            assert (not line) == right, (shapes, line)
            assert "\n" not in line
        accepted += right
    assert accepted > 0


def keyed(bundle: Bundle, arrays: dict[str, Any]) -> dict[str, Any]:
    """By what the wrapper calls the inputs: the names of their buffers."""
    return dict(zip(bundle.manifest.inputs, arrays.values(), strict=True))


def test_what_is_tried_can_be_run(case: tuple[Any, Bundle, ModuleType, Shapes]) -> None:
    """The least and a prime of each range are no sizes of a model for multiples of four."""
    _, bundle, *_ = case
    manifest = bundle.manifest
    trials = trial_bindings(manifest.symbols, manifest.guards)
    assert hint_bindings(manifest.symbols) in trials
    for bindings in trials:
        check_bindings(bindings, manifest.symbols, manifest.guards)
    assert len(trials) > 1 or not manifest.symbols


def test_guards_are_kept_with_the_graph(case: tuple[Any, Bundle, ModuleType, Shapes]) -> None:
    _, bundle, *_ = case
    graph = bundle.graph
    assert graph.guards == bundle.manifest.guards
    assert graph_from_json(graph_to_json(graph)) == graph


def lines_of(bundle: Bundle, wrapper: ModuleType, folder: Path, *shapes: Any) -> tuple[str, str]:
    arrays: dict[str, Any] = {
        name: np.zeros(shape, np.float32) for name, shape in zip("xy", shapes, strict=True)
    }
    np.savez(folder / "in.npz", **arrays)
    return (
        refusal(lambda: wrapper.call(keyed(bundle, arrays)), SystemExit),
        refusal(lambda: read_inputs(bundle, folder / "in.npz", {}), UserError),
    )


@pytest.mark.parametrize(
    ("case", "shapes", "says"),
    [
        ("a range", ((1, 2), (4, 2)), "dimension 0 is 1, but the model was exported for 2 to 9"),
        ("a range", ((5, 2), (8, 2)), "dimension 0 is 8, but the model was exported for 3 to 7"),
        ("a range", ((5, 3), (4, 2)), "dimension 1 is 3, not 2"),
        ("equal sizes", ((5, 2), (6, 2)), "dimension 0 is 6, not 5 at"),
        (
            "an even size alone",
            ((7,), (5,)),
            "dimension 0 is 7, but the model was exported for 4 to 18, in steps of 2",
        ),
        ("fixed sizes", ((3, 5), (4,)), "dimension 1 is 5, not 4"),
        ("fixed sizes", ((3, 4, 1), (4,)), "has 3 dimensions, not 2"),
        ("equal sizes", ((5, 2), (5,)), "has 1 dimensions, not 2"),
        ("equal sizes", ((), (5, 2)), "has 0 dimensions, not 2"),
        ("a multiple of four", ((13,), (3,)), "the model was exported for s77%4 == 0"),
    ],
    indirect=["case"],
)
def test_the_line_says_which_dimension_and_what_is_allowed(
    case: tuple[Any, Bundle, ModuleType, Shapes], shapes: Any, says: str, tmp_path: Path
) -> None:
    _, bundle, wrapper, _ = case
    for line in lines_of(bundle, wrapper, tmp_path, *shapes):
        assert says in line, line


def test_a_size_within_a_division_is_given_by_no_dimension() -> None:
    n = symbol("n")
    shapes = {
        "x": [sympy.Max(1, Mod(sympy.Integer(1), n)), FloorDiv(n, sympy.Integer(2))],
        "y": [n * n, 3 * n - 1],
    }
    assert size_sources(shapes, ["n"]) == (SizeSource("n", "y", 1, 3, -1),)


@pytest.mark.parametrize("context", ["[[1]]", "[{}]", "[null]", "3", "{"])
def test_inputs_that_no_path_leads_to_have_no_guards(context: str) -> None:
    spec = {"type": "builtins.dict", "context": context, "children_spec": [LEAF]}
    top = {"type": "builtins.tuple", "context": "null", "children_spec": [spec]}
    named = {"type": "builtins.dict", "context": "[]", "children_spec": []}
    tree = {"type": "builtins.tuple", "context": "null", "children_spec": [top, named]}
    document = {
        "guards_code": ["L['x'].size()[0] == 3"],
        "graph_module": {
            "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}]},
            "module_call_graph": [
                {
                    "fqn": "",
                    "signature": {
                        "in_spec": json.dumps([1, tree]),
                        "forward_arg_names": ["x"],
                    },
                }
            ],
        },
    }
    sizes = {"s0": SymbolInfo("s0", 8, 2, None)}
    meta = TensorMeta(DType.F32, (symbol("s0"),), (sympy.Integer(1),))
    assert read_guards(document, {"x": meta}, {}, sizes) == ()


@pytest.mark.parametrize(
    ("text", "guards"),
    [
        ("(L['x'].size()[0] % 4) == 0 and L['y'].size()[0] < 9", 2),
        ("not (L['x'].size()[0] % 4) == 0", 0),
        ("L['x'].dtype == torch.float32", 0),
        ("L['z'].size()[0] == 3", 0),
        ("L['x'].size()[7] == 3", 0),
        ("L['x'].size()[0] / 2 == 3", 0),
        ("L['x'].size()[0] is None", 0),
        ("L['x'].size()[0] in L and L['x'] is L['y']", 0),
        ("L['x'].size()[-5] == 3", 0),
        ("L[None].size()[0] == 3 or L[2.5] == 1", 0),
        ("__import__('os').system('true') == 0", 0),
        ("(" * 500, 0),
    ],
)
def test_what_is_no_comparison_of_sizes_is_no_guard(text: str, guards: int) -> None:
    document: dict[str, Any] = {
        "guards_code": [text],
        "graph_module": {
            "signature": {
                "input_specs": [
                    {"user_input": {"arg": {"as_tensor": {"name": name}}}} for name in "xy"
                ]
            },
            "module_call_graph": [
                {
                    "fqn": "",
                    "signature": {
                        "in_spec": json.dumps([1, SPEC]),
                        "forward_arg_names": ["x", "y"],
                    },
                }
            ],
        },
    }
    sizes = {name: SymbolInfo(name, 8, 2, None) for name in ("s0", "s1")}
    tensors = {
        name: TensorMeta(DType.F32, (symbol(size),), (sympy.Integer(1),))
        for name, size in (("x", "s0"), ("y", "s1"))
    }
    assert len(read_guards(document, tensors, {}, sizes)) == guards


LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
SPEC: dict[str, Any] = {
    "type": "builtins.tuple",
    "context": "null",
    "children_spec": [
        {"type": "builtins.tuple", "context": "null", "children_spec": [LEAF, LEAF]},
        {"type": "builtins.dict", "context": "[]", "children_spec": []},
    ],
}
