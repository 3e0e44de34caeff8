"""deploy/compose.yaml and deploy/container: what Docker Compose says, and that they fit Kiln."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from codegen_app.site import probes
from codegen_app.workers.queue import Kind
from tests.app.processes import ROOT, worker_environment
from tests.app.site.test_systemd_units import WORKERS, commands, without_name
from tests.support import composed

CONTAINER = ROOT / "deploy" / "container"
QUEUES = {"compile": "prepare,compile", "model": "measure.model", "track": "detect,notify"}
MEASURING = {"measure-amd": "measure.gfx942", "measure-nvidia": "measure.sm_90"}
# What the image or compose.yaml itself decides, or no process in a container has a use for.
OF_THE_IMAGE = {
    *("KILN_VAR", "KILN_CODE_CACHE", "KILN_DEVICE_LOCKS", "XDG_DATA_HOME"),
    *("KILN_DEBUG", "KILN_ROOT_BECAUSE", "PATH"),
}
OTHERS = {"proxy", "web", "setup", "postgres", "redis"}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    if not composed.command():
        pytest.skip("there is no docker compose: apt-get install docker-compose")
    return composed.services()


def words(service: dict[str, Any]) -> list[str]:
    """A command, which newer versions of Compose give as a list."""
    given = service["command"]
    return shlex.split(given) if isinstance(given, str) else list(given)


@pytest.mark.full
def test_what_has_no_default_is_asked_for_by_name(services: dict[str, Any]) -> None:
    assert set(services) == {*QUEUES, *MEASURING, *OTHERS}
    for name in composed.FILLED_IN:
        done = composed.config(**(composed.FILLED_IN | {name: ""}))
        assert done.returncode != 0, name
        assert "set it in deploy/.env to" in done.stderr
    empty = [line.partition("=")[0] for line in composed.example() if line.endswith("=")]
    assert {name for name in empty if not name.startswith("#")} == set(composed.FILLED_IN)


def test_workers_are_started_as_by_systemd_and_serve_every_kind_of_work(
    services: dict[str, Any],
) -> None:
    ours = {name: without_name(words(services[name])) for name in {*QUEUES, *MEASURING}}
    units = {name.partition("@")[0]: name for name in WORKERS}
    for name, queues in QUEUES.items():
        unit = units[f"kiln-{name}"]
        (by_systemd,) = commands(unit, WORKERS[unit][0])
        assert ours[name] == without_name(by_systemd)
        assert ours[name][ours[name].index("--queues") + 1] == queues
    for name, queue in MEASURING.items():
        expected = [queue if part == QUEUES["model"] else part for part in ours["model"]]
        assert ours[name] == expected
    served = ",".join([*QUEUES.values(), *MEASURING.values()]).split(",")
    # Workers that bisect need a command and a user of the site: deploy/README.md.
    assert {queue.partition(".")[0] for queue in served} == set(Kind) - {Kind.BISECT}


def test_pages_and_setup_are_the_commands_of_systemd(services: dict[str, Any]) -> None:
    (web,) = commands("kiln-web.service")
    bind = web.index("--bind") + 1
    expected = ["gunicorn", *web[1:bind], "0.0.0.0:8000", *web[bind + 1 :]]
    assert words(services["web"]) == expected
    in_image = re.search(r"^CMD \[(.*)\]$", dockerfile(), re.M)
    assert in_image is not None
    assert re.findall(r'"([^"]+)"', in_image[1]) == expected
    units = [" ".join(("kiln", *one[1:])) for one in commands("kiln-setup.service")]
    assert words(services["setup"]) == ["sh", "-c", " && ".join(units)]


def test_the_pages_are_looked_after_and_reached_where_they_are(services: dict[str, Any]) -> None:
    check = services["web"]["healthcheck"]["test"][-1]
    address = urlsplit(re.findall(r'"(http[^"]+)"', check)[0])
    assert address.path in probes.ANSWERS
    proxy = services["proxy"]["environment"]
    assert proxy["KILN_UPSTREAM"] == f"web:{address.port}"
    template = (ROOT / "deploy" / "nginx" / "kiln.conf.template").read_text()
    assert set(re.findall(r"\$\{(\w+)\}", template)) == set(proxy)
    assert "ports" not in services["web"], "nobody but the proxy reaches it"


def test_every_variable_is_a_setting(services: dict[str, Any]) -> None:
    readme = (ROOT / "deploy" / "README.md").read_text()
    settings = set(re.findall(r"^\| `(\w+)`", readme, re.M))
    of_others = {"LD_LIBRARY_PATH", "NVIDIA_DRIVER_CAPABILITIES"}
    for name, service in services.items():
        if name in {"proxy", "postgres", "redis"}:
            continue
        others = of_others | {one for one in service["environment"] if one.startswith("OTEL_")}
        assert set(service["environment"]) - others <= settings, name
    source = (composed.DEPLOY / "compose.yaml").read_text()
    taken = set(re.findall(r"\$\{(\w+)", source))
    shown = {line.partition("=")[0].strip("#") for line in composed.example()}
    passed_on = {one for service in services.values() for one in environment(service)}
    assert shown <= taken | passed_on, "whatever the example shows has an effect"
    assert settings - passed_on == OF_THE_IMAGE, "whatever a site may set reaches its containers"


def test_what_is_not_set_is_not_given_and_what_is_set_is(services: dict[str, Any]) -> None:
    assert environment(services["compile"])["KILN_KEEP_RUNS_DAYS"] is None
    given = {"KILN_KEEP_RUNS_DAYS": "365", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    done = composed.config(**composed.FILLED_IN, **given)
    compile_ = environment(yaml.safe_load(done.stdout)["services"]["compile"])
    assert {name: compile_[name] for name in given} == given


def test_secrets_go_where_they_are_needed(services: dict[str, Any]) -> None:
    needing = {
        "KILN_SECRET_KEY": {"web", "track"},
        "KILN_OIDC_CLIENT_SECRET": {"web"},
        "KILN_EMAIL_PASSWORD": {"web", "track"},
    }
    for secret, names in needing.items():
        assert {name for name, one in services.items() if secret in environment(one)} == names
    for name, one in services.items():
        if name not in {"postgres"}:
            assert one["read_only"], name


def environment(service: dict[str, Any]) -> dict[str, str | None]:
    return service.get("environment") or {}


def dockerfile() -> str:
    """Its lines, those that go on joined."""
    return re.sub(r"\\\n\s*", "", (CONTAINER / "Dockerfile").read_text())


def copied() -> list[tuple[list[str], str]]:
    """What the image is given of the checkout, and as what."""
    lines = [line.split()[1:] for line in dockerfile().splitlines() if line.startswith("COPY ")]
    return [(parts[:-1], parts[-1]) for parts in lines if not parts[0].startswith("--from")]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Kiln's own files as they are in the image."""
    made = tmp_path / "opt" / "kiln"
    made.mkdir(parents=True)
    for sources, goal in copied():
        if goal.startswith("/"):
            continue
        for name in sources:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, made / goal, ignore=shutil.ignore_patterns("*.pyc"))
            else:
                (made / goal).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, made / goal)
    return made


@pytest.mark.full
def test_a_site_as_composed_is_clean_with_what_the_image_has(
    services: dict[str, Any], image: Path, transactional_db: None, tmp_path: Path
) -> None:
    """``collectstatic`` and ``check --deploy`` with exactly what the pages' container is given, but
    for where database and files are."""
    here = worker_environment(tmp_path, "")
    own = re.compile("KILN_|DJANGO_|DATABASE_URL$|AWS_")
    site = {name: value for name, value in os.environ.items() if not own.match(name)}
    given = services["web"]["environment"].items()
    site |= {name: str(value) for name, value in given if value is not None}
    site |= {"DATABASE_URL": here["DATABASE_URL"], "KILN_VAR": str(tmp_path / "kiln")}
    site["KILN_FENCE"] = "available"  # of what is missing of it here, other tests tell

    def manage(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "codegen_app", *command],
            check=False,
            cwd=image,
            env=site,
            capture_output=True,
            text=True,
        )

    _, collect = (shlex.split(one) for one in words(services["setup"])[2].split(" && "))
    collected = manage(*collect[1:], "--dry-run")  # compressing them takes longest
    assert "static files copied" in collected.stdout, collected.stderr
    done = manage("manage", "check", "--deploy", "--fail-level", "WARNING")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.startswith("System check identified no issues")


def test_the_image_is_given_what_it_copies_and_nothing_else() -> None:
    names = {name.rstrip("/") for sources, _ in copied() for name in sources}
    assert all((ROOT / name).exists() for name in names)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    in_wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert set(in_wheel) <= names, "all that Kiln reads while it runs"
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == names


@pytest.mark.parametrize("name", ["requirements-site.txt", "requirements-nvidia.txt"])
def test_the_image_is_made_of_what_was_tested(name: str, services: dict[str, Any]) -> None:
    text = dockerfile()
    assert f"deploy/{name}" in text
    assert "--require-hashes" in text
    assert re.findall(r"^ARG REQUIREMENTS=(\S+)$", text, re.M) == ["requirements-site.txt"]
    assert services["web"]["build"]["args"]["REQUIREMENTS"] == "requirements-site.txt"
    least = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert least is not None
    assert set(re.findall(r"^FROM python:([\d.]+)-", text, re.M)) == {least[1]}
    assert re.findall(r"^USER (\S+)$", text, re.M) == ["10001:10001"], "never root"
