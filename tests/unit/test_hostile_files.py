"""Files made for harm, from their bytes to sources: each ends in its kernels or in one clear line.

The long version is ``python -m tests.attacks.files``.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from scheduler import pipeline
from scheduler.errors import UserError
from scheduler.fuel import LimitError, OutOfFuelError, fuel_limit, spend_fuel
from scheduler.lowering.errors import error_context
from tests.attacks.files import hostile_file, take
from tests.unit.test_pt2 import G, _arg, _int, _meta, _node, _tensor, _unary, model, write

FILES = 60


@pytest.mark.full(but=3)
@pytest.mark.parametrize("start", range(0, FILES, 20))
def test_mutated_files_are_made_or_refused_in_one_line(tmp_path: Path, start: int) -> None:
    for index in range(start, start + 20):
        path = tmp_path / "model.pt2"
        path.write_bytes(hostile_file(1, index))
        take(path)


@pytest.mark.parametrize("index", [2703, 4388, 6060])
def test_files_that_once_failed_are_made_or_refused(tmp_path: Path, index: int) -> None:
    """A size within a division, a size to the 39th power, an index of more than 64 bits."""
    path = tmp_path / "model.pt2"
    path.write_bytes(hostile_file(41, index))
    take(path)


def _with(node: dict[str, Any], *values: dict[str, Any]) -> dict[str, Any]:
    """relu(linear(x)), and one node more that is an output beside it."""
    document = copy.deepcopy(model())
    graph = document[G]["graph"]
    graph["nodes"].append(node)
    for meta, output in zip(values, node["outputs"], strict=True):
        graph["tensor_values"][output["as_tensor"]["name"]] = meta
        graph["outputs"].append(output)
        document[G]["signature"]["output_specs"].append({"user_output": {"arg": output}})
    return document


def _joined(*given: str) -> dict[str, Any]:
    tensors = {"as_tensors": [{"name": name} for name in given]}
    return _node("torch.ops.aten.cat.default", [_arg("tensors", tensors)], [_tensor("c")], "c")


def _called(op: str, *arguments: dict[str, Any], results: int = 1) -> dict[str, Any]:
    outputs = [_tensor("c"), _tensor("d"), _tensor("e")][:results]
    return _node(f"torch.ops.aten.{op}", [*arguments], outputs, "c")


SELF, W = _arg("self", _tensor("relu")), _tensor("p_fc_weight")
MADE = model()[G]["graph"]["tensor_values"]["relu"]
BAD = {
    "a joint of nothing": _with(_joined(), MADE),
    "padding by a tensor": _with(
        _called("constant_pad_nd.default", SELF, _arg("pad", {"as_tensors": [{"name": "x"}]})), MADE
    ),
    "a size of several numbers": _with(
        _called("narrow.default", SELF, *[_arg(n, {"as_ints": [1]}) for n in ("dim", "start")]),
        MADE,
    ),
    "a window with more dimensions than it slides over": _with(
        _called("max_pool2d.default", SELF, _arg("kernel_size", {"as_ints": [2, 2, 2]})), MADE
    ),
    "more results than the op makes": _with(_called("relu.default", SELF, results=2), MADE, MADE),
    "a missing argument": _with(_called("mm.default", SELF), MADE),
    "an argument that the op does not have": _with(
        _called("relu.default", SELF, _arg("other", W)), MADE
    ),
    "a slice of more than there is": _with(
        _called("slice.Tensor", SELF, _arg("dim", _int(0)), _arg("end", _int(4))), MADE
    ),
    "parts that do not fit side by side": _with(
        _joined("relu", "x"), _meta([_int(16), _int(3)], [_int(3), _int(1)])
    ),
    "padding to another size": _with(
        _called("constant_pad_nd.default", SELF, _arg("pad", {"as_ints": [1, 1]})), MADE
    ),
    "another shape than the op makes": _with(
        _called("relu.default", SELF), _meta([_int(8), _int(4)], [_int(4), _int(1)])
    ),
    "another shape than the op makes at the example's sizes": _with(
        _called("relu.default", SELF), _meta([_int(5), _int(3)], [_int(3), _int(1)])
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_node_whose_arguments_do_not_fit_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"\bc\b.*aten\.") as caught:
        pipeline.lower(pipeline.load(write(tmp_path, BAD[name])))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("op", ["conv1d.default", "conv2d.default", "conv3d.default"])
@pytest.mark.parametrize("rank", range(3))
def test_a_convolution_by_a_weight_of_too_few_dimensions_is_refused(
    tmp_path: Path, op: str, rank: int
) -> None:
    size = _arg("size", {"as_ints": [1] * rank})
    weight = _node("torch.ops.aten.view.default", [_arg("self", W), size], [_tensor("v")], "v")
    document = _with(_called(op, _arg("input", SELF["arg"]), _arg("weight", _tensor("v"))), MADE)
    graph = document[G]["graph"]
    graph["nodes"].insert(-1, weight)
    graph["tensor_values"]["v"] = _meta([_int(1)] * rank, [_int(1)] * rank)
    with pytest.raises(UserError, match=r"aten\.conv") as caught:
        pipeline.lower(pipeline.load(write(tmp_path, document)))
    assert "\n" not in str(caught.value)


def test_a_rule_that_runs_out_of_dimensions_names_its_node() -> None:
    with (
        pytest.raises(UserError, match=r"node 'a': .* are inconsistent"),
        error_context("node 'a'"),
    ):
        next(iter(()))


def test_thousands_of_views_of_views_are_stored_on_the_way(tmp_path: Path) -> None:
    """Each is read through those before it: index in index, call in call."""
    document = model()
    graph = document[G]["graph"]
    before = "relu"
    for number in range(3000):
        name = f"t{number}"
        node = _unary("t", before, name)
        graph["nodes"].append(node)
        meta = copy.deepcopy(MADE)
        if number % 2 == 0:
            meta["sizes"].reverse()
            meta["strides"].reverse()
        graph["tensor_values"][name] = meta
        before = name
    graph["outputs"] = [_tensor(before)]
    plan = pipeline.schedule(pipeline.lower(pipeline.load(write(tmp_path, document))))
    assert plan.nodes


def test_work_beyond_the_limit_stops_at_the_same_step_everywhere() -> None:
    with (
        pytest.raises(OutOfFuelError, match="lowering exceeds the limit of 10 steps"),
        fuel_limit("lowering", 10),
    ):
        for _ in range(20):
            spend_fuel()


def test_an_inner_stage_counts_for_the_outer_one_and_takes_no_more_than_it_has_left() -> None:
    with fuel_limit("all", 10):
        with fuel_limit("part", 8):
            spend_fuel(6)
        with pytest.raises(OutOfFuelError, match="4 steps"), fuel_limit("another part", 8):
            spend_fuel(5)


def test_nothing_is_counted_where_nobody_set_a_limit() -> None:
    spend_fuel(1 << 40)


def test_a_limit_names_the_innermost_place_alone() -> None:
    error = LimitError("too many terms").with_location("node 'a'")
    assert str(error.with_location("the graph")) == "node 'a': too many terms"
