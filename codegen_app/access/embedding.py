"""Who sees the pictures that other pages embed: whoever has the picture's address with its key.

A page elsewhere, and the proxy of a forge that fetches its pictures, has no session here. The key
is of one series alone and opens nothing but its pictures; who reads the series' page can give it
away, as they could the figures. It is derived from the site's secret and stored nowhere: changing
``SECRET_KEY`` takes all of them back.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare, salted_hmac

_DIGITS = 32


def series_key(series: int) -> str:
    """The key of a series' pictures."""
    of = salted_hmac("kiln.embedded.series", str(series), algorithm="sha256")
    return of.hexdigest()[:_DIGITS]


def has_series_key(request: HttpRequest, series: int) -> bool:
    """Whether the address has the series' key (``?key=``)."""
    given = request.GET.get("key", "")
    return given.isascii() and constant_time_compare(given, series_key(series))


def may_see(request: HttpRequest) -> bool:
    """Whether a reader without a key may, as for any page."""
    return not settings.READ_NEEDS_LOGIN or request.user.is_authenticated
