"""What is sent is compressed, says nothing of secrets by its length, and static files last."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from django.http import FileResponse, HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from whitenoise.middleware import WhiteNoiseMiddleware

from codegen_app.accounts import embedding
from codegen_app.platform.config import settings as installation
from codegen_app.tracking.models import Channel
from codegen_app.tracking.notifying import signing
from codegen_app.web.compression import MIN_BYTES, CompressionMiddleware
from codegen_app.web.pagecache.compressed import SECRET
from tests.app import track_factories
from tests.app.web.test_pages import addresses
from tests.support.pages_world import World

pytestmark = pytest.mark.django_db
GZIP = {"Accept-Encoding": "gzip, deflate, br"}


@pytest.fixture
def chief() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("chief"))
    return client


def without_tokens(page: bytes) -> str:
    return re.sub(r"\b[A-Za-z0-9]{64}\b|\d+ \w+ ago|ticket=[\w%-]+", "…", page.decode())


@pytest.mark.long(but=2)
@pytest.mark.full
@pytest.mark.parametrize("kept_bytes", [0, 1 << 26])
def test_every_page_and_its_twin_is_sent_compressed(
    kept_bytes: int, world: World, chief: Client, settings: Any
) -> None:
    settings.PAGES_KEPT_BYTES = kept_bytes
    others = ["/alerts", "/channels", "/tokens", "/import", "/look", "/retune", "/not/there"]
    for address in [*addresses(world), *others]:
        twin = re.sub(r"(?=\?|$)", ".json", "/overview" if address == "/" else address, count=1)
        for asked in (address, twin):
            answer, plain = chief.get(asked, headers=GZIP), chief.get(asked)
            assert not plain.has_header("Content-Encoding"), asked
            if len(plain.content) < MIN_BYTES:
                continue
            assert answer.headers["Content-Encoding"] == "gzip", asked
            assert "Accept-Encoding" in answer.headers["Vary"], asked
            whole = gzip.decompress(answer.content)
            assert without_tokens(whole) == without_tokens(plain.content), asked
            assert SECRET.encode() not in whole + plain.content, asked
            assert len(answer.content) < 0.5 * len(whole) + 400, asked


def test_a_compressed_answer_keeps_its_validators_and_its_length(chief: Client) -> None:
    def view(_: HttpRequest) -> HttpResponse:
        return HttpResponse("a line\n" * 1000, headers={"ETag": '"1"', "Content-Length": "7000"})

    request = RequestFactory().get("/", headers=GZIP)
    answer = CompressionMiddleware(view)(request)
    assert answer.headers["ETag"] == 'W/"1"'
    assert int(answer.headers["Content-Length"]) == len(answer.content) < 700


@pytest.mark.parametrize("kind", ["application/zip", "application/octet-stream", "image/png"])
def test_what_is_no_text_or_a_part_of_a_file_stays_as_it_is(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"0" * 10_000)
    request = RequestFactory().get("/", headers=GZIP)
    whole = CompressionMiddleware(lambda _: HttpResponse(b"0" * 9000, content_type=kind))(request)
    stream = CompressionMiddleware(lambda _: FileResponse(file.open("rb")))(request)  # type: ignore[arg-type,return-value]
    part = CompressionMiddleware(
        lambda _: HttpResponse(
            "0" * 900, headers={"Content-Range": "bytes 0-899/10000"}, status=206
        )
    )(request)
    for answer in (whole, stream, part):
        assert not answer.has_header("Content-Encoding")


@pytest.mark.full(but=2)
@pytest.mark.parametrize("kept_bytes", [0, 1 << 26])
def test_the_length_of_an_answer_does_not_say_whether_a_guess_at_a_key_is_right(
    kept_bytes: int, chief: Client, settings: Any
) -> None:
    """The address stands in the page, beside the key of the series' pictures, and of a channel."""
    settings.PAGES_KEPT_BYTES = kept_bytes
    series = track_factories.series(points=3)
    channel = Channel.objects.create(
        name="team",
        kind="webhook",
        address="https://a.example/x",
        alerts=["regression"],
        key_salt=signing.new_salt(),
    )
    keys = {
        f"/series/{series.pk}": embedding.series_key(series.pk),
        f"/channels/{channel.pk}": signing.key(channel.key_salt),
    }
    for address, key in keys.items():
        assert key.encode() in chief.get(address).content, "the page has the key"
        right = _length(chief, f"{address}?q={key}")
        wrong = [_length(chief, f"{address}?q={_other(key, n)}") for n in range(4)]
        # Keys of the same letters differ by some bytes among themselves; one that stands in the
        # page a second time would be shorter than all by nearly its length.
        assert right > min(wrong) - len(key) / 2, address


def _other(key: str, n: int) -> str:
    return "".join(random.Random(n).sample(key, len(key)))


def _length(client: Client, address: str) -> int:
    return min(len(client.get(address, headers=GZIP).content) for _ in range(3))


@pytest.mark.full
def test_static_files_name_one_another_by_digest_and_last_for_ever(
    tmp_path: Path, settings: Any
) -> None:
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": installation.STORAGES["staticfiles"]}
    call_command("collectstatic", verbosity=0, interactive=False)
    served = WhiteNoiseMiddleware(lambda _: HttpResponse())
    for name in (
        "js/web/main.js",
        "js/graphs/graph.js",
        "css/web/base.css",
        "vendor/htmx/htmx.min.js",
    ):
        url = staticfiles_storage.url(name)
        answer = served(RequestFactory().get(url, headers=GZIP))
        assert answer.headers["Cache-Control"] == "max-age=315360000, public, immutable", name
        assert answer.headers["Content-Encoding"] == "gzip", name
    scripts = Path(finders.find("js/web/main.js") or "").parents[1]
    for script in scripts.rglob("*.js"):
        name = f"js/{script.relative_to(scripts).as_posix()}"
        text = (tmp_path / "static" / staticfiles_storage.stored_name(name)).read_text()
        for named in re.findall(r"""(?:from|import)\s*\(?\s*["'](\.\.?/[^"']+)["']""", text):
            assert re.search(r"\.[0-9a-f]{12}\.js$", named), f"{name} imports {named}"
