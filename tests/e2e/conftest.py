"""A real browser before a real server; whatever it complains about fails the test."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from codegen_app.accounts import permissions
from tests.app.workers.test_real_workers import Workers
from tests.support import pipeline
from tests.support.caches import KEPT
from tests.support.every_page import NOWHERE
from tests.support.leases import long_heartbeats  # noqa: F401 -- a fixture
from tests.support.pages_world import World, make_world
from tests.support.receivers import HttpReceiver, http_receiver

PATIENCE_MS = 60_000  # for a machine that does much else
expect.set_options(timeout=PATIENCE_MS)

# Chromium's own interface, which it would load again with each window, and the features that
# Playwright disables: of two such options Chromium takes the last.
DISABLED_FEATURES = (
    "PreloadTopChromeWebUI",
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *("DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades"),
    *("LensOverlay", "MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints"),
    *("PaintHolding", "PreconnectToSearch", "ThirdPartyStoragePartitioning"),
)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(DISABLED_FEATURES)}",
    # Nothing but the server under test has a name.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, once a session; skipped where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found is None:
        pytest.skip("no chromium: apt-get install chromium")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright's loop runs in this thread; Django would refuse the database beside it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def code_cache() -> Path:
    return KEPT.root


@pytest.fixture
def world(transactional_db: None, code_cache: Path) -> World:
    """A small site with compiled kernels."""
    return make_world(code_cache, layers=3, candidates=3, compiled=2)


@pytest.fixture
def session(live_server: object) -> str:
    """The session cookie of somebody who may tune."""
    user = User.objects.create_user("tuner", password="secret-secret")
    rights = [name.partition(".")[2] for name in permissions.TITLES]
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


@pytest.fixture
def anonymous(browser: Browser, live_server: object) -> Iterator[Page]:
    """A page without a login; any complaint of the browser fails the test that uses it."""
    context = browser.new_context(
        base_url=live_server.url, viewport={"width": 1400, "height": 900}, color_scheme="light"
    )
    complaints: list[str] = []
    host = urlsplit(live_server.url).netloc

    def on_console(message: ConsoleMessage) -> None:
        # A form that was filled in wrongly is shown again with 422, a page whose login is over is
        # answered 401 when it looks for news: Chromium reports both, and a page that there is not
        # meant to be.
        expected = re.search(r"status of (422|401)", message.text) or (
            "status of 404" in message.text and message.location["url"].endswith(NOWHERE)
        )
        if message.type in ("error", "warning") and not expected:
            complaints.append(f"{message.type}: {message.text}")

    def on_request(request: Request) -> None:
        if urlsplit(request.url).netloc not in (host, ""):
            complaints.append(f"request to another host: {request.url}")

    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    _wait_until_it_answers(page)
    context.on("console", on_console)
    context.on("request", on_request)
    page.on("pageerror", lambda error: complaints.append(f"exception: {error}"))
    yield page
    context.close()
    assert complaints == []


# Parts of a page are loaded after its load event: what is typed before that, nothing hears.
_ANSWERS = """() => document.documentElement.dataset.ready
    || !document.querySelector('script[type=module]')"""


def _wait_until_it_answers(page: Page) -> None:
    """Have each navigation last until the scripts of the page run, as a person waits for it."""

    def patient(go: Callable[..., Response | None]) -> Callable[..., Response | None]:
        def patiently(*arguments: Any, **options: Any) -> Response | None:
            answer = go(*arguments, **options)
            if "wait_until" not in options:
                page.wait_for_function(_ANSWERS)
            return answer

        return patiently

    for name in ("goto", "reload", "go_back"):
        setattr(page, name, patient(getattr(page, name)))


@pytest.fixture
def page(anonymous: Page, session: str, live_server: object) -> Page:
    """A page of somebody who is logged in and may tune."""
    anonymous.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    return anonymous


@pytest.fixture
def receiver(settings: Any, live_server: Any) -> Iterator[HttpReceiver]:
    """What listens on this machine for the webhooks that the site sends."""
    settings.WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.SITE_URL = live_server.url
    with http_receiver() as made:
        yield made


@pytest.fixture
def tracker(
    tmp_path: Path, settings: Any, live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workers]:
    """A worker that tracks, beside the site: it has the site's secret, as in an installation."""
    pipeline.send_by_the_database(monkeypatch)
    made = Workers(
        tmp_path,
        "database://localhost",
        KILN_SECRET_KEY=settings.SECRET_KEY,
        KILN_SITE_URL=live_server.url,
        KILN_WEBHOOK_NETWORKS="127.0.0.0/8",
    )
    made.start_one("detect,notify")
    yield made
    made.kill()
