"""The query string of the page of ops."""

from __future__ import annotations

from codegen_app.forms.query import OptionalChoiceField, QueryForm, Text
from codegen_app.selectors.pages.ops import MADE_BY


class OpsForm(QueryForm):
    """Words, how an op is computed (``by``), and whether only Core ATen is listed."""

    words = Text()
    by = OptionalChoiceField(MADE_BY)
    core = OptionalChoiceField(("only",))
