"""Redaction of keys, passwords, and the passwords inside URLs."""

from __future__ import annotations

import re
from typing import Any

from django.views.debug import SafeExceptionReporterFilter

_URL_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")


class SecretsFilter(SafeExceptionReporterFilter):
    """Django's filter, extended to URLs such as ``redis://user:password@host``."""

    def cleanse_setting(self, key: Any, value: Any) -> Any:
        """Return the value with its secrets replaced."""
        cleansed = super().cleanse_setting(key, value)
        return redact_urls(str(cleansed)) if isinstance(cleansed, str) else cleansed


def redact_urls(text: str) -> str:
    """Return the text with user names and passwords in URLs replaced."""
    return _URL_CREDENTIALS.sub("***@", text)
