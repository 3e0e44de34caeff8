"""Refuses a file by its first bytes, before the rest of it is sent."""

from __future__ import annotations

import re

from django.urls import reverse
from waitress.utilities import BadRequest

from scheduler.frontends.file_kinds import Use
from scheduler.frontends.recognition import recognize_beginning
from scheduler.text import one_line

CHECKED_BYTES = 32 * 1024  # of a body
_MIN_BYTES = 1024  # of the file
_FILE_PART = re.compile(rb'filename="([^"\r\n]*)"[^\0]*?\r\n\r\n')


class UnsupportedFile(BadRequest):  # type: ignore[misc]
    """A file that cannot be imported."""

    code = 415
    reason = "Unsupported Media Type"


def check_upload(path: str, beginning: bytes) -> UnsupportedFile | None:
    """Return an error if the body that begins so has a file that the import page cannot import.
    Most bodies are accepted: the end of an archive or a text may be needed."""
    part = _FILE_PART.search(beginning) if path == reverse("import") else None
    if part is None:
        return None
    head = beginning[part.end() :]
    if len(head) < _MIN_BYTES:
        return None
    name = one_line(part[1].decode(errors="replace"), 120)
    recognition = recognize_beginning(name, head)
    if recognition is None or recognition.use is not Use.NONE:
        return None
    return UnsupportedFile(f"{name}: this is {recognition.title}. {recognition.advice}")
