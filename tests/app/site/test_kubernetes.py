"""deploy/kubernetes: Kubernetes' own schemas, kubectl's reading, and that the files fit Kiln."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from codegen_app.site import probes
from codegen_app.web.server import bodies
from codegen_app.workers.queue import Kind
from tests.app.platform.test_deployed import PRODUCTION
from tests.app.processes import ROOT, worker_environment
from tests.app.site.test_systemd_units import WORKERS, commands, without_name
from tests.support.s3_server import S3Server

FOLDER = ROOT / "deploy" / "kubernetes"
# Versions that are looked after, from the oldest on (kubernetes.io/releases), and the newest known.
VERSIONS = ("1.33", kubernetes_validate.latest_version())
MIB = 1 << 20
EXAMPLE = "secret.example.yaml"


def documents(*names: str) -> list[dict[str, Any]]:
    """What is in these files, of all that are applied where none is named."""
    (kustomization,) = _read("kustomization.yaml")
    files = names or (*kustomization["resources"], EXAMPLE)
    return [one for name in files for one in _read(name)]


@lru_cache
def _read(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def named(kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in documents() if one["kind"] == kind}


def pods() -> dict[str, dict[str, Any]]:
    """What runs, by the name of what starts it."""
    starting = {**named("Deployment"), **named("Job")}
    return {name: one["spec"]["template"]["spec"] for name, one in starting.items()}


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def variables(container: dict[str, Any]) -> dict[str, str]:
    """What a process is given: later ones count."""
    found: dict[str, str] = {}
    for one in container["envFrom"]:
        ((kind, reference),) = one.items()
        if kind == "configMapRef":
            found |= named("ConfigMap")[reference["name"]]["data"]
        else:
            found |= named("Secret")[reference["name"]]["stringData"]
    return found | {one["name"]: one["value"] for one in container.get("env", ())}


@pytest.mark.full
@pytest.mark.parametrize("version", VERSIONS)
def test_every_document_is_one_of_kubernetes(version: str) -> None:
    found = documents()
    assert len(found) == 14
    for one in found:
        kubernetes_validate.validate(one, version, strict=True)
        assert one["kind"] == "Namespace" or one["metadata"]["namespace"] == "kiln"


def test_kubectl_takes_the_folder_as_a_whole() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl: apt-get install kubernetes-client")
    done = subprocess.run(
        ["kubectl", "kustomize", str(FOLDER)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    made = [one for one in yaml.safe_load_all(done.stdout) if one]
    assert len(made) == len(documents()) - len(documents(EXAMPLE))
    images = {
        container["image"]
        for one in made
        if one["kind"] in {"Deployment", "Job"}
        for container in containers(one["spec"]["template"]["spec"])
    }
    assert images == {"registry.example/kiln:0.1.0"}


def test_every_file_is_applied_but_the_example() -> None:
    applied = set(documents("kustomization.yaml")[0]["resources"])
    assert {one.name for one in FOLDER.glob("*.yaml")} == applied | {EXAMPLE, "kustomization.yaml"}
    for secret in documents(EXAMPLE):
        assert set(secret["stringData"].values()) == {""}, "no password stands in the checkout"


def test_workers_are_started_as_by_systemd_and_serve_every_kind_of_work() -> None:
    units = {name.partition("@")[0].removeprefix("kiln-"): name for name in WORKERS}
    served = set[str]()
    for name, pod in pods().items():
        (main,) = pod["containers"]
        if main["name"] != "worker":
            continue
        kind, _, target = name.removeprefix("kiln-").partition("-")
        instance = f"{target}-0" if target else "1"
        ours = without_name(main["command"])
        if kind == "measure":
            (unit,) = commands(units["model"], instance)
            expected = [part.replace("model", target) for part in without_name(unit)]
        else:
            (unit,) = commands(units[kind], instance)
            expected = without_name(unit)
        assert ours == expected
        served |= set(ours[ours.index("--queues") + 1].split(","))
    # Workers that bisect need a command and a user of the site: deploy/README.md.
    assert {queue.partition(".")[0] for queue in served} == set(Kind) - {Kind.BISECT}


def test_pages_are_started_as_by_systemd_asked_by_probes_and_reached() -> None:
    pod = pods()["kiln-web"]
    (web,) = pod["containers"]
    (unit,) = commands("kiln-web.service")
    bind = unit.index("--bind") + 1
    port = web["ports"][0]["containerPort"]
    expected = ["gunicorn", *unit[1:bind], f"0.0.0.0:{port}", *unit[bind + 1 :]]
    assert web["command"] == expected
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert web[probe]["httpGet"]["path"] in probes.ANSWERS
        assert web[probe]["httpGet"]["port"] == web["ports"][0]["name"]
    service = named("Service")["kiln-web"]["spec"]
    labels = named("Deployment")["kiln-web"]["spec"]["template"]["metadata"]["labels"]
    assert service["selector"] == labels
    assert service["ports"][0]["targetPort"] == web["ports"][0]["name"]
    ingress = named("Ingress")["kiln-web"]
    limit = ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"]
    assert max(bodies.upload_limits().values()) <= int(limit.removesuffix("m")) * MIB
    (policy,) = named("NetworkPolicy").values()
    assert policy["spec"]["ingress"][0]["ports"][0]["port"] == port
    setup = [command[2] for command in (one[:3] for one in commands("kiln-setup.service"))]
    ours = [one["command"][2] for name in ("kiln-setup", "kiln-web") for one in _managed(name)]
    assert setup == ["migrate", "collectstatic"]
    assert ours == ["migrate", "migrate", "collectstatic"], "the second one only looks"


def _managed(name: str) -> Iterator[dict[str, Any]]:
    for one in containers(pods()[name]):
        if one["command"][:2] == ["kiln", "manage"]:
            yield one


def test_every_variable_is_a_setting_and_secrets_go_where_they_are_needed() -> None:
    readme = (ROOT / "deploy" / "README.md").read_text()
    settings = set(re.findall(r"^\| `(\w+)`", readme, re.M)) | {"LD_LIBRARY_PATH"}
    signing = set()
    for name, pod in pods().items():
        for container in containers(pod):
            given = variables(container)
            assert set(given) <= settings, name
            if "KILN_SECRET_KEY" in given:
                signing.add(name)
    assert signing == {"kiln-web", "kiln-track"}


@pytest.mark.parametrize("name", pods())
def test_nothing_runs_as_root_or_writes_beside_its_volumes(name: str) -> None:
    pod = pods()[name]
    assert pod["securityContext"]["runAsNonRoot"]
    user = str(pod["securityContext"]["runAsUser"])
    dockerfile = (ROOT / "deploy" / "container" / "Dockerfile").read_text()
    assert f"USER {user}:" in dockerfile, "the image's own"
    volumes = {one["name"] for one in pod["volumes"]}
    for one in containers(pod):
        context = one["securityContext"]
        assert context["readOnlyRootFilesystem"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        mounts = {mount["name"]: mount["mountPath"] for mount in one["volumeMounts"]}
        assert set(mounts) <= volumes
        assert f"KILN_VAR={mounts['var']}" in dockerfile
        assert one["resources"]["limits"]["memory"]


@pytest.mark.full
def test_a_site_as_described_is_clean(transactional_db: None, tmp_path: Path) -> None:
    """``check --deploy`` with exactly what the pages' container is given, its secrets filled in,
    and an S3 that answers."""
    here = worker_environment(tmp_path, "")
    own = re.compile("KILN_|DJANGO_|DATABASE_URL$|AWS_")
    site = {key: value for key, value in os.environ.items() if not own.match(key)}
    (web,) = pods()["kiln-web"]["containers"]
    site |= variables(web)
    site |= {"DATABASE_URL": here["DATABASE_URL"], "KILN_VAR": str(tmp_path / "kiln")}
    site |= {"KILN_SECRET_KEY": PRODUCTION["KILN_SECRET_KEY"], "KILN_FENCE": "available"}
    server = S3Server(tmp_path / "s3")
    server.start()
    try:
        server.make_bucket()
        s3 = {name: value for name, value in server.environment().items() if name in site}
        s3["KILN_S3_ENDPOINT"] = server.url
        done = subprocess.run(
            [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
            check=False,
            cwd=ROOT,
            env=site | s3,
            capture_output=True,
            text=True,
        )
    finally:
        server.kill()
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.startswith("System check identified no issues")
