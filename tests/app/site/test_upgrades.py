"""A site of an earlier version, restored into this one: nothing is gone, and every page answers."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests.app.installations import Installation

pytestmark = pytest.mark.long

SITES = sorted((Path(__file__).parents[1] / "data").glob("backup-*.tar.xz"))
ASK_PAGES = """
import json
from django.contrib.auth.models import User
from django.test import Client
from tests.support import every_page

client = Client(SERVER_NAME="localhost")
client.force_login(User.objects.get(username="ada"))
found, missing = every_page.available()
print(json.dumps([{name: client.get(at).status_code for name, at in found.items()}, missing]))
"""


@pytest.mark.parametrize("site", SITES, ids=lambda path: path.name.partition(".")[0])
def test_a_site_of_an_earlier_version_goes_on(
    there: Installation, tmp_path: Path, site: Path
) -> None:
    with tarfile.open(site) as packed:
        packed.extractall(tmp_path)  # our own; Debian's 3.11 knows no filter yet
    before = json.loads((tmp_path / "backup" / "backup.json").read_text())
    done = there.manage("restore", tmp_path / "backup")
    assert done.returncode == 0, done.stderr
    assert there.manage("migrate", "--check").returncode == 0, "nothing is left to migrate"

    count = "SELECT count(*) FROM codegen_app_"
    assert there.value(f"{count}artifact") == before["artifacts"]
    for table in ("graph", "generatedkernel", "build", "benchmarkresult", "tuningrun", "datum"):
        assert there.value(count + table), table

    assert there.manage("collectstatic", "--noinput").returncode == 0
    asked = there.manage("shell", "--verbosity", "0", "--command", ASK_PAGES)
    assert asked.returncode == 0, asked.stderr
    answers, missing = json.loads(asked.stdout.splitlines()[-1])
    assert answers.pop("not-found") == 404
    assert set(answers.values()) == {200}, answers
    assert len(answers) > 30
    assert len(missing) <= 2, missing
