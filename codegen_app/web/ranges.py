"""Responses with a file, or the part that a ``Range`` requests (RFC 9110): downloads can resume."""

from __future__ import annotations

import io
import re
from typing import IO

from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class FilePart:
    """The bytes of an open file from ``start`` to before ``end``, as a file; closes the underlying
    file."""

    def __init__(self, file: IO[bytes], start: int, end: int) -> None:
        self._file, self._start, self._end = file, start, end
        file.seek(start)

    def read(self, count: int = -1) -> bytes:
        """Read at most ``count`` bytes."""
        left = self._end - self._file.tell()
        return self._file.read(left if count < 0 else min(count, left))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Seek to a position in the part."""
        base = {io.SEEK_SET: self._start, io.SEEK_CUR: self._file.tell(), io.SEEK_END: self._end}
        place = min(max(base[whence] + offset, self._start), self._end)
        return self._file.seek(place) - self._start

    def tell(self) -> int:
        """Return the position of the next byte in the part."""
        return self._file.tell() - self._start

    def seekable(self) -> bool:
        """Always true."""
        return True

    def close(self) -> None:
        self._file.close()


def file_response(
    request: HttpRequest, file: IO[bytes], size: int, digest: str, filename: str
) -> HttpResponseBase:
    """Return the file as a download, or the one requested range; closes it.

    ``digest`` (sha256) tells a client whether the rest still belongs to the same file.
    """
    etag = f'"{digest}"'
    start, end = 0, size
    requested = _RANGE.fullmatch(request.headers.get("Range", ""))
    if requested and request.headers.get("If-Range", etag) == etag and any(requested.groups()):
        first, last = requested.groups()
        if not first:  # the last bytes
            start = max(0, size - int(last))
        else:
            start, end = int(first), min(int(last) + 1, size) if last else size
        if start >= end:
            file.close()
            headers = {"Content-Range": f"bytes */{size}"}
            return HttpResponse(status=416, headers=headers)
    is_whole = (start, end) == (0, size)
    response = FileResponse(
        FilePart(file, start, end),  # the file interface that servers use
        as_attachment=True,
        filename=filename,
        status=200 if is_whole else 206,
    )
    response.headers["Accept-Ranges"] = "bytes"
    response.headers["ETag"] = etag
    if not is_whole:
        response.headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return response
