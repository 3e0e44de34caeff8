"""A site of three pages for tests of the web server, without a database."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

import django
from django.conf import settings

# Pages of errors name static files, which nobody has collected here.
_PLAIN = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
settings.STORAGES = {**settings.STORAGES, "staticfiles": _PLAIN}
django.setup()  # which addresses take files is asked of the application's own

from codegen_app.web.ranges import FilePart  # noqa: E402 - needs the settings


def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    """``/large`` is 8 MiB, ``/file`` the same as a file, ``/part`` a part of one; the rest says how
    much was sent to it."""
    path = environ["PATH_INFO"]
    if path in ("/large", "/file"):
        start("200 OK", [("Content-Length", str(8 << 20))])
        if path == "/file":
            answer: Iterable[bytes] = environ["wsgi.file_wrapper"](io.BytesIO(bytes(8 << 20)))
            return answer
        return [bytes(8 << 20)]
    if path == "/part":
        part = FilePart(io.BytesIO(bytes(range(256)) * 4096), 300, 1_000_000)
        start("206 Partial Content", [("Content-Length", str(1_000_000 - 300))])
        rest: Iterable[bytes] = environ["wsgi.file_wrapper"](part)
        return rest
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    text = f"{len(body)} bytes".encode()
    start("200 OK", [("Content-Length", str(len(text)))])
    return [text]
