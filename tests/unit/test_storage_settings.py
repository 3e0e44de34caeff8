"""Where artifacts are is said by variables; each that is wrong stops the start with its name."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from codegen_app.platform.config import storage

S3 = {"KILN_STORAGE": "s3", "KILN_S3_BUCKET": "kiln"}


def test_a_folder_is_the_default_and_a_class_is_taken_by_its_path() -> None:
    assert storage.artifacts({})["BACKEND"].endswith("FileSystemStorage")
    assert storage.artifacts({"KILN_STORAGE": "a.package.Class"}) == {"BACKEND": "a.package.Class"}


def test_s3_by_its_short_name() -> None:
    made = storage.artifacts(
        S3
        | {
            "KILN_S3_ENDPOINT": "https://s3.example:9000/",
            "KILN_S3_PREFIX": "/teams/kernels/",
            "KILN_S3_ACCESS_KEY_ID": "key",
            "KILN_S3_SECRET_ACCESS_KEY": "secret",
            "KILN_S3_ADDRESSING": "path",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_SESSION_TOKEN": "of another key",
        }
    )
    assert made["BACKEND"] == "codegen_app.platform.s3_storage.BucketStorage"
    assert made["OPTIONS"] == {
        "bucket_name": "kiln",
        "location": "teams/kernels",
        "endpoint_url": "https://s3.example:9000",
        "region_name": "eu-west-1",
        "addressing_style": "path",
        "signature_version": "s3v4",
        "timeout_s": 10,
        "access_key": "key",
        "secret_key": "secret",
        "security_token": None,
    }


def test_without_keys_of_kilns_own_boto3_looks_for_the_machines() -> None:
    assert "access_key" not in storage.artifacts(S3)["OPTIONS"]


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"KILN_STORAGE": "s3"}, "needs KILN_S3_BUCKET"),
        (S3 | {"KILN_S3_BUCKET": "My Bucket"}, "KILN_S3_BUCKET='My Bucket' is not a bucket name"),
        (S3 | {"KILN_S3_PREFIX": "a/../b"}, "KILN_S3_PREFIX"),
        (S3 | {"KILN_S3_ENDPOINT": "s3.example"}, "KILN_S3_ENDPOINT"),
        (S3 | {"KILN_S3_ADDRESSING": "dns"}, "KILN_S3_ADDRESSING"),
        (S3 | {"KILN_S3_SIGNATURE": "v4"}, "KILN_S3_SIGNATURE"),
        (S3 | {"KILN_S3_TIMEOUT_S": "0"}, "KILN_S3_TIMEOUT_S"),
        (S3 | {"KILN_S3_ACCESS_KEY_ID": "key"}, "KILN_S3_SECRET_ACCESS_KEY is not: set both"),
        (S3 | {"KILN_S3_SECRET_ACCESS_KEY": "k"}, "KILN_S3_ACCESS_KEY_ID is not: set both"),
        ({"KILN_S3_BUCKET": "kiln"}, "KILN_STORAGE is not s3"),
        ({"KILN_STORAGE": "S4"}, "KILN_STORAGE='S4' is neither s3 nor the path"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, str], line: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        storage.artifacts(wrong)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_secret_is_in_no_line() -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        storage.artifacts(S3 | {"KILN_S3_SECRET_ACCESS_KEY": "very secret"})
    assert "very secret" not in str(caught.value)


def test_without_the_extra_the_start_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "find_spec", lambda _: None)
    with pytest.raises(ImproperlyConfigured, match=r"kiln\[s3\]"):
        storage.artifacts(S3)
