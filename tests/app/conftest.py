"""What tests of the pages start from: a small site with compiled kernels, and people."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.support.pages_world import World, make_world


@pytest.fixture(scope="session")
def code_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages-cache")


@pytest.fixture
def world(code_cache: Path) -> World:
    return make_world(code_cache)


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(User.objects.create_user("reader"))
    return client


@pytest.fixture
def tuner(client: Client) -> Client:
    user = User.objects.create_user("tuner")
    user.user_permissions.add(Permission.objects.get(codename="retune"))
    client.force_login(user)
    return client
