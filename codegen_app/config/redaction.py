"""What is never shown: keys, passwords, and the passwords inside addresses."""

from __future__ import annotations

import re
from typing import Any

from django.views.debug import SafeExceptionReporterFilter

_URL_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")


class SecretsFilter(SafeExceptionReporterFilter):
    """Django's, and addresses such as ``redis://user:password@host``."""

    def cleanse_setting(self, key: Any, value: Any) -> Any:
        """The value, its secrets replaced."""
        cleansed = super().cleanse_setting(key, value)
        return redact_urls(str(cleansed)) if isinstance(cleansed, str) else cleansed


def redact_urls(text: str) -> str:
    """The text, with user names and passwords in addresses replaced."""
    return _URL_CREDENTIALS.sub("***@", text)
