"""The layered layout of graphs: every wire leads down, through the modules that it passes."""

from __future__ import annotations

import random

from codegen_app.graphs.pages.graph.layout import Box, Layout, ModuleLayout, layered_layout


def row_of(layout: ModuleLayout) -> dict[str, int]:
    return {item: place for place, row in enumerate(layout.rows) for item in row}


def reached(layout: Layout, box: str) -> set[str]:
    """The boxes to which the wires of a box lead, through all modules."""
    ends = set()
    homes = {item: path for path, each in layout.modules.items() for item in row_of(each)}
    waiting = [(homes[f"b:{box}"], f"b:{box}")]
    while waiting:
        path, item = waiting.pop()
        module = layout.modules[path]
        for first, last, source in (*module.wires, *module.direct):
            if (first, source) != (item, box):
                continue
            if last.startswith("b:"):
                ends.add(last[2:])
            elif last.startswith("m:"):
                waiting.append((last[2:], f"i:{box}"))
            elif last.startswith("o:"):
                waiting.append((homes[f"m:{path}"], f"m:{path}"))
            else:
                waiting.append((path, last))
    return ends


def test_a_chain_is_one_column_of_rows() -> None:
    layout = layered_layout([Box(name, "") for name in "abc"], [("a", "b"), ("b", "c")])
    module = layout.modules[layout.root]
    assert module.rows == (("b:a",), ("b:b",), ("b:c",))
    assert module.wires == (("b:a", "b:b", "a"), ("b:b", "b:c", "b"))


def test_a_module_with_a_single_item_is_left_out() -> None:
    boxes = [Box("a", "m.layers.0.q"), Box("b", "m.layers.0.k"), Box("c", "m.layers.1.only")]
    layout = layered_layout(boxes, [("a", "c")])
    assert layout.root == "m.layers"
    assert set(row_of(layout.modules["m.layers"])) == {"m:m.layers.0", "b:c"}
    assert set(row_of(layout.modules["m.layers.0"])) == {"b:a", "b:b", "o:a"}


def test_an_item_that_reads_nothing_stands_right_above_its_reader() -> None:
    edges = [("a", "b"), ("b", "c"), ("late", "c")]
    layout = layered_layout([Box(name, "") for name in ("a", "b", "late", "c")], edges)
    rows = row_of(layout.modules[""])
    assert rows["b:late"] == rows["b:c"] - 1


def test_a_long_wire_bends_around_what_is_between() -> None:
    layout = layered_layout([Box(name, "") for name in "abc"], [("a", "b"), ("b", "c"), ("a", "c")])
    module = layout.modules[""]
    [bend] = [item for item in row_of(module) if item.startswith("w:")]
    assert row_of(module)[bend] == row_of(module)["b:b"]
    assert {("b:a", bend, "a"), (bend, "b:c", "a")} <= set(module.wires)


def test_wires_of_two_columns_do_not_cross() -> None:
    """Although the execution order interleaves them."""
    names = ("a0", "b0", "b1", "a1", "a2", "b2")
    edges = [("a0", "a1"), ("a1", "a2"), ("b0", "b1"), ("b1", "b2")]
    module = layered_layout([Box(name, "") for name in names], edges).modules[""]
    assert len({tuple(item[2] for item in row) for row in module.rows}) == 1


def test_a_module_that_is_called_twice_has_a_wire_back() -> None:
    boxes = [Box("a", "m.shared"), Box("b", "m"), Box("c", "m.shared")]
    layout = layered_layout(boxes, [("a", "b"), ("b", "c")])
    assert layout.modules["m"].direct == (("b:b", "m:m.shared", "b"),)
    assert reached(layout, "b") == {"c"}


def test_without_boxes_there_is_one_empty_module() -> None:
    assert layered_layout([], []) == Layout("", {"": ModuleLayout((), (), ())})


def test_wires_of_random_graphs_lead_to_the_readers_and_down() -> None:
    draw = random.Random(7)
    for _ in range(50):
        modules = [".".join(draw.choices("xyz", k=draw.randint(0, 4))) for _ in range(6)]
        boxes = [Box(f"op{number}", draw.choice(modules)) for number in range(draw.randint(1, 40))]
        edges = {
            (f"op{first}", f"op{last}")
            for first, last in (sorted(draw.sample(range(41), 2)) for _ in range(60))
            if last < len(boxes)
        }
        layout = layered_layout(boxes, sorted(edges))
        for box in boxes:
            assert reached(layout, box.name) == {last for first, last in edges if first == box.name}
        for module in layout.modules.values():
            rows = row_of(module)
            assert all(rows[last] == rows[first] + 1 for first, last, _ in module.wires)
