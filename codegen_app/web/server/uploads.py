"""Uploaded files: their size is limited, and their names lead nowhere."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import TemporaryUploadedFile
from django.core.files.uploadhandler import (
    FileUploadHandler,
    StopUpload,
    TemporaryFileUploadHandler,
)

from codegen_app.web.server import bodies


class PlainTemporaryFileHandler(TemporaryFileUploadHandler):
    """Django's handler, without the end of the sender's file name in the temporary file's name: one
    of more than 255 characters is invalid."""

    def new_file(self, field_name: str, file_name: str, *args: Any, **kwargs: Any) -> None:
        """Start a file."""
        FileUploadHandler.new_file(self, field_name, file_name, *args, **kwargs)
        self.file = TemporaryUploadedFile("upload", self.content_type, 0, self.charset)
        self.file.name = file_name
        self._received = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a chunk, or stop if the file exceeds every limit."""
        self._received += len(raw_data)
        if self._received > max(bodies.upload_limits().values()):
            raise StopUpload(connection_reset=True)
        super().receive_data_chunk(raw_data, start)
