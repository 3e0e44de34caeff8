"""Django's settings of the artifact storage, from environment variables.

A folder unless ``KILN_STORAGE`` is ``s3``, or the path of a storage class.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from codegen_app.platform.config import env

_FOLDER = "django.core.files.storage.FileSystemStorage"
_S3 = "codegen_app.platform.s3_storage.BucketStorage"
_KEYS = "KILN_S3_ACCESS_KEY_ID", "KILN_S3_SECRET_ACCESS_KEY"
_PREFIX = "KILN_S3_"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|arn:[\w:/.-]+")
_LOCATION = re.compile(r"[\w.-]+(/[\w.-]+)*")


def artifacts(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the storage's class with its options. Raises ``ImproperlyConfigured`` with the
    variable that is wrong, missing, or unused."""
    backend = env.text("KILN_STORAGE", _FOLDER, environ)
    if backend == "s3":
        return {"BACKEND": _S3, "OPTIONS": _s3(environ)}
    if unused := sorted(name for name in environ if name.startswith(_PREFIX) and environ[name]):
        raise ImproperlyConfigured(f"{unused[0]} is set, KILN_STORAGE is not s3: set that, or drop")
    if "." not in backend:
        raise ImproperlyConfigured(
            f"KILN_STORAGE={backend!r} is neither s3 nor the path of a storage class"
        )
    return {"BACKEND": backend}


def _s3(environ: Mapping[str, str]) -> dict[str, Any]:
    if find_spec("storages") is None or find_spec("boto3") is None:
        raise ImproperlyConfigured("KILN_STORAGE=s3 needs the extra: pip install 'kiln[s3]'")
    bucket = env.text("KILN_S3_BUCKET", environ=environ)
    if not bucket:
        raise ImproperlyConfigured("KILN_STORAGE=s3 needs KILN_S3_BUCKET, the bucket's name")
    if not _BUCKET.fullmatch(bucket):
        raise ImproperlyConfigured(
            f"KILN_S3_BUCKET={bucket!r} is not a bucket name: 3 to 63 of a-z, 0-9, '.' and '-'"
        )
    prefix = env.text("KILN_S3_PREFIX", environ=environ).strip("/")
    if prefix and (not _LOCATION.fullmatch(prefix) or {".", ".."} & set(prefix.split("/"))):
        raise ImproperlyConfigured(f"KILN_S3_PREFIX={prefix!r} is not a prefix such as kiln/site")
    identity = env.text("KILN_S3_ACCESS_KEY_ID", environ=environ)
    secret = env.text("KILN_S3_SECRET_ACCESS_KEY", environ=environ)
    if bool(identity) != bool(secret):
        missing, present = _KEYS if not identity else reversed(_KEYS)
        raise ImproperlyConfigured(f"{present} is set, {missing} is not: set both, or neither")
    credentials = {}  # without Kiln's own, boto3 finds the machine's: AWS_…, a profile, a role
    if identity:
        session = env.text("KILN_S3_SESSION_TOKEN", environ=environ) or None
        credentials = {"access_key": identity, "secret_key": secret, "security_token": session}
    # The region as Amazon's own tools find it.
    region = env.text("AWS_REGION", env.text("AWS_DEFAULT_REGION", environ=environ), environ)
    return {
        "bucket_name": bucket,
        "location": prefix,
        "endpoint_url": env.site("KILN_S3_ENDPOINT", environ) or None,
        "region_name": env.text("KILN_S3_REGION", region, environ) or None,
        "addressing_style": env.choice("KILN_S3_ADDRESSING", ("auto", "path", "virtual"), environ),
        "signature_version": env.choice("KILN_S3_SIGNATURE", ("s3v4", "s3"), environ),
        "timeout_s": env.integer("KILN_S3_TIMEOUT_S", 10, minimum=1, environ=environ),
        **credentials,
    }
