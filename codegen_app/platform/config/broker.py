"""The queue's transport: the application's database by default, Redis or RabbitMQ by URL."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from codegen_app.platform.broker import transport

DEFAULT: str = f"{transport.SCHEME}://localhost"
# A sender waits this long for an unavailable broker, not for ever; a worker waits without limit
# (settings.py).
TRANSPORT_OPTIONS = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2}


def checked_url(url: str) -> str:
    """Return the broker's URL; raises ``ImproperlyConfigured`` for one that loses messages."""
    scheme = url.partition(":")[0].partition("+")[0]
    if scheme in {"filesystem", "sqla", "sqlalchemy"}:
        raise ImproperlyConfigured(
            f"KILN_BROKER_URL={scheme}://: this broker loses messages; leave it empty for the"
            " database, or use redis:// or amqp://"
        )
    return url
