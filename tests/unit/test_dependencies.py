"""What is installed is what was tested: the lock files, the list of parts, the look for holes."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKED = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?==([^ ;\\]+)[^\\\n]*\\?$", re.M)


def script(name: str) -> ModuleType:
    """A file of deploy/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "deploy" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def locked(name: str) -> dict[str, str]:
    return dict(LOCKED.findall((ROOT / "deploy" / name).read_text()))


def extra(name: str) -> list[str]:
    """What an extra asks for, the extras of the project that it names with theirs."""
    found = []
    for text in PROJECT["optional-dependencies"][name]:
        asked = Requirement(text)
        own = asked.name == PROJECT["name"]
        found += [each for one in sorted(asked.extras) for each in extra(one)] if own else [text]
    return found


def test_lock_files_have_every_package_that_the_project_asks_for() -> None:
    dev = locked("requirements-dev.txt")
    asked = {"requirements.txt": PROJECT["dependencies"]}
    asked["requirements-dev.txt"] = [
        *PROJECT["dependencies"],
        *extra("dev"),
        *extra("nvidia"),  # NVIDIA's listings are tested
        *extra("objects"),
    ]
    site = [
        *PROJECT["dependencies"],
        *(each for one in ("redis", "s3", "oidc", "otel") for each in extra(one)),
    ]
    asked["requirements-site.txt"] = site  # the container's
    asked["requirements-nvidia.txt"] = [*site, *extra("nvidia"), *extra("cutedsl")]
    for file, requirements in asked.items():
        versions = locked(file)
        for requirement in map(Requirement, requirements):
            name = requirement.name.lower().replace("_", "-")
            assert name in versions, f"{file} has no {name}: make lock"
            assert Version(versions[name]) in requirement.specifier, f"{file}: {name}: make lock"
    for file in asked:
        assert locked(file).items() <= dev.items(), f"what runs is what was tested: {file}"


@pytest.mark.parametrize("part", ["", "-dev", "-site", "-nvidia", "-torch", "-uv"])
def test_every_locked_package_has_its_hashes(part: str) -> None:
    text = (ROOT / "deploy" / f"requirements{part}.txt").read_text()
    parts = re.split(r"(?:^|\n)(?=[\w])", text)[1:]
    assert len(parts) >= (1 if part in ("-torch", "-uv") else 40)
    assert [part.split()[0] for part in parts if "--hash=sha256:" not in part] == []


def test_what_installs_and_what_is_tested_beside_is_of_one_version() -> None:
    dev = locked("requirements-dev.txt")
    assert locked("requirements-uv.txt")["uv"] == dev["uv"]
    shared = locked("requirements-torch.txt").items()
    assert {name: version for name, version in shared if name in dev}.items() <= dev.items()
    (torch,) = map(Requirement, extra("torch"))
    assert Version(locked("requirements-torch.txt")["torch"]) in torch.specifier


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ([], ["requirements.txt"]),
        (["--dev"], ["requirements-dev.txt"]),
        (["--dev", "--torch"], ["requirements-dev.txt", "requirements-torch.txt"]),
    ],
)
def test_newcomers_get_what_is_locked(
    options: list[str], files: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install = script("install")
    commands: list[list[str]] = []
    monkeypatch.setattr(install, "run", lambda command, *_: commands.append(command))
    monkeypatch.setattr(install, "as_pip_looks", lambda _: {})
    monkeypatch.setattr(install, "STAMP", tmp_path / "stamp.json")
    monkeypatch.setattr(install, "VENV", tmp_path)
    monkeypatch.setattr(sys, "argv", ["install.py", *options])
    install.main()
    uv, packages, ours = commands[-3:]
    assert "--require-hashes" in uv
    assert uv[-1].endswith("deploy/requirements-uv.txt")
    assert "--require-hashes" in packages
    assert [Path(word).name for word in packages if word.endswith(".txt")] == files
    assert "--no-deps" in ours
    commands.clear()
    monkeypatch.setattr(sys, "argv", ["install.py"])  # less than there is already
    install.main()
    assert commands == []


def test_packages_are_looked_for_where_pip_looks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pip = tmp_path / "pip"
    pip.write_text("#!/bin/sh\necho \"global.index-url='https://index.example/simple'\"\n")
    pip.chmod(0o755)
    monkeypatch.setenv("UV_FIND_LINKS", "/mine")
    environ = script("install").as_pip_looks([str(pip)])
    assert environ["UV_DEFAULT_INDEX"] == "https://index.example/simple"
    assert environ["UV_FIND_LINKS"] == "/mine"


def test_the_list_of_parts_has_the_vendored_scripts_with_their_hashes() -> None:
    parts = script("sbom").vendored()
    sums = (ROOT / "static" / "vendor" / "SHA256SUMS").read_text()
    assert {part["name"] for part in parts} == {
        "htmx.org",
        "plotly.js-cartesian-dist-min",
    }
    files = [file for part in parts for file in part["components"]]
    assert len(files) == len(sums.splitlines())
    for part in parts:
        folder = part["components"][0]["name"].split("/")[2]
        version = (ROOT / "static" / "vendor" / folder / "VERSION").read_text()
        assert part["version"] in version
    for file in files:
        assert file["hashes"][0]["content"] in sums


def answer(*packages: object) -> str:
    return json.dumps({"dependencies": packages})


HOLE = {"name": "django", "version": "1.0", "vulns": [{"id": "PYSEC-1"}]}
FINE = {"name": "sympy", "version": "1.14", "vulns": []}
UNKNOWN = {"name": "vine", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("output", "errors", "line", "good"),
    [
        (answer(FINE), "", "none in 1 packages", True),
        (answer(FINE, HOLE), "", "django 1.0: PYSEC-1", False),
        (answer(FINE, UNKNOWN), "", "none in 1 packages; 1 not in the database", True),
        (answer(UNKNOWN), "", "not checked: no vulnerability database is reachable", True),
        ("", "requests.exceptions.ConnectionError: x", "not checked: no network", True),
        ("", "TypeError: x", "pip-audit failed: TypeError: x", False),
        ("", "", "pip-audit failed: no output", False),
    ],
)
def test_a_known_hole_fails_and_no_network_is_said(
    output: str, errors: str, line: str, good: bool
) -> None:
    assert script("check_holes").outcome(output, errors) == (line, good)
