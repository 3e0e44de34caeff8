"""Artifacts in a bucket of S3 or a compatible service (extra ``s3``, ADR 0032).

Every request has limits. A failure is a ``StorageAwayError`` with one line: work is postponed, and
a page reports it. Objects are atomic: S3 shows a new object once all of it has arrived, in place of
the old one. Nothing is public or has a URL.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from tempfile import SpooledTemporaryFile
from typing import Any, NoReturn, cast

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from django.core.files.base import ContentFile, File
from django.utils import timezone
from s3transfer.exceptions import RetriesExceededError
from storages.backends.s3 import S3Storage
from urllib3.exceptions import HTTPError

from codegen_app.platform.files import StorageAwayError

_ATTEMPTS = 3  # per request, with growing pauses
_CONNECT_S = 5  # at most; less if the response's limit is less
_PING_TIMEOUT_S = 2  # of a ping, which is not retried
_IN_MEMORY = 2 << 20  # bytes of an object being read; larger ones are in the temporary folder
_MULTIPART_BYTES = 64 << 20  # bytes; smaller objects need one request
_PART_BYTES = 32 << 20
_CONNECTION_ERRORS = (
    BotoCoreError,
    Boto3Error,
    RetriesExceededError,
    HTTPError,
    ConnectionError,
    TimeoutError,
)
_NOT_FOUND_CODES = {"404", "NoSuchKey", "NotFound"}
_DENIED_CODES = {
    "401": "",
    "403": "",
    "AccessDenied": "",
    "AllAccessDisabled": "",
    "ExpiredToken": ": they have run out",
    "InvalidAccessKeyId": ": unknown access key",
    "SignatureDoesNotMatch": ": the secret is another, or KILN_S3_SIGNATURE",
}
_REGION_CODES = {
    "301",
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
}


class BucketStorage(S3Storage):  # type: ignore[misc]
    """A bucket, or a prefix of one. ``timeout_s``: seconds without a byte of the response."""

    def __init__(self, *, timeout_s: int, **options: Any) -> None:
        style, signature = options.pop("addressing_style"), options.pop("signature_version")

        def limits(seconds: float, attempts: int) -> Config:
            return Config(
                connect_timeout=min(seconds, _CONNECT_S),
                read_timeout=seconds,
                retries={"mode": "standard", "total_max_attempts": attempts},
                signature_version=signature,
                s3={"addressing_style": style},
                tcp_keepalive=True,
            )

        self._ping_config = limits(min(_PING_TIMEOUT_S, timeout_s), 1)
        self._session_lock = threading.Lock()
        super().__init__(
            client_config=limits(timeout_s, _ATTEMPTS),
            # Without its own threads: a request's threads are limited by the web server.
            transfer_config=TransferConfig(
                use_threads=False,
                multipart_threshold=_MULTIPART_BYTES,
                multipart_chunksize=_PART_BYTES,
                num_download_attempts=_ATTEMPTS,
            ),
            default_acl=None,
            file_overwrite=True,  # with the same content: names are digests
            gzip=False,
            # The same for all: otherwise browsers are told about names that end in .gz, and so are
            # gateways that would decompress them.
            object_parameters={"ContentType": "application/octet-stream"},
            **options,
        )

    # One session for all threads: each has the descriptions of all S3 requests.
    @cached_property
    def _session(self) -> Any:
        return super()._create_session()

    def _create_session(self) -> Any:
        return self._session

    @property
    def connection(self) -> Any:
        """This thread's connection; a session creates one at a time."""
        with self._session_lock:
            return super().connection

    @property
    def bucket(self) -> Any:
        """The bucket through this thread's connection."""
        return self.connection.Bucket(self.bucket_name)

    @cached_property
    def _ping_client(self) -> Any:
        with self._session_lock:
            options = {"region_name": self.region_name, "endpoint_url": self.endpoint_url}
            return self._session.client("s3", config=self._ping_config, **options)

    def ask(self) -> None:
        """Return if the bucket answers; within seconds, from any thread."""
        with self._faults("the bucket", bucket=True):
            self._ping_client.head_bucket(Bucket=self.bucket_name)

    def attempt(self) -> None:
        """Put, list, read and delete a test object: all required operations."""
        name = f"check/{uuid.uuid4().hex}"
        self.ask()
        self.save(name, ContentFile(b"by kiln manage check --deploy"))
        try:
            self.listdir("check")
            self.open(name).close()
        finally:
            self.delete(name)
        self.unfinished(timezone.now())

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        """Return the whole object; ``FileNotFoundError`` if there is none."""
        if mode != "rb":
            raise ValueError(f"objects are read, or put whole: mode {mode!r} is neither")
        content = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - the caller's
        try:
            with self._faults(name):
                s3_object = self.bucket.Object(self._normalize_name(name))
                s3_object.download_fileobj(content, Config=self.transfer_config)
        except BaseException:
            content.close()
            raise
        content.seek(0)
        return File(cast("Any", content), name)

    def _save(self, name: str, content: File[bytes]) -> str:
        with self._faults(name, bucket=True):
            return cast("str", super()._save(name, content))

    def delete(self, name: str) -> None:
        """Delete the object if it exists."""
        with self._faults(name, bucket=True):
            super().delete(name)

    def exists(self, name: str) -> bool:
        """Return whether the object exists."""
        with self._faults(name, bucket=True):
            return cast("bool", super().exists(name))

    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        """Return folders and files, as for folders of a disk."""
        with self._faults(name, bucket=True):
            return cast("tuple[list[str], list[str]]", super().listdir(name))

    def get_modified_time(self, name: str) -> datetime:
        """Return when the object was put; ``FileNotFoundError`` if there is none."""
        with self._faults(name):
            return cast("datetime", super().get_modified_time(name))

    def url(self, *_: Any, **__: Any) -> str:
        """Raise: there are no URLs, since views serve artifacts to those who may read them."""
        raise ValueError("artifacts have no addresses")

    def unfinished(self, before: datetime) -> list[tuple[str, str]]:
        """Return key and id of multipart uploads that began before then and are unfinished: they
        are invisible, and take room."""
        with self._faults("unfinished uploads", bucket=True):
            client = self.connection.meta.client
            pages = client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self.bucket_name, Prefix=f"{self.location}/" if self.location else ""
            )
            return [
                (upload["Key"], upload["UploadId"])
                for page in pages
                for upload in page.get("Uploads", ())
                if upload["Initiated"] < before
            ]

    def abort(self, key: str, upload: str) -> None:
        """Abort a multipart upload."""
        with self._faults("an unfinished upload", bucket=True):
            self.connection.meta.client.abort_multipart_upload(
                Bucket=self.bucket_name, Key=key, UploadId=upload
            )

    @contextmanager
    def _faults(self, name: str, *, bucket: bool = False) -> Iterator[None]:
        """Translate errors into our own; ``bucket``: only the bucket itself can be missing."""
        try:
            yield
        except ClientError as error:
            self._raise(error, name, bucket=bucket)
        except (NoCredentialsError, PartialCredentialsError):
            raise StorageAwayError(
                "S3 asks for credentials: set KILN_S3_ACCESS_KEY_ID and KILN_S3_SECRET_ACCESS_KEY,"
                " AWS's own variables, or give the machine a role"
            ) from None
        except _CONNECTION_ERRORS as error:
            raise StorageAwayError(f"S3 does not answer ({self._place}): {error}") from error

    @property
    def _place(self) -> str:
        return f"the bucket {self.bucket_name}"

    def _raise(self, error: ClientError, name: str, *, bucket: bool) -> NoReturn:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _NOT_FOUND_CODES and not bucket:
            self.ask()  # if the bucket is gone, the object is not lost
            raise FileNotFoundError(f"{name} is not in the bucket {self.bucket_name}") from None
        if code in _NOT_FOUND_CODES or code == "NoSuchBucket":
            line = f"there is no bucket {self.bucket_name}: make it, or mend KILN_S3_BUCKET"
        elif code in _DENIED_CODES:
            line = (
                f"S3 refuses {error.operation_name} in {self._place} ({code}): look at the"
                f" credentials and what they permit{_DENIED_CODES[code]}"
            )
        elif code in _REGION_CODES:
            line = f"{self._place} is in another region: mend KILN_S3_REGION or KILN_S3_ENDPOINT"
        elif code == "RequestTimeTooSkewed":
            line = "S3 refuses this machine's clock: set it right"
        else:
            detail = error.response.get("Error", {}).get("Message", "")
            line = f"S3 failed at {error.operation_name} in {self._place}: {code} {detail}"
        raise StorageAwayError(line) from error
