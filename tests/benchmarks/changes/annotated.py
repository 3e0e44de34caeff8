"""Series in which several people marked the changes, scored as the Turing benchmark does.

The places are compared with a margin of five values, and the beginning of a series counts as one
that everybody marks. Precision is the part of the places named that anybody marked, recall the mean
over people of the part of their places that were named, and F1 combines both for each series; the
mean over series is given (van den Burg and Williams, An Evaluation of Change Point Detection
Algorithms, 2020).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import numpy as np

from scheduler.stats.changes import find_changes
from scheduler.stats.reference import Array

MARGIN = 5


@dataclass(frozen=True)
class Annotated:
    """``places`` are those that each person marked: the first values of new levels."""

    name: str
    values: Array
    places: tuple[tuple[int, ...], ...]


@dataclass
class Score:
    n: int = 0
    f1s: list[float] = field(default_factory=list)
    f1s_of_none: list[float] = field(default_factory=list)
    precisions: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def f1(self) -> float:
        return fmean(self.f1s) if self.f1s else 0.0

    @property
    def f1_of_none(self) -> float:
        """F1 of a detector that never alarms."""
        return fmean(self.f1s_of_none)

    @property
    def precision(self) -> float:
        return fmean(self.precisions)

    @property
    def recall(self) -> float:
        return fmean(self.recalls)


def annotated(path: Path) -> Iterator[Annotated]:
    """Read series of a file: a list of objects with ``name``, ``values`` and ``places``."""
    for row in json.loads(path.read_text()):
        places = tuple(tuple(marked) for marked in row["places"])
        yield Annotated(row["name"], np.asarray(row["values"], dtype=np.float64), places)


def turing_series(checkout: Path) -> Iterator[Annotated]:
    """Read a checkout of the Turing Change Point Dataset: the series that it contains."""
    labels = checkout / "annotations.json"
    if not labels.exists():
        sys.exit(f"{labels}: no such file. Give the folder of a checkout of TCPD")
    annotations = json.loads(labels.read_text())
    for path in sorted((checkout / "datasets").glob("*/*.json")):
        row = json.loads(path.read_text())
        columns = [column["raw"] for column in row["series"]]
        values = np.asarray(columns[0] if len(columns) == 1 else [0.0], dtype=np.float64)
        places = tuple(tuple(marked) for marked in annotations[row["name"]].values())
        yield Annotated(row["name"], values[~np.isnan(values)], places)


def score_of(series: Iterable[Annotated]) -> Score:
    """Score the detector, which sees one value after the other."""
    score = Score()
    for one in series:
        if not (one.values > 0).all():
            score.left_out.append(one.name)
            continue
        named = [change.index for _, change in find_changes(one.values)]
        precision, recall, f1 = agreement(named, one.places)
        score.n += 1
        score.precisions.append(precision)
        score.recalls.append(recall)
        score.f1s.append(f1)
        score.f1s_of_none.append(agreement([], one.places)[2])
    return score


def agreement(named: Sequence[int], places: Sequence[Sequence[int]]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of one series."""
    found = {0, *named}
    by_person = [{0, *marked} for marked in places]
    anybody = set().union(*by_person)
    precision = len(_matched(anybody, found)) / len(found)
    recall = fmean(len(_matched(marked, found)) / len(marked) for marked in by_person)
    return precision, recall, 2 * precision * recall / (precision + recall)


def _matched(places: set[int], found: set[int]) -> set[int]:
    """Return the places near which one was found; each that was found counts for one."""
    remaining, matched = set(found), set()
    for place in sorted(places):
        near = min(remaining, key=lambda other: abs(other - place), default=None)
        if near is not None and abs(near - place) <= MARGIN:
            remaining.remove(near)
            matched.add(place)
    return matched
