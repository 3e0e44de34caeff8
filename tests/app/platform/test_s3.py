"""Artifacts in a bucket of a real S3 server: what holds of them in a folder holds there, and what
is away is neither missing nor lost."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from django.core.files.storage import default_storage, storages
from django.test import Client

from codegen_app.platform import artifacts, files, readiness
from codegen_app.platform.config import storage
from codegen_app.platform.files import StorageAwayError
from codegen_app.platform.models import Artifact
from codegen_app.site import retention
from tests.app.installations import BROKER, Installation
from tests.app.processes import worker_environment
from tests.support.pages_world import World
from tests.support.patience import PATIENCE_S
from tests.support.s3_server import BUCKET, S3Server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One for all tests: it takes seconds to start."""
    made = S3Server(tmp_path_factory.mktemp("s3"))
    yield made
    made.kill()


@pytest.fixture
def server(process: S3Server) -> S3Server:
    """A server with an empty bucket."""
    process.start_empty()
    process.make_bucket()
    return process


@pytest.fixture
def bucket(server: S3Server, settings: Any) -> S3Server:
    """Where artifacts of this process are."""
    settings.STORAGES = {
        **settings.STORAGES,
        "default": storage.artifacts(server.environment()),
    }
    return server


def key(artifact: Artifact) -> str:
    return f"site/one/{artifact.path}"


def test_an_artifact_is_one_private_object_of_its_content(bucket: S3Server) -> None:
    listing = b"\tv_add_f32 v0, v1, v2\n" * 5000
    kept = artifacts.store(listing, ".s")
    assert artifacts.store(listing, ".s") == kept
    assert bucket.names() == {key(kept)}
    assert artifacts.read(kept) == listing
    found = bucket.client().head_object(Bucket=BUCKET, Key=key(kept))
    assert found["ContentType"] == "application/octet-stream"
    assert found.get("ContentEncoding", "") in {"", "aws-chunked"}, "no gateway may unpack it"
    assert found["ContentLength"] < len(listing) / 50
    grants = bucket.client().get_object_acl(Bucket=BUCKET, Key=key(kept))["Grants"]
    assert [one["Grantee"]["Type"] for one in grants] == ["CanonicalUser"], "its owner alone"
    with pytest.raises(ValueError, match="no addresses"):
        default_storage.url(kept.path)


def test_what_is_damaged_or_gone_is_mended_under_its_name(bucket: S3Server) -> None:
    kept = artifacts.store(b"library", ".so")
    bucket.client().put_object(Bucket=BUCKET, Key=key(kept), Body=b"libra")
    with pytest.raises(files.DamagedFileError):
        artifacts.read(kept)
    with pytest.raises(files.DamagedFileError):
        files.open_file(kept.path, kept.digest)
    assert artifacts.store(b"library", ".so") == kept
    assert artifacts.read(kept) == b"library"
    bucket.client().delete_object(Bucket=BUCKET, Key=key(kept))
    with pytest.raises(files.MissingFileError):
        artifacts.read(kept)
    artifacts.store(b"library", ".so")
    assert bucket.names() == {key(kept)}


def test_a_large_file_goes_in_parts_and_comes_back_whole(
    bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = TransferConfig(
        use_threads=False, multipart_threshold=5 << 20, multipart_chunksize=5 << 20
    )
    monkeypatch.setattr(storages["default"], "transfer_config", parts)
    content = bytes(range(256)) * (12 << 12)  # 12 MiB
    kept = artifacts.store_large(io.BytesIO(content), ".zip")
    assert artifacts.store_large(io.BytesIO(content), ".zip") == kept
    found = bucket.client().head_object(Bucket=BUCKET, Key=key(kept))
    assert found["ETag"].strip('"').endswith("-3"), "three parts"
    with files.open_file(kept.path, kept.digest) as file:
        assert file.read() == content


@pytest.mark.full
def test_a_killed_server_leaves_nothing_half_written_and_loses_nothing(bucket: S3Server) -> None:
    kept = artifacts.store(b"before", ".so")
    bucket.kill()
    for use in (
        lambda: artifacts.store(b"meanwhile", ".so"),
        lambda: artifacts.read(kept),
        lambda: artifacts.is_whole(kept),
        lambda: artifacts.local_file(kept),
    ):
        with pytest.raises(StorageAwayError, match=r"^S3 does not answer \(the bucket kiln-tests"):
            use()
    bucket.start()
    assert bucket.names() == {key(kept)}
    assert artifacts.read(kept) == b"before"
    assert artifacts.read(artifacts.store(b"meanwhile", ".so")) == b"meanwhile"


def test_what_was_fetched_is_used_while_the_server_is_away(bucket: S3Server) -> None:
    kept = artifacts.store(b"library", ".so")
    there = artifacts.local_folder(kept, "kernel.so") / "kernel.so"
    bucket.kill()
    assert (artifacts.local_folder(kept, "kernel.so") / "kernel.so") == there
    assert there.read_bytes() == b"library"


def test_a_bucket_that_is_gone_has_lost_no_artifact(bucket: S3Server) -> None:
    """404 is said of both; only one of them is a reason to build again."""
    kept = artifacts.store(b"library", ".so")
    bucket.client().delete_object(Bucket=BUCKET, Key=key(kept))
    bucket.client().delete_bucket(Bucket=BUCKET)
    for use in (
        lambda: artifacts.read(kept),
        lambda: artifacts.is_whole(kept),
        lambda: artifacts.store(b"other", ".so"),
        retention.sweep,
    ):
        with pytest.raises(StorageAwayError, match="there is no bucket kiln-tests: make it, or"):
            use()


@pytest.mark.full
def test_the_sweep_removes_what_no_row_names(
    bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = artifacts.store(b"just stored", ".so")
    stray = f"sha256/ab/{'ab' * 32}.so"
    files.write(stray, b"no row names it")
    client = bucket.client()
    client.put_object(Bucket=BUCKET, Key="of others", Body=b"")
    assert not any(retention.sweep().values()), "it is younger than a day"

    # Last: moto says of each that it was begun in 2010.
    client.create_multipart_upload(Bucket=BUCKET, Key="site/one/sha256/cd/unfinished.zip")
    client.create_multipart_upload(Bucket=BUCKET, Key="of others too")
    monkeypatch.setattr(retention, "UNUSED_AGE", timedelta(0))
    would = retention.sweep(dry_run=True)
    assert would == {
        **dict.fromkeys(would, 0),
        "files without a row": 1,
        "artifacts": 1,
        "unfinished uploads": 1,
    }
    assert bucket.names() == {key(kept), f"site/one/{stray}", "of others"}
    assert retention.sweep() == would
    assert bucket.names() == {"of others"}
    left = client.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
    assert [one["Key"] for one in left] == ["of others too"]
    assert not Artifact.objects.exists()


def test_a_row_stays_where_its_object_cannot_be_removed(
    bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts.store(b"unneeded", ".so")
    monkeypatch.setattr(retention, "UNUSED_AGE", timedelta(0))
    bucket.kill()
    with pytest.raises(StorageAwayError):
        retention.sweep_artifacts(False, 9)
    assert Artifact.objects.count() == 1


def test_pages_say_that_it_is_away_and_not_that_a_file_is_missing(
    reader: Client, world: World, bucket: S3Server
) -> None:
    one = world.kernels[0]
    build = one.builds.get(target="gfx942")
    address = f"/kernels/{one.name}/{build.pk}/kernel.so"
    assert build.library is not None
    assert reader.get(address).status_code == 404, "the world's files are elsewhere"
    bucket.kill()
    reader.raise_request_exception = False
    answer = reader.get(address)
    assert answer.status_code == 503
    assert answer["Retry-After"] == "10"
    assert "The artifact storage is not available" in answer.content.decode()


def test_readiness_tells_a_bucket_from_none_and_names_neither(bucket: S3Server) -> None:
    def look() -> str:
        check = readiness.Check("artifacts", readiness.check_artifacts, "cannot be reached")
        return check.begin().result(PATIENCE_S)

    assert look() == "ok"
    bucket.client().delete_bucket(Bucket=BUCKET)
    assert look() == "cannot be reached"
    bucket.make_bucket()
    assert look() == "ok"
    bucket.kill()
    assert look() == "cannot be reached"


@pytest.mark.full(but=5)
@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({}, ""),
        (
            {"KILN_S3_BUCKET": "another"},
            r"there is no bucket another: make it, or",
        ),
        ({"KILN_S3_ENDPOINT": "http://127.0.0.1:9"}, r"S3 does not answer \(the bucket kiln-tests"),
        ({"KILN_S3_SECRET_ACCESS_KEY": ""}, r"KILN_S3_SECRET_ACCESS_KEY is not: set both"),
        ({"KILN_S3_BUCKET": ""}, r"KILN_STORAGE=s3 needs KILN_S3_BUCKET"),
    ],
)
def test_a_deployments_check_tries_the_bucket(
    server: S3Server, tmp_path: Path, wrong: dict[str, str], line: str
) -> None:
    url = worker_environment(tmp_path, BROKER)["DATABASE_URL"]
    made = Installation(tmp_path, url, server.environment(**wrong))
    done = made.manage("check", "--deploy", "--tag", "files")
    if not line:
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert server.names() == set(), "nothing is left of it"
    else:
        assert done.returncode == 1
        assert re.search(line, done.stderr), done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.full
def test_credentials_that_are_refused_are_one_line(tmp_path: Path, settings: Any) -> None:
    made = S3Server(tmp_path / "strict")
    made.start(INITIAL_NO_AUTH_ACTION_COUNT="1")
    try:
        made.make_bucket()
        settings.STORAGES = {
            **settings.STORAGES,
            "default": storage.artifacts(made.environment()),
        }
        with pytest.raises(
            StorageAwayError, match=r"^S3 refuses \w+ in the bucket kiln-tests"
        ) as it:
            artifacts.store(b"content", ".so")
        assert "of the tests" not in str(it.value), "no secret is shown"
    finally:
        made.kill()
