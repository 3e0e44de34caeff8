"""Reading torch.export files: what a good one says, and one clear line for each bad one."""

from __future__ import annotations

import copy
import json
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler.errors import UserError
from scheduler.frontends.pt2 import read
from scheduler.frontends.symbols import infer_hints
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Frame, InputKind, Ref
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.text import parse_expr
from scheduler.lowering.ops import resolve_op

S27 = "Symbol('s27', positive=True, integer=True)"
SAMPLES = Path(__file__).parents[2] / "scheduler" / "samples" / "graphs"


def _int(value: int) -> dict[str, Any]:
    return {"as_int": value}


def _expr(text: str, hint: int | None) -> dict[str, Any]:
    return {"as_expr": {"expr_str": text, "hint": None if hint is None else {"as_int": hint}}}


def _meta(sizes: list[Any], strides: list[Any], dtype: int = 7) -> dict[str, Any]:
    return {
        "dtype": dtype,
        "sizes": sizes,
        "strides": strides,
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "storage_offset": _int(0),
        "layout": 7,
    }


def _tensor(name: str) -> dict[str, Any]:
    return {"as_tensor": {"name": name}}


def _arg(name: str, arg: dict[str, Any], kind: int = 1) -> dict[str, Any]:
    return {"name": name, "arg": arg, "kind": kind}


def _node(target: str, inputs: list[Any], outputs: list[Any], name: str) -> dict[str, Any]:
    trace = (
        '  File "model.py", line 7, in forward\n    return self.fc(x)\n'
        '  File "lib/linear.py", line 9, in forward\n    y = relu(\n'
    )
    metadata = {
        "stack_trace": trace,
        "nn_module_stack": "L__self__,,m.Model;L__self___fc,fc,torch.nn.Linear",
        "torch_fn": "linear_1;builtin.linear",
    }
    return {
        "target": target,
        "inputs": inputs,
        "outputs": outputs,
        "metadata": metadata,
        "name": name,
    }


def _unary(op: str, source: str, result: str) -> dict[str, Any]:
    inputs = [_arg("self", _tensor(source))]
    return _node(f"torch.ops.aten.{op}.default", inputs, [_tensor(result)], result)


def model() -> dict[str, Any]:
    """relu(linear(x[s27, 4], w[3, 4])): a small good file."""
    rows = _expr(S27, 8)
    made = _meta([rows, _int(3)], [_int(3), _int(1)])
    return {
        "schema_version": {"major": 8, "minor": 20},
        "torch_version": "2.13.0",
        "range_constraints": {"s27": {"min_val": 2, "max_val": 64}},
        "graph_module": {
            "signature": {
                "input_specs": [
                    {"parameter": {"arg": {"name": "p_fc_weight"}, "parameter_name": "fc.weight"}},
                    {"user_input": {"arg": _tensor("x")}},
                ],
                "output_specs": [{"user_output": {"arg": _tensor("relu")}}],
            },
            "graph": {
                "inputs": [_tensor("p_fc_weight"), _tensor("x")],
                "outputs": [_tensor("relu")],
                "nodes": [
                    _node(
                        "torch.ops.aten.linear.default",
                        [_arg("input", _tensor("x")), _arg("weight", _tensor("p_fc_weight"))],
                        [_tensor("linear")],
                        "linear",
                    ),
                    _unary("relu", "linear", "relu"),
                ],
                "tensor_values": {
                    "p_fc_weight": _meta([_int(3), _int(4)], [_int(4), _int(1)]),
                    "x": _meta([rows, _int(4)], [_int(4), _int(1)]),
                    "linear": made,
                    "relu": copy.deepcopy(made),
                },
                "sym_int_values": {},
            },
        },
    }


def write(folder: Path, document: Any, member: str = "m/models/model.json", **options: Any) -> Path:
    path = folder / "model.pt2"
    with zipfile.ZipFile(path, "w", options.get("method", zipfile.ZIP_DEFLATED)) as archive:
        text = document if isinstance(document, str | bytes) else json.dumps(document)
        archive.writestr(member, text)
    return path


def test_a_good_file_is_read_whole(tmp_path: Path) -> None:
    graph = read(write(tmp_path, model()))
    assert graph.name == "model"
    assert [node.target for node in graph.nodes] == ["aten.linear.default", "aten.relu.default"]
    assert graph.nodes[0].args == (Ref("x"), Ref("p_fc_weight"))
    assert graph.outputs == ("relu",)
    assert graph.producer == "torch 2.13.0"
    weight, x = graph.inputs
    assert (weight.kind, weight.source_name) == (InputKind.PARAMETER, "fc.weight")
    assert (x.kind, x.name) == (InputKind.USER, "x")
    s27 = graph.symbols["s27"]
    assert (s27.hint, s27.minimum, s27.maximum) == (8, 2, 64)
    assert graph.tensors["x"].size == (symbol("s27"), 4)
    assert graph.tensors["x"].dtype is DType.F32
    origin = graph.nodes[0].origin
    assert origin.frames == (
        Frame("model.py", 7, "forward", "return self.fc(x)"),
        Frame("lib/linear.py", 9, "forward", "y = relu("),
    )
    assert (origin.module_path, origin.module_type) == ("fc", "torch.nn.Linear")
    assert origin.torch_function == "builtin.linear"


def test_the_digest_is_of_the_content_and_not_of_the_file(tmp_path: Path) -> None:
    first = read(write(tmp_path, model()))
    padded = read(
        write(tmp_path, json.dumps(model(), indent=3), method=zipfile.ZIP_STORED), "other"
    )
    assert padded.name == "other"
    assert first.digest == padded.digest
    other = model()
    other["graph_module"]["graph"]["nodes"][1]["target"] = "torch.ops.aten.silu.default"
    assert read(write(tmp_path, other)).digest != first.digest


def test_every_kind_of_argument(tmp_path: Path) -> None:
    document = model()
    arguments = {
        "as_int": (3, 3),
        "as_ints": ([1, -1], (1, -1)),
        "as_float": ("Infinity", float("inf")),
        "as_floats": ([0.5, 1], (0.5, 1.0)),
        "as_bool": (True, True),
        "as_none": (True, None),
        "as_string": ("none", "none"),
        "as_scalar_type": (13, DType.BF16),
        "as_device": ({"type": "cuda", "index": 1}, "cuda:1"),
        "as_layout": (7, "strided"),
        "as_memory_format": (2, "channels_last"),
        "as_tensors": ([{"name": "x"}, {"name": "linear"}], (Ref("x"), Ref("linear"))),
        "as_optional_tensors": ([{"as_none": True}, _tensor("x")], (None, Ref("x"))),
        "as_sym_ints": ([{"as_int": 2}, {"as_name": "x"}], (2, Ref("x"))),
        "as_sym_int": ({"as_name": "x"}, Ref("x")),
    }
    document["graph_module"]["graph"]["nodes"][1]["inputs"] += [
        _arg(tag, {tag: content}, kind=2) for tag, (content, _) in arguments.items()
    ]
    node = read(write(tmp_path, document)).nodes[1]
    assert dict(node.kwargs) == {tag: expected for tag, (_, expected) in arguments.items()}


def test_positional_arguments_keep_their_names(tmp_path: Path) -> None:
    (linear, relu) = read(write(tmp_path, model())).nodes[:2]
    assert linear.labels == ("input", "weight")
    assert relu.labels == ("self",)


def test_keywords_of_a_file_that_does_not_say_which_they_are(tmp_path: Path) -> None:
    """Schemas before 8.3 have no kind: an argument after one left out is known by its name."""
    document = model()
    relu = document["graph_module"]["graph"]["nodes"][1]
    relu["target"] = "torch.ops.aten.sum.default"
    relu["inputs"] = [
        {"name": "self", "arg": _tensor("linear")},
        {"name": "dtype", "arg": {"as_scalar_type": 7}},
    ]
    node = read(write(tmp_path, document)).nodes[1]
    assert resolve_op(node.target).bind(node) == {"self": Ref("linear"), "dtype": DType.F32}


def test_hints_are_solved_where_no_size_is_the_bare_symbol(tmp_path: Path) -> None:
    text = json.dumps(model()).replace(
        json.dumps(_expr(S27, 8)), json.dumps(_expr(f"Add(Mul(Integer(2), {S27}), Integer(1))", 17))
    )
    assert read(write(tmp_path, text)).symbols["s27"].hint == 8


def test_torchs_own_functions_in_sizes(tmp_path: Path) -> None:
    document = model()
    size = f"Max(Integer(1), Mod(FloorDiv({S27}, Integer(2)), Integer(3)))"
    values = document["graph_module"]["graph"]["tensor_values"]
    values["relu"]["sizes"][1] = _expr(size, 1)
    graph = read(write(tmp_path, document))
    assert str(graph.tensors["relu"].size[1]) == "Max(1, Mod(FloorDiv(s27, 2), 3))"


def test_blocks_without_gradient_stand_in_the_graph(tmp_path: Path) -> None:
    """torch wraps what ran under ``torch.no_grad()``; the nodes in it count like all others."""
    document = model()
    graph = document["graph_module"]["graph"]
    inner = {
        "inputs": [_tensor("linear")],
        "outputs": [_tensor("relu")],
        "nodes": [
            _node(
                "torch.ops.aten.neg.default", [_arg("self", _tensor("linear"))], [_tensor("t")], "t"
            ),
            _node(
                "torch.ops.aten.relu.default", [_arg("self", _tensor("t"))], [_tensor("relu")], "r"
            ),
        ],
        "tensor_values": dict.fromkeys(("linear", "t", "relu"), graph["tensor_values"]["relu"]),
        "sym_int_values": {},
    }
    graph["nodes"][1] = _node(
        "torch.ops.higher_order.wrap_with_set_grad_enabled",
        [
            _arg("", {"as_bool": False}),
            _arg("", {"as_graph": {"name": "submod_1", "graph": inner}}),
            _arg("", _tensor("linear")),
        ],
        [_tensor("relu")],
        "wrapped",
    )
    nodes = read(write(tmp_path, document)).nodes
    assert [(n.target, n.outputs) for n in nodes[1:]] == [
        ("aten.neg.default", ("submod_1_t",)),
        ("aten.relu.default", ("relu",)),
    ]
    assert nodes[2].args == (Ref("submod_1_t"),)


def _power(base: str, exponent: int) -> str:
    return f"Pow({base}, Integer({exponent}))"


def _sum(number: int) -> str:
    return f"Add({S27}, Symbol('s{number}'), Integer({number}))"


# What is done to the good document, and what the error's line must name.
Damage = Callable[[dict[str, Any]], object]
G = "graph_module"
BAD: dict[str, tuple[Damage, str]] = {
    "wrong schema": (lambda d: d.update(schema_version={"major": 9, "minor": 1}), "version 9"),
    "no schema": (lambda d: d.pop("schema_version"), "schema_version"),
    "no graph": (lambda d: d[G].pop("graph"), "'graph' is missing"),
    "nodes of wrong kind": (lambda d: d[G]["graph"].update(nodes={}), "'nodes'"),
    "dangling reference": (
        lambda d: d[G]["graph"]["nodes"][1]["inputs"].__setitem__(
            0, _arg("self", _tensor("ghost"))
        ),
        "node 'relu' uses 'ghost' as its argument 'self', but no node computes it",
    ),
    "cycle": (
        lambda d: d[G]["graph"]["nodes"][0]["inputs"].__setitem__(0, _arg("i", _tensor("relu"))),
        "node 'linear' uses 'relu' before",
    ),
    "out of order": (
        lambda d: d[G]["graph"]["nodes"].reverse(),
        "node 'relu' uses 'linear' before",
    ),
    "unknown dtype": (
        lambda d: d[G]["graph"]["tensor_values"]["x"].update(dtype=9),
        "value 'x': unknown dtype 9 complex32",
    ),
    "rank and strides differ": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["strides"].pop(),
        "value 'x' has 2 sizes but 1 strides",
    ),
    "negative size": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(1, _int(-4)),
        "value 'x' has a negative size",
    ),
    "same node twice": (
        lambda d: d[G]["graph"]["nodes"][1].update(name="linear"),
        "two nodes have the name 'linear'",
    ),
    "same value twice": (
        lambda d: d[G]["graph"]["nodes"][1].update(outputs=[_tensor("linear")]),
        "defines 'linear', which already exists",
    ),
    "input twice": (
        lambda d: d[G]["signature"]["input_specs"].append({"user_input": {"arg": _tensor("x")}}),
        "duplicate input 'x'",
    ),
    "input only in signature": (
        lambda d: d[G]["graph"]["inputs"].pop(),
        "input 'x' is not in both",
    ),
    "input without meta": (lambda d: d[G]["graph"]["tensor_values"].pop("x"), "input 'x' has no"),
    "output of nothing": (
        lambda d: d[G]["graph"].update(outputs=[_tensor("nope")]),
        "no node computes the output 'nope'",
    ),
    "code instead of a size": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(
            0, _expr("__import__('os').system('touch /tmp/owned')", 3)
        ),
        "value 'x': not an integer expression",
    ),
    "huge power": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(
            0, _expr("Pow(Integer(10), Integer(100000000))", 3)
        ),
        "value 'x'",
    ),
    "division by zero": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(
            0, _expr(f"FloorDiv({S27}, Integer(0))", 3)
        ),
        "value 'x'",
    ),
    "deep expression": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(
            0, _expr("Add(Integer(1), " * 150 + S27 + ")" * 150, 3)
        ),
        "value 'x'",
    ),
    "size beyond 64 bits": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(0, _int(1 << 70)),
        "value 'x': not a 64-bit integer",
    ),
    "nested powers as a stride": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["strides"].__setitem__(
            0, _expr(_power(_power(_power(S27, 9), 9), 9), 3)
        ),
        "value 'x': power too large in expression \"Pow(Pow(Pow(Symbol",
    ),
    "a power behind a division": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["strides"].__setitem__(
            0, _expr(_power(f"FloorDiv({_power(S27, 9)}, Integer(2))", 9), 3)
        ),
        "value 'x': power too large",
    ),
    "products of sums": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(
            0, _expr("Mul(" + ", ".join(_sum(k) for k in range(40)) + ")", 3)
        ),
        "value 'x': an expression has more than 512 terms",
    ),
    "more memory than 64 bits address": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["strides"].__setitem__(0, _int(1 << 60)),
        "value 'x' is larger than any memory: its sizes are [8, 4]",
    ),
    "more elements than 64 bits count": (
        lambda d: d[G]["graph"]["tensor_values"]["x"].update(
            sizes=[_int(1 << 40), _int(1 << 40)], strides=[_int(0), _int(0)]
        ),
        "value 'x' is larger than any memory",
    ),
    "a size to a high power": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(
            0, _expr(f"Mul({_power(S27, 4)}, Add({_power(S27, 3)}, Integer(1)))", 3)
        ),
        "value 'x': its number of elements has s27 to the power of 7; the limit is 6",
    ),
    "negative at the example's sizes": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(
            0, _expr(f"Add({S27}, Integer(-9))", 3)
        ),
        "value 'x' has a negative size or stride: 's27 - 9', which is -1",
    ),
    "division by zero at the example's sizes": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(
            0, _expr(f"FloorDiv({S27}, Add({S27}, Integer(-8)))", 3)
        ),
        "value 'x': division of a size by zero at s27 = 8",
    ),
    "too many dimensions": (
        lambda d: d[G]["graph"]["tensor_values"]["x"].update(sizes=[_int(1)] * 65),
        "value 'x' has 65 sizes; the limit is 64",
    ),
    "too many arguments": (
        lambda d: d[G]["graph"]["nodes"][1].update(
            inputs=[_arg(f"a{n}", _int(1)) for n in range(2000)]
        ),
        "node 'relu' has 2000 arguments; the limit is 1024",
    ),
    "too many parts of an argument": (
        lambda d: d[G]["graph"]["nodes"][1]["inputs"].append(_arg("c", {"as_ints": [1] * 2000})),
        "node 'relu', argument 'c' has 2000 parts; the limit is 1024",
    ),
    "too many results": (
        lambda d: d[G]["graph"]["nodes"][1].update(outputs=[_tensor(f"o{n}") for n in range(2000)]),
        "node number 1 has 2000 results; the limit is 1024",
    ),
    "a text of any length": (
        lambda d: d[G]["graph"]["nodes"][1]["inputs"].append(_arg("c", {"as_string": "x" * 5000})),
        "node 'relu', argument 'c': 5000 characters",
    ),
    "a float that is larger than any": (
        lambda d: d[G]["graph"]["nodes"][1]["inputs"].append(_arg("c", {"as_float": 10**400})),
        "node 'relu', argument 'c': number out of range",
    ),
    "a float for an element type": (
        lambda d: d[G]["graph"]["nodes"][1]["inputs"].append(_arg("c", {"as_scalar_type": 7.0})),
        "node 'relu', argument 'c': unknown dtype 7.0",
    ),
    "a number for a symbolic result": (
        lambda d: d[G]["graph"]["nodes"][1].update(outputs=[{"as_sym_int": 1}]),
        "node number 1: not a tagged value: 1",
    ),
    "too many symbols": (
        lambda d: d[G]["graph"]["tensor_values"].update(
            {f"v{n}": _meta([_expr(f"Symbol('u{n}')", 1)], [_int(1)]) for n in range(300)}
        ),
        "the graph has 301 symbols; the limit is 256",
    ),
    "hint outside its range": (
        lambda d: d["range_constraints"]["s27"].update(max_val=4),
        "symbol 's27': example value 8 is outside its range 2 to 4",
    ),
    "unknown kind of argument": (
        lambda d: d[G]["graph"]["nodes"][1]["inputs"].append(_arg("c", {"as_quaternion": {}})),
        "node 'relu', argument 'c': arguments of kind 'as_quaternion'",
    ),
    "complex number without its parts": (
        lambda d: d[G]["graph"]["nodes"][1]["inputs"].append(_arg("c", {"as_complex": {}})),
        "node 'relu', argument 'c': 'real' is missing",
    ),
    "argument that is no union": (
        lambda d: d[G]["graph"]["nodes"][1]["inputs"].append({"name": "c", "arg": {}, "kind": 1}),
        "node 'relu', argument 'c'",
    ),
    "bool as int": (
        lambda d: d[G]["graph"]["nodes"][1]["inputs"].append(_arg("c", _int(True))),
        "node 'relu', argument 'c'",
    ),
    "custom object": (
        lambda d: d[G]["signature"]["input_specs"].append({"custom_obj": {}}),
        "inputs of kind 'custom_obj'",
    ),
    "sparse": (
        lambda d: d[G]["graph"]["tensor_values"]["x"].update(layout=1),
        "value 'x': layout 1 is not supported",
    ),
    "autocast inside": (
        lambda d: d[G]["graph"]["nodes"][1].update(
            target="torch.ops.higher_order.wrap_with_autocast",
            inputs=[_arg("", {"as_bool": True}), _arg("", {"as_graph": {}})],
        ),
        "node 'relu': autocast",
    ),
    "symbol named like code": (
        lambda d: d[G]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(
            0, _expr("Symbol('a+b', integer=True)", 3)
        ),
        "value 'x': not a symbol name",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_graph_is_one_clear_line_naming_the_part(tmp_path: Path, name: str) -> None:
    damage, named = BAD[name]
    document = model()
    damage(document)
    with pytest.raises(UserError) as caught:
        read(write(tmp_path, document))
    line = str(caught.value)
    assert line.startswith("model.pt2: ")
    assert named in line
    assert "\n" not in line
    assert len(line) < 400


@pytest.mark.parametrize("part", ["nodes", "inputs", "outputs", "tensor_values", "sym_int_values"])
@pytest.mark.parametrize("junk", [None, 3, "x", [1], {"a": 1}, [[]], [{}], True])
def test_junk_in_any_place_is_an_error_and_no_crash(tmp_path: Path, part: str, junk: Any) -> None:
    document = model()
    document[G]["graph"][part] = junk
    if (part, junk) == ("sym_int_values", {}):
        return
    with pytest.raises(UserError):
        read(write(tmp_path, document))


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    return [path, *(p for key in keys for p in _paths(value[key], (*path, key)))]


@pytest.mark.parametrize("junk", [None, -1, "", [], {}, {"as_int": None}, 1e999, [[[]]]])
def test_junk_anywhere_at_all_never_raises_anything_else(junk: Any) -> None:
    """Every single value of the document is exchanged in turn; only UserError may come out."""
    from scheduler.frontends.pt2 import _Reader
    from scheduler.ir.check import check_graph

    for path in _paths(model())[1:]:
        document = model()
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = junk
        try:
            check_graph(_Reader(document).graph("junk"))
        except UserError:
            continue


def _bad_file(folder: Path, content: bytes) -> Path:
    path = folder / "bad.pt2"
    path.write_bytes(content)
    return path


def test_files_that_are_no_models(tmp_path: Path) -> None:
    good = write(tmp_path, model()).read_bytes()
    for content in (b"", b"PK", b"hello" * 100, pickle.dumps({"a": 1}), good[:-30], good[:200]):
        with pytest.raises(UserError, match=r"bad\.pt2"):
            read(_bad_file(tmp_path, content))
    with pytest.raises(UserError, match=r"no\.pt2: cannot be read"):
        read(tmp_path / "no.pt2")
    with pytest.raises(UserError, match=r"not a torch\.export file: a folder"):
        read(tmp_path)


def test_every_flipped_byte_is_read_or_rejected(tmp_path: Path) -> None:
    """No damage to the zip's own structures may come out as another kind of error."""
    good = write(tmp_path, model(), method=zipfile.ZIP_STORED).read_bytes()
    header = 30 + len("m/models/model.json")
    directory = len(good) - 22 - 46 - len("m/models/model.json")
    for at in [*range(header), *range(directory, len(good))]:
        for flip in (0xFF, 0x01):
            damaged = bytearray(good)
            damaged[at] ^= flip
            try:
                read(_bad_file(tmp_path, bytes(damaged)))
            except UserError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[1, 2", b"nul", b"\xff\xfe\x00", b"[" * 200_000, b'{"a": 1}', b"[]", b"3"]
)
def test_json_that_is_none(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(UserError):
        read(write(tmp_path, text))


def test_a_zip_bomb_is_rejected_before_it_is_unpacked(tmp_path: Path) -> None:
    path = write(tmp_path, b" " * (40 << 20))
    assert path.stat().st_size < 1 << 17
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="times its packed size"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_member_that_lies_about_its_size_is_rejected(tmp_path: Path) -> None:
    content = bytearray(write(tmp_path, b" " * (8 << 20)).read_bytes())
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = struct.pack("<I", 1000)
    with pytest.raises(UserError):
        read(_bad_file(tmp_path, bytes(content)))


@pytest.mark.full
def test_a_document_of_very_many_parts_is_rejected(tmp_path: Path) -> None:
    # Not very compressible, so that only the count speaks against it.
    text = ",".join(f"[{i * 7919 % 1000}]" for i in range(7_000_000))
    with pytest.raises(UserError, match="parts"):
        read(write(tmp_path, f"[{text}]", method=zipfile.ZIP_STORED))


@pytest.mark.parametrize(
    "member", ["../m/models/model.json", "/models/model.json", "a/../b/model.json"]
)
def test_members_that_climb_out_are_ignored(tmp_path: Path, member: str) -> None:
    with pytest.raises(UserError, match=r"not a torch\.export file: an archive"):
        read(write(tmp_path, model(), member=member))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.pt2"]


def test_pickles_in_the_file_are_never_opened(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path(tmp_path / "owned").touch, ())

    path = write(tmp_path, model())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("m/data/weights/weight_0", pickle.dumps(Bomb()))
        archive.writestr("m/data/constants/data.pkl", pickle.dumps(Bomb()))
    assert read(path).nodes
    assert not (tmp_path / "owned").exists()


def test_the_same_member_twice(tmp_path: Path) -> None:
    path = write(tmp_path, model())
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("m/models/model.json", "{}")
    with pytest.raises(UserError, match=r"duplicate member 'm/models/model\.json'"):
        read(path)


def test_one_of_several_models_is_chosen_by_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, model(), member="m/models/encoder.json")
    assert read(path).nodes, "the only one needs no name"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("m/models/model.json", "{}")
    with pytest.raises(UserError) as several:
        read(path)
    names = "'encoder', 'model'"
    assert str(several.value).endswith(f"contains the models {names}: choose one by its name")
    assert read(path, model_name="encoder").nodes
    with pytest.raises(UserError) as unknown:
        read(path, model_name="decoder")
    assert str(unknown.value).endswith(f"no model 'decoder'; the models are {names}")
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(100):
            archive.writestr(f"m/models/{number:0200}.json", "{}")
    with pytest.raises(UserError, match="and 94 more") as many:
        read(path)
    assert len(str(many.value)) < 800


@pytest.mark.parametrize(
    ("member", "says"),
    [
        ("encoder.pt2", "not a torch.export file: an archive. It contains encoder.pt2. Unpack it"),
        (
            "m/data/aotinductor/model/a.so",
            "an AOTInductor package. It is compiled, and has no graph.",
        ),
        ("m/data.pkl", "a PyTorch checkpoint of torch.save. It has weights"),
        ("m/readme.txt", "an archive. It contains m/readme.txt."),
    ],
)
def test_archives_of_other_sorts_are_named(member: str, says: str, tmp_path: Path) -> None:
    path = write(tmp_path, model(), member=member)
    with pytest.raises(UserError) as caught:
        read(path)
    assert says in str(caught.value)


def test_an_older_archive_has_its_model_at_the_root(tmp_path: Path) -> None:
    assert read(write(tmp_path, model(), member="serialized_exported_program.json")).nodes


@pytest.mark.long
def test_a_hundred_thousand_nodes_are_read(tmp_path: Path) -> None:
    document = model()
    graph = document[G]["graph"]
    meta = graph["tensor_values"]["relu"]
    before = "relu"
    for index in range(100_000):
        name = f"n{index}"
        graph["nodes"].append(
            {
                "target": "torch.ops.aten.relu.default",
                "inputs": [_arg("self", _tensor(before))],
                "outputs": [_tensor(name)],
                "metadata": {},
                "name": name,
            }
        )
        graph["tensor_values"][name] = meta
        before = name
    assert len(read(write(tmp_path, document, method=zipfile.ZIP_STORED)).nodes) == 100_002


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.pt2")), ids=lambda path: path.stem)
def test_samples_are_read_whole(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        member = next(name for name in archive.namelist() if name.endswith("models/model.json"))
        document = json.loads(archive.read(member))
    graph = read(path)
    listed = document[G]["graph"]
    assert [node.name for node in graph.nodes] == [node["name"] for node in listed["nodes"]]
    assert set(graph.tensors) == set(listed["tensor_values"])
    assert all(node.origin.frames and node.origin.module_type for node in graph.nodes)
    assert set(graph.symbols) == set(document["range_constraints"])


@pytest.mark.parametrize(
    ("hints", "found"),
    [
        ({"s27": 8}, {"s27": 8}),
        ({"2*s27 + 1": 17}, {"s27": 8}),
        ({"3*s27 - 2": 1}, {"s27": 1}),
        ({"2*s27 + 1": 16}, {}),  # no integer gives it
        ({"s27**2": 16}, {}),  # no linear one: what is found for it does not give it
        ({"s27//2": 4}, {}),  # several give it
        ({"s27**2": 1}, {"s27": 1}),
        ({"s27*s3": 24, "s3": 3}, {"s3": 3, "s27": 8}),
        ({"s27 + s3": 9}, {}),
        ({"8//s27": 2}, {}),
    ],
    ids=str,
)
def test_an_example_size_is_what_gives_the_examples_of_what_is_made_of_it(
    hints: dict[str, int], found: dict[str, int]
) -> None:
    assert infer_hints({parse_expr(text): hint for text, hint in hints.items()}) == found
