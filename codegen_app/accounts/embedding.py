"""Access to pictures that other pages embed: the picture's URL contains a key.

Another site's page, and a forge's proxy that fetches its pictures, has no session here. The key is
for one series and opens only its pictures; a reader of the series' page can share it, as they could
the figures. It is derived from the site's secret and stored nowhere: changing ``SECRET_KEY``
revokes all keys.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare, salted_hmac

_DIGITS = 32


def series_key(series: int) -> str:
    """Return the key of a series' pictures."""
    digest = salted_hmac("kiln.embedded.series", str(series), algorithm="sha256")
    return digest.hexdigest()[:_DIGITS]


def has_series_key(request: HttpRequest, series: int) -> bool:
    """Return whether the URL has the series' key (``?key=``)."""
    key = request.GET.get("key", "")
    return key.isascii() and constant_time_compare(key, series_key(series))


def may_see(request: HttpRequest) -> bool:
    """Return whether a reader without a key may see them, as for any page."""
    return not settings.READ_NEEDS_LOGIN or request.user.is_authenticated
