"""Pages, their JSON views and their tables as TSV say it in standard terms, as they are rendered:
``tests/unit/test_words.py`` reads the texts of templates and messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from tests.support import every_page
from tests.support.pages_world import World
from tests.unit.test_words import BANNED, STORED

pytestmark = pytest.mark.django_db
_NO_TEXT = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(?:title|aria-label|placeholder|alt|content)="([^"]*)"')


def found(text: str) -> list[str]:
    return [
        text[max(0, match.start() - 40) : match.end() + 40]
        for match in BANNED.finditer(text)
        if match[0].lower() not in STORED
    ]


def as_view(address: str, suffix: str, parameters: str = "") -> str:
    """The address of another view of a page."""
    path, _, query = address.partition("?")
    query = "&".join(filter(None, (query, parameters)))
    return f"{'/overview' if path == '/' else path}{suffix}" + (f"?{query}" if query else "")


def values_of(data: Any) -> Iterator[str]:
    """The texts of a JSON view; its keys are an interface of programs, and stay."""
    match data:
        case str():
            yield data
        case dict() | list():
            for part in data.values() if isinstance(data, dict) else data:
                yield from values_of(part)


def test_every_page_and_its_exports_use_standard_terms(admin_client: Client, world: World) -> None:
    every_page.furnish(world.graph)
    wrong: dict[str, list[str]] = {}
    addresses = every_page.available()[0] | {
        name: address() for name, address in every_page.ADMIN.items()
    }
    for address in addresses.values():
        page = admin_client.get(address, follow=True).content.decode()
        texts = [*_ATTRIBUTE.findall(page), re.sub(r"\s+", " ", _NO_TEXT.sub(" ", page))]
        for view in (as_view(address, ".json"), as_view(address, "", "as=tsv")):
            response = admin_client.get(view)
            kind = response.headers.get("Content-Type", "")
            if "json" in kind:
                texts += values_of(response.json())
            elif "tab-separated" in kind:
                texts.append(response.content.decode())
        wrong |= {address: hits} if (hits := [hit for text in texts for hit in found(text)]) else {}
    assert wrong == {}
