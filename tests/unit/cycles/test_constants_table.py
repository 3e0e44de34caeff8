"""docs/model.md ends with the model's constants as they are."""

from __future__ import annotations

import re

from scheduler.cycles.constants_table import (
    DOCUMENT,
    ESTIMATE,
    MEANINGS,
    constant_rows,
    update_document,
)
from scheduler.targets import cycle_model


def test_the_table_is_current() -> None:
    document = DOCUMENT.read_text()
    assert document == update_document(document), "run python -m scheduler.cycles.constants_table"


def test_each_constant_is_explained_and_has_a_named_source_or_says_that_it_has_none() -> None:
    assert {name for name, _, _ in constant_rows()} == set(MEANINGS)
    listed = re.findall(r"\*([^*]+)\*:?", cycle_model.__doc__ or "")
    named = {name.replace("CDNA 2/3/4 ", "") for name in listed}
    for name, _, constant in constant_rows():
        assert constant.unit, name
        is_estimate = constant.source.startswith(ESTIMATE)
        assert is_estimate or any(source in constant.source for source in named), name
