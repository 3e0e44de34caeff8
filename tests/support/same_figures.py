"""Figures of the same thing on several pages, collected from the JSON views: a page that is added
takes part by itself.

What a figure is of is known by the address in its row (``url``) or by the graph and the bucket of
the rows around it; a figure is known by its name. Pages that give a figure another name, or another
figure the same name, differ from the others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_ADDRESS = re.compile(r"/(alerts|changes|graphs|kernels|nodes|runs|series)/([\w-]+)(?:[?#].*)?")

#: Figures by what they are of.
FIGURES: Mapping[str, frozenset[str]] = {
    "alerts": frozenset({"state", "cause", "generated", "n_series", "recovered_at"}),
    "changes": frozenset(
        {"before", "after", "ratio", "low", "high", "n_before", "n_after", "cause", "withdrawn"}
    ),
    "graphs": frozenset({"state", "measured", "total_ns", "samples"}),
    "kernels": frozenset({"rank", "total_ns", "share", "least_ns", "roofline", "bound"}),
    "launches": frozenset({"least_ns", "roofline", "bound"}),
    "nodes": frozenset({"median_ns", "share", "least_ns"}),
    "runs": frozenset({"state", "progress", "share"}),
    "series": frozenset({"points", "suspected_n", "suspected_ratio", "generated", "emulated"}),
}
#: Figures of the largest change of an alert.
LARGEST_CHANGE = frozenset({"ratio", "low", "high", "n_before", "n_after", "worse"})
#: Figures of a measurement.
MEASURED = frozenset({"median_ns", "low_ns", "high_ns", "n", "bounds", "metrics"})
#: Figures that depend on the bucket of their times.
_TIMED = {"graphs", "kernels", "nodes"}


@dataclass(frozen=True)
class Figure:
    """A figure's name and what it is of: the address of that, and graph and bucket of its time."""

    of: str
    name: str
    graph: str = ""
    bucket: str = ""


@dataclass(frozen=True)
class _Around:
    """What the rows around a row say of it; ``device``: device, target and sizes of its times."""

    graph: str = ""
    bucket: str = ""
    device: str = ""
    kernel: str = ""


@dataclass
class SameFigures:
    """The values of each figure, each with the pages where it stands."""

    values: dict[Figure, dict[Any, list[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, address: str, view: Any) -> None:
        """Add the figures of a page's JSON view."""
        for figure, value in _figures(view, _Around()):
            self.values[figure][_comparable(value)].append(address)

    @property
    def shared(self) -> dict[Figure, dict[Any, list[str]]]:
        """The figures that stand on more than one page."""
        return {
            figure: values
            for figure, values in self.values.items()
            if len({page for pages in values.values() for page in pages}) > 1
        }

    @property
    def contradictions(self) -> list[str]:
        """The figures with more than one value, a line each."""
        return [
            f"{figure}: { ({value: sorted(set(pages))[:3] for value, pages in values.items()}) }"
            for figure, values in self.values.items()
            if len(values) > 1
        ]


def _figures(view: Any, around: _Around) -> Iterator[tuple[Figure, Any]]:
    if isinstance(view, list):
        for row in view:
            yield from _figures(row, around)
    if not isinstance(view, dict):
        return
    around = _of_row(view, around)
    match = _ADDRESS.fullmatch(str(view.get("url", "")))
    if match is not None:
        kind, key = match.groups()
        where = (around.graph, around.bucket) if kind in _TIMED else ("", "")
        if kind == "kernels" and "calls" not in view:  # of one launch, in any graph
            kind, where = "launches", ("", around.device)
        for name in FIGURES[kind] & view.keys():
            yield Figure(f"{kind}/{key}", name, *where), view[name]
    if match is not None and match[1] == "alerts" and isinstance(worst := view.get("worst"), dict):
        for name in LARGEST_CHANGE & worst.keys():
            yield Figure(f"alerts/{match[2]}", f"worst {name}"), worst[name]
    if view.get("median_ns") is not None and around.kernel and {"n", "bounds"} & view.keys():
        figures = {name: view[name] for name in MEASURED & view.keys()}
        if "metrics" in view:
            figures["n"] = view["metrics"]["time"]["n"]
        for name, value in figures.items():
            yield Figure(f"kernels/{around.kernel}", name, bucket=around.device), value
    for value in view.values():
        yield from _figures(value, around)


def _of_row(row: Mapping[str, Any], around: _Around) -> _Around:
    ranking = row.get("ranking") or row
    bucket = ranking.get("bucket", row.get("bucket"))
    if isinstance(bucket, dict):
        around = replace(around, bucket=bucket["name"], device=_device(**bucket))
    if "kernels" in ranking and "graph" in ranking:
        around = replace(around, graph=str(ranking["graph"]))
    if graph := _ADDRESS.fullmatch(str(row.get("graph_url", ""))):
        around = replace(around, graph=graph[2])
    match = _ADDRESS.fullmatch(str(row.get("url", "")))
    kernel = row.get("kernel") or (match[2] if match and match[1] == "kernels" else "")
    if isinstance(kernel, str) and kernel:
        around = replace(around, kernel=kernel)
    device = row.get("device_name") or row.get("device")
    if device and "target" in row and isinstance(sizes := row.get("bindings"), dict):
        around = replace(around, device=_device(device, row["target"], sizes))
    return around


def _device(device_name: str, target: str, bindings: Mapping[str, int], **_: Any) -> str:
    return f"{device_name}, {target}, {sorted(bindings.items())}"


def _comparable(value: Any) -> Any:
    """Return a hashable value; sums of floats in another order differ in their last digits."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return tuple((key, _comparable(value[key])) for key in sorted(value))
    return tuple(map(_comparable, value)) if isinstance(value, list) else value
