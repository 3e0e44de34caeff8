"""Damage to the JSON of a torch.export file, by somebody who knows what its parts mean."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Json = Any
Place = tuple[Any, Any]  # a container, and the key or index of a part of it
Mutations = dict[Callable[[Json, Random], None], int]  # and how often each, beside the others

#: Stand for numbers that Python's writer of JSON does not write.
_RAW = {"@huge@": "1" + "0" * 4000, "@longer@": "7" * 10_000, "@tiny@": "-1e-400", "@inf@": "1e999"}

INTEGERS: tuple[Any, ...] = (
    *(-1, 0, 1, 2, 3, 5, 7, 16, 64, 100, 1000, 4097, 65_536, 1 << 20),
    *(1 << 31, (1 << 31) - 1, 1 << 32, 10**12, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63)),
    *(1 << 63, 1 << 64, 10**30, 10**300, -(10**30), *_RAW),
)
JUNK: tuple[Any, ...] = (
    *(None, True, False, "", "x", "NaN", "Infinity", "-Infinity", [], {}, [[]], {"a": 1}),
    *(1.5, -0.0, 1e308, float("nan"), float("inf"), "\x00", "\ud800", "a" * 5000, "*/", "\n"),
)


def mutated(document: Json, random: Random, mutations: Mutations | None = None) -> str:
    """The text of the document with one to five faults in it, by default those of a model."""
    changed = copy.deepcopy(document)
    weights = mutations or _MUTATIONS
    for _ in range(random.choice((1, 1, 1, 2, 3, 5))):
        mutation = random.choices(list(weights), list(weights.values()))[0]
        try:
            mutation(changed, random)
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
            continue  # an earlier fault took away what this one changes
    text = json.dumps(changed)
    for mark, number in _RAW.items():
        text = text.replace(f'"{mark}"', number)
    return text


def _graph(document: Json) -> Json:
    return document["graph_module"]["graph"]


def places(part: Json, depth: int = 0) -> Iterator[Place]:
    if depth > 40:
        return
    entries = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in list(entries):
        yield part, key
        if isinstance(value, dict | list):
            yield from places(value, depth + 1)


def _tagged(part: Json, *tags: str) -> list[Place]:
    return [(holder, key) for holder, key in places(part) if key in tags]


def _metas(document: Json) -> list[Json]:
    return list(_graph(document)["tensor_values"].values())


def _size(document: Json, random: Random) -> Json:
    """A size as files have it: a number, or an expression."""
    if random.random() < 0.5:
        return {"as_int": random.choice(INTEGERS)}
    hint = random.choice((None, {"as_int": random.choice(INTEGERS)}))
    return {"as_expr": {"expr_str": expression(document, random), "hint": hint}}


def expression(document: Json, random: Random) -> str:
    """An expression over the file's symbols, from harmless to made for harm."""
    names = list(document.get("range_constraints") or {}) or ["s0"]
    if random.random() < 0.1:
        names.append("unknown")

    def symbol() -> str:
        name = random.choice(names)
        return f"Symbol('{name}', positive=True, integer=True)"

    def build(depth: int) -> str:
        if depth == 0 or random.random() < 0.2:
            number = random.choice([x for x in INTEGERS if isinstance(x, int)])
            return symbol() if random.random() < 0.6 else f"Integer({number})"
        name = random.choice(("Add", "Mul", "FloorDiv", "Mod", "Max", "Min", "ModularIndexing"))
        count = {"FloorDiv": 2, "Mod": 2, "ModularIndexing": 3}.get(name, random.randint(2, 5))
        return f"{name}({', '.join(build(depth - 1) for _ in range(count))})"

    match random.randrange(8):
        case 0:  # powers of powers
            text = f"Add({symbol()}, Integer(1))"
            for _ in range(random.randint(1, 8)):
                text = f"Pow({text}, Integer({random.randint(2, 16)}))"
        case 1:  # products of sums
            sums = (f"Add({symbol()}, Integer({n}))" for n in range(random.randint(2, 60)))
            text = f"Mul({', '.join(sums)})"
        case 2:  # depth
            text = symbol()
            for _ in range(random.randint(2, 90)):
                name = random.choice(("FloorDiv", "Mod"))
                text = f"{name}(Add({text}, {symbol()}), Add({symbol()}, Integer(3)))"
        case 3:  # width
            name = random.choice(("Max", "Min", "Add", "Mul"))
            text = f"{name}({', '.join(build(1) for _ in range(random.randint(10, 60)))})"
        case 4:  # other names than the parser knows
            text = random.choice(("exec('x')", "Symbol(1)", "Pow(2, Pow(9, 9))", "Integer(1", "[]"))
        case _:
            text = build(random.randint(0, 5))
    return text


def _change_size(document: Json, random: Random) -> None:
    sizes = random.choice(_metas(document))[random.choice(("sizes", "strides"))]
    sizes[random.randrange(len(sizes))] = _size(document, random)


def _change_every(document: Json, random: Random) -> None:
    """One size for another wherever it stands, so that the file may still agree with itself."""
    places = _tagged(document["graph_module"], "as_int")
    values = [holder[key] for holder, key in places if type(holder[key]) is int]
    old = random.choice(values)
    new = random.choice([x for x in INTEGERS if x != old])
    for holder, key in places:
        if holder[key] == old:
            holder[key] = new


def _change_every_symbol(document: Json, random: Random) -> None:
    """One expression in place of every use of another."""
    places = _tagged(document["graph_module"], "as_expr")
    old = random.choice(places)
    text = old[0]["as_expr"]["expr_str"]
    new = _size(document, random)
    for holder, key in places:
        if holder[key]["expr_str"] == text:
            del holder[key]
            holder.update(new)


def _swap_sizes(document: Json, random: Random) -> None:
    one, two = random.choice(_metas(document)), random.choice(_metas(document))
    label = random.choice(("sizes", "strides", "dtype"))
    if one is two and label != "dtype":
        random.shuffle(one[label])
    one[label], two[label] = two[label], one[label]


def _change_rank(document: Json, random: Random) -> None:
    meta = random.choice(_metas(document))
    for label in random.choice((("sizes",), ("strides",), ("sizes", "strides"))):
        if random.random() < 0.5 and meta[label]:
            del meta[label][random.randrange(len(meta[label]))]
        else:
            meta[label] += [_size(document, random)] * random.choice((1, 2, 60, 70))


def _change_dtype(document: Json, random: Random) -> None:
    random.choice(_metas(document))["dtype"] = random.choice((*range(-1, 40), *JUNK))


def _change_range(document: Json, random: Random) -> None:
    ranges = document["range_constraints"]
    bounds = ranges[random.choice(list(ranges))]
    bounds[random.choice(("min_val", "max_val"))] = random.choice((None, *INTEGERS))


def _change_argument(document: Json, random: Random) -> None:
    entry = random.choice(random.choice(_graph(document)["nodes"])["inputs"])
    names = list(_graph(document)["tensor_values"])
    number = random.choice(INTEGERS)
    entry["arg"] = random.choice(
        (
            {"as_int": number},
            {"as_float": random.choice((0.0, -1.0, 1e400, "NaN", "Infinity", number))},
            {"as_bool": random.choice((True, False, number))},
            {"as_none": True},
            {"as_string": random.choice(("", "mean", "x" * 5000, "constant"))},
            {"as_ints": [random.choice(INTEGERS)] * random.choice((0, 1, 2, 3, 100))},
            {"as_sym_ints": [{"as_int": number}] * random.choice((0, 1, 4))},
            {"as_tensor": {"name": random.choice(names)}},
            {"as_tensors": [{"name": random.choice(names)}] * random.choice((0, 1, 3, 200))},
            {"as_scalar_type": random.randrange(-1, 40)},
            {"as_device": {"type": "cuda", "index": number}},
        )
    )


def _change_integer_of_argument(document: Json, random: Random) -> None:
    node = random.choice(_graph(document)["nodes"])
    holder, key = random.choice(_tagged(node["inputs"], "as_int", "as_ints", "as_float"))
    value = random.choice(INTEGERS)
    if isinstance(holder[key], list):
        holder[key][random.randrange(len(holder[key]))] = value
    else:
        holder[key] = value


def _change_reference(document: Json, random: Random) -> None:
    holder, key = random.choice(_tagged(_graph(document)["nodes"], "name"))
    holder[key] = random.choice([*_graph(document)["tensor_values"], "nobody"])


def _change_target(document: Json, random: Random) -> None:
    from scheduler.lowering.ops import ROWS

    row = random.choice(ROWS)
    node = random.choice(_graph(document)["nodes"])
    node["target"] = "torch.ops." + random.choice(row.targets)
    if random.random() < 0.7:  # with arguments of its own names
        for entry in node["inputs"]:
            entry["name"] = ""


def _drop(document: Json, random: Random) -> None:
    nodes = _graph(document)["nodes"]
    lists = [nodes, random.choice(nodes)["inputs"], random.choice(nodes)["inputs"]]
    lists += [random.choice(nodes)["outputs"], _graph(document)["inputs"]]
    lists += [_graph(document)["outputs"], document["graph_module"]["signature"]["input_specs"]]
    chosen = random.choice(lists)
    del chosen[random.randrange(len(chosen))]


def _repeat(document: Json, random: Random) -> None:
    nodes = _graph(document)["nodes"]
    lists = [nodes, random.choice(nodes)["inputs"], random.choice(nodes)["outputs"]]
    lists += [_graph(document)["inputs"], _graph(document)["outputs"]]
    chosen = random.choice(lists)
    part = random.choice(chosen)
    chosen[:] = [*chosen, *([part] * random.choice((1, 1, 10, 300)))]


def _swap_nodes(document: Json, random: Random) -> None:
    nodes = _graph(document)["nodes"]
    one, two = random.randrange(len(nodes)), random.randrange(len(nodes))
    nodes[one], nodes[two] = nodes[two], nodes[one]


def _lengthen(document: Json, random: Random) -> None:
    """A node many times over, each reading the one before it."""
    graph = _graph(document)
    node = random.choice([n for n in graph["nodes"] if "as_tensor" in n["outputs"][0]])
    name = node["outputs"][0]["as_tensor"]["name"]
    before = name
    for number in range(random.choice((3, 30, 200))):
        copied = copy.deepcopy(node)
        own = f"{name}_{number}"
        copied["name"] = own
        copied["outputs"][0]["as_tensor"]["name"] = own
        for entry in copied["inputs"]:
            if "as_tensor" in entry["arg"]:
                entry["arg"] = {"as_tensor": {"name": before}}
                break
        graph["tensor_values"][own] = graph["tensor_values"][name]
        graph["nodes"].append(copied)
        before = own
    graph["outputs"].append({"as_tensor": {"name": before}})


def junk_anywhere(document: Json, random: Random) -> None:
    holder, key = random.choice(list(places(document)))
    holder[key] = random.choice((*JUNK, *INTEGERS))


def drop_anywhere(document: Json, random: Random) -> None:
    holder, key = random.choice(list(places(document)))
    del holder[key]


def nest(document: Json, random: Random) -> None:
    holder, key = random.choice(list(places(document)))
    for _ in range(random.choice((1, 20, 300))):
        holder[key] = [holder[key]] if random.random() < 0.5 else {"as_tensor": holder[key]}


_MUTATIONS: Mutations = {
    _change_size: 20,
    _change_every: 14,
    _change_every_symbol: 14,
    _swap_sizes: 8,
    _change_rank: 6,
    _change_dtype: 4,
    _change_range: 6,
    _change_argument: 8,
    _change_integer_of_argument: 12,
    _change_reference: 6,
    _change_target: 10,
    _drop: 8,
    _repeat: 6,
    _swap_nodes: 2,
    _lengthen: 4,
    junk_anywhere: 4,
    drop_anywhere: 3,
    nest: 1,
}
