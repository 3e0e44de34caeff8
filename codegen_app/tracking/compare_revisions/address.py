"""Format sides for addresses and command lines."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

BRANCH, RUN, BASE, REVISION = "branch:", "run:", "base:", "revision:"


def revision_text(name: str) -> str:
    """Return a revision's text, with a prefix if its name could be read as another kind of side."""
    return f"{REVISION}{name}" if name.startswith((BRANCH, RUN, BASE, REVISION)) else name


def comparison_url(before: str, after: str, **others: object) -> str:
    """Return the address of a comparison; empty parameters are left out."""
    given = {"before": before, "after": after, **others}
    query = urlencode({name: value for name, value in given.items() if value})
    return f"{reverse('compare_revisions')}?{query}"
