"""Artifacts in a bucket of S3 or of what speaks its protocol (extra ``s3``, ADR 0032).

Every request has limits. What fails is a ``StorageAwayError`` with one line: work is put off, a
page says so and is asked for again. An object is there whole or not at all: S3 shows what is put
once all of it has arrived, in place of what was there. Nothing is public, and has no address.
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

from codegen_app.files import StorageAwayError

_ATTEMPTS = 3  # of a request, with growing pauses
_CONNECT_S = 5  # at most; less where the limit of an answer is less
_PING_TIMEOUT_S = 2  # of "does it answer?", which is asked once
_IN_MEMORY = 2 << 20  # bytes of an object that is read; a larger one lies in the temporary folder
_MULTIPART_BYTES = 64 << 20  # bytes; what is smaller is put by one request
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
    "InvalidAccessKeyId": ": nobody has that key",
    "SignatureDoesNotMatch": ": the secret is another, or KILN_S3_SIGNATURE",
}
_REGION_CODES = {
    "301",
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
}


class BucketStorage(S3Storage):  # type: ignore[misc]
    """A bucket, or a prefix of one. ``timeout_s``: seconds without a byte of an answer."""

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

        self._asking = limits(min(_PING_TIMEOUT_S, timeout_s), 1)
        self._making = threading.Lock()
        super().__init__(
            client_config=limits(timeout_s, _ATTEMPTS),
            # Without threads of its own: a request's are bounded by the web server.
            transfer_config=TransferConfig(
                use_threads=False,
                multipart_threshold=_MULTIPART_BYTES,
                multipart_chunksize=_PART_BYTES,
                num_download_attempts=_ATTEMPTS,
            ),
            default_acl=None,
            file_overwrite=True,  # by the same content: names are digests
            gzip=False,
            # Said for all: else names that end in .gz are told to browsers, and to gateways that
            # take it for theirs to unpack.
            object_parameters={"ContentType": "application/octet-stream"},
            **options,
        )

    # One session for all threads: each has the descriptions of all of S3's requests.
    @cached_property
    def _session(self) -> Any:
        return super()._create_session()

    def _create_session(self) -> Any:
        return self._session

    @property
    def connection(self) -> Any:
        """This thread's own; a session makes one at a time."""
        with self._making:
            return super().connection

    @property
    def bucket(self) -> Any:
        """By this thread's connection."""
        return self.connection.Bucket(self.bucket_name)

    @cached_property
    def _asker(self) -> Any:
        with self._making:
            options = {"region_name": self.region_name, "endpoint_url": self.endpoint_url}
            return self._session.client("s3", config=self._asking, **options)

    def ask(self) -> None:
        """Return where the bucket answers; within seconds, of any thread."""
        with self._faults("the bucket", bucket=True):
            self._asker.head_bucket(Bucket=self.bucket_name)

    def attempt(self) -> None:
        """Put, list, read and delete an object of its own: everything that is needed."""
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
        """All of the object; ``FileNotFoundError`` where there is none."""
        if mode != "rb":
            raise ValueError(f"objects are read, or put whole: mode {mode!r} is neither")
        content = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - the caller's
        try:
            with self._faults(name):
                found = self.bucket.Object(self._normalize_name(name))
                found.download_fileobj(content, Config=self.transfer_config)
        except BaseException:
            content.close()
            raise
        content.seek(0)
        return File(cast("Any", content), name)

    def _save(self, name: str, content: File[bytes]) -> str:
        with self._faults(name, bucket=True):
            return cast("str", super()._save(name, content))

    def delete(self, name: str) -> None:
        """Remove the object, if it is there."""
        with self._faults(name, bucket=True):
            super().delete(name)

    def exists(self, name: str) -> bool:
        """Whether the object is there."""
        with self._faults(name, bucket=True):
            return cast("bool", super().exists(name))

    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        """Folders and files, as folders of a disk have them."""
        with self._faults(name, bucket=True):
            return cast("tuple[list[str], list[str]]", super().listdir(name))

    def get_modified_time(self, name: str) -> datetime:
        """When the object was put; ``FileNotFoundError`` where there is none."""
        with self._faults(name):
            return cast("datetime", super().get_modified_time(name))

    def url(self, *_: Any, **__: Any) -> str:
        """None: artifacts are handed out by pages, to who may read them."""
        raise ValueError("artifacts have no addresses")

    def unfinished(self, before: datetime) -> list[tuple[str, str]]:
        """Key and id of uploads of many parts that were begun before then and are not done: nobody
        sees them, and they take room."""
        with self._faults("unfinished uploads", bucket=True):
            client = self.connection.meta.client
            pages = client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self.bucket_name, Prefix=f"{self.location}/" if self.location else ""
            )
            return [
                (one["Key"], one["UploadId"])
                for page in pages
                for one in page.get("Uploads", ())
                if one["Initiated"] < before
            ]

    def abort(self, key: str, upload: str) -> None:
        """Give up one of them."""
        with self._faults("an unfinished upload", bucket=True):
            self.connection.meta.client.abort_multipart_upload(
                Bucket=self.bucket_name, Key=key, UploadId=upload
            )

    @contextmanager
    def _faults(self, name: str, *, bucket: bool = False) -> Iterator[None]:
        """Errors in our words; ``bucket``: what is missing can only be the bucket."""
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
            self.ask()  # a bucket that is gone has lost nothing of what is looked for in it
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
