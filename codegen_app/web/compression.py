"""Compression of text responses for clients that accept it, for cached pages and others.

Where a response's length could reveal a secret in it (BREACH): a form's token is masked anew for
each response, pages are requested with cookies from this site alone (``SameSite=Lax``), and a
constant secret is marked by its template (``secret``) and not compressed. docs/threat-model.md has
the reasons.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

from codegen_app.web.pagecache import compressed
from codegen_app.web.pagecache.compressed import Part

MIN_BYTES = 512  # below, the headers are longer than the saving
_KINDS = (
    *("text/", "application/json", "application/jsonl"),
    *("application/problem+json", "application/atom+xml", "image/svg+xml"),
)


class CompressionMiddleware:
    """Compresses complete, uncompressed text. Streams and ranges of files stay as they are: they
    are downloads, mostly code objects or archives."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if (
            response.streaming
            or response.has_header("Content-Encoding")
            or response.has_header("Content-Range")
            or not response.headers.get("Content-Type", "").startswith(_KINDS)
        ):
            return response
        patch_vary_headers(response, ("Accept-Encoding",))
        accepted = request.headers.get("Accept-Encoding", "")
        if len(response.content) < MIN_BYTES or not compressed.takes_gzip(accepted):
            response.content = compressed.strip_marks(response.content)
        else:
            response.content = compressed.join_gzip((Part.of(response.content),), ())
            response.headers["Content-Encoding"] = "gzip"
            etag = response.headers.get("ETag", "")
            if etag.startswith('"'):
                response.headers["ETag"] = f"W/{etag}"  # the same page in other bytes
        if response.has_header("Content-Length"):
            response.headers["Content-Length"] = str(len(response.content))
        return response
