"""Signing in at a provider, as a person does: there, back to the line that was read, and out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, expect

from codegen_app.accounts import oidc
from tests.e2e.conftest import PATIENCE_MS
from tests.support.oidc_server import OidcServer
from tests.support.pages_world import World


@pytest.fixture
def provider(
    settings: Any, live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OidcServer]:
    """A real one, which the site knows, and which sends people back to the site's address."""
    settings.SITE_URL = live_server.url
    monkeypatch.setattr(oidc, "_TIMEOUT_S", PATIENCE_MS / 1000)
    made = OidcServer()
    made.start()
    oidc._client_cache.clear()
    settings.OIDC = made.provider()
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        "codegen_app.accounts.backends.IdentityBackend",
    ]
    yield made
    made.kill()


@pytest.mark.full
def test_there_and_back_to_the_line_and_out(
    browser: Browser, live_server: Any, world: World, provider: OidcServer
) -> None:
    # No page of the fixtures': those complain of every other host, and the provider is one.
    context = browser.new_context(base_url=live_server.url)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    refused: list[str] = []
    context.on(
        "console",
        lambda one: (
            refused.append(one.text)
            if one.type == "error" and one.location["url"].startswith(live_server.url)
            else None
        ),
    )
    address = f"{world.kernels[0].get_absolute_url()}?view=ptx#L12"
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.get_by_role("link", name="Sign in with Team Login").click()
    expect(page.get_by_role("heading", name="Provider")).to_be_visible()
    page.get_by_role("button", name="Continue as ada").click()
    expect(page).to_have_url(re.compile(re.escape(address) + "$"))
    page.wait_for_selector("html[data-ready]")
    assert User.objects.get().username == "ada"
    cookies = {one["name"] for one in context.cookies()}
    assert oidc.cookie_name() not in cookies, "it served once"

    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("link", name="Sign in with Team Login")).to_be_visible()

    provider.says(error="access_denied")
    page.get_by_role("link", name="Sign in with Team Login").click()
    page.get_by_role("button", name="Continue as ada").click()
    line = page.get_by_text("Team Login did not let you in: access_denied.")
    expect(line).to_be_visible()
    context.close()
    assert refused == [], "the policy holds nothing back"
