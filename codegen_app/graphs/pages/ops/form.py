"""The query string of the page of ops."""

from __future__ import annotations

from codegen_app.graphs.pages.ops.query import MADE_BY
from codegen_app.web.forms.query import OptionalChoiceField, QueryForm, Text


class OpsForm(QueryForm):
    """Words, how an op is computed (``by``), and whether only Core ATen is listed."""

    words = Text()
    by = OptionalChoiceField(MADE_BY)
    core = OptionalChoiceField(("only",))
