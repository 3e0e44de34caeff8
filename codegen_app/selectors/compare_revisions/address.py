"""How a side is written in an address and on a command line."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

BRANCH, RUN, BASE, REVISION = "branch:", "run:", "base:", "revision:"


def revision_text(name: str) -> str:
    """A revision's text: with what says that it is one where its name begins as others do."""
    return f"{REVISION}{name}" if name.startswith((BRANCH, RUN, BASE, REVISION)) else name


def comparison_url(before: str, after: str, **others: object) -> str:
    """The address of a comparison; what is empty is left out."""
    given = {"before": before, "after": after, **others}
    query = urlencode({name: value for name, value in given.items() if value})
    return f"{reverse('compare_revisions')}?{query}"
