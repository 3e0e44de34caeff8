"""Addresses of the site's pages, where no request says what the site is called."""

from __future__ import annotations

from django.conf import settings


def absolute(path: str) -> str:
    """The page's whole address; its path alone where ``KILN_SITE_URL`` is not set."""
    return f"{settings.SITE_URL}{path}"
