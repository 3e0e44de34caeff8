"""A little of ``python -m tests.attacks.strings``: hostile text in models' files and in bundles."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest

from tests.attacks.strings import TEXTS, Counts, Files, attack_bundle, attack_models, places
from tests.support import exported


@pytest.mark.full
def test_no_text_of_a_file_becomes_code(tmp_path: Path) -> None:
    counts = Counts()
    turn = cycle(TEXTS)
    files = Files(tmp_path, counts, print)
    attack_models(
        files,
        exported.MODELS,
        lambda what, count: range(len(what) % 7 * 10, count, 200),
        lambda: [next(turn) for _ in range(3)],
    )
    assert counts.through == []
    assert min(counts.refused, counts.accepted, counts.kernels) >= 10


def test_no_text_of_a_bundle_becomes_code(tmp_path: Path) -> None:
    counts = Counts()
    turn = cycle(TEXTS)
    attack_bundle(
        tmp_path,
        counts,
        print,
        lambda what, count: range(len(what) % 7, count, 40),
        lambda: [next(turn) for _ in range(5)],
    )
    assert counts.through == []
    assert counts.refused > 5


def test_every_string_of_a_document_is_a_place() -> None:
    assert list(places({"a": ["b", {"c": "d"}], "e": 1})) == [
        ("a", "\0key"),
        ("a", 0),
        ("a", 1, "c", "\0key"),
        ("a", 1, "c"),
        ("e", "\0key"),
    ]
