"""Makes a release: ``python deploy/release.py 0.2.0``.

Writes the version and the changelog's heading, builds the wheel and the sdist with their sums and
the list of parts, commits and tags. All of it or nothing: where a step fails, files, commits and
tags are as they were. Nothing is pushed, and nothing is fetched.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parents[1]
DIST = "dist"
HEADING = "## Unreleased\n"
_VERSION_LINE = re.compile(r'^version = "([^"]+)"$', re.M)


class RefusedError(Exception):
    """Why there is no release: one line."""


def main():
    """Release, or say in one line why not."""
    if len(sys.argv) != 2:
        sys.exit("kiln: no version given: make release VERSION=0.2.0")
    try:
        release(ROOT, sys.argv[1])
    except RefusedError as error:
        sys.exit(f"kiln: {error}")


def release(root, given):
    """Of the checkout in ``root``; raises ``RefusedError`` and leaves everything as it was."""
    version, now = checked(root, given), datetime.now(UTC)
    project, changelog = root / "pyproject.toml", root / "CHANGELOG.md"
    before = {file: file.read_bytes() for file in (project, changelog)}
    head = git(root, "rev-parse", "HEAD")
    with tempfile.TemporaryDirectory(prefix="kiln-release-") as made:
        try:
            project.write_text(_VERSION_LINE.sub(f'version = "{version}"', project.read_text(), 1))
            changelog.write_text(dated(changelog.read_text(), version, now))
            git(root, "commit", "--quiet", "--all", "--message", f"Release {version}")
            build(root, Path(made))
            git(root, "tag", "--annotate", f"v{version}", "--message", f"Kiln {version}")
            put(Path(made), root / DIST)
        except BaseException:
            if git(root, "tag", "--list", f"v{version}"):  # there was none
                git(root, "tag", "--delete", f"v{version}")
            git(root, "reset", "--quiet", "--soft", head)
            for file, content in before.items():
                file.write_bytes(content)
            git(root, "reset", "--quiet")
            raise
    say(f"{DIST}: {', '.join(sorted(one.name for one in (root / DIST).iterdir()))}")
    say(f"committed and tagged; to publish: git push --atomic origin HEAD v{version}")


def checked(root, given):
    """The version that is to be; raises ``RefusedError``."""
    try:
        version = Version(given)
    except InvalidVersion:
        raise RefusedError(f"{given!r} is not a version such as 0.2.0") from None
    if str(version) != given:
        raise RefusedError(f"write the version {given} as {version}")
    if changed := git(root, "status", "--porcelain"):
        raise RefusedError(f"files differ from the last commit: {changed.splitlines()[0].strip()}")
    present = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    if git(root, "tag", "--list", f"v{version}"):
        raise RefusedError(f"the tag v{version} already exists")
    released = [Version(tag[1:]) for tag in git(root, "tag", "--list", "v[0-9]*").split()]
    if released or version != Version(present):  # the first release has the version that is there
        newest = max([Version(present), *released])
        if version <= newest:
            raise RefusedError(f"{version} is not newer than {newest}")
    entries(root)
    return version


def entries(root):
    """Raise ``RefusedError`` where the changelog has nothing to release."""
    text = (root / "CHANGELOG.md").read_text()
    if text.count(f"\n{HEADING}") != 1:
        raise RefusedError("CHANGELOG.md must have one heading “## Unreleased”")
    section = text.partition(f"\n{HEADING}")[2].partition("\n## ")[0]
    if not re.search(r"^- \S", section, re.M):
        raise RefusedError("CHANGELOG.md has no entries under “## Unreleased”")


def dated(text, version, now):
    """The changelog with the version's heading, and an empty one above it."""
    return text.replace(f"\n{HEADING}", f"\n{HEADING}\n## {version} - {now:%Y-%m-%d}\n", 1)


def build(root, out):
    """The wheel, the sdist, the list of parts, and the sums of all three. Built from what is
    committed, at the commit's time: whoever builds the tag gets the same bytes."""
    environ = {**os.environ, "SOURCE_DATE_EPOCH": git(root, "log", "-1", "--format=%ct")}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(out)]
    run(root, [*command, "--target", "sdist", "--target", "wheel"], "the build", environ)
    sbom = [sys.executable, "deploy/sbom.py", str(out / "kiln-sbom.json")]
    run(root, sbom, "the list of parts", environ)
    lines = [
        f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n"
        for one in sorted(out.iterdir())
    ]
    (out / "SHA256SUMS").write_text("".join(lines))


def put(made, dist):
    """What was made, in place of what earlier builds left."""
    shutil.rmtree(dist, ignore_errors=True)
    try:
        shutil.copytree(made, dist)
    except OSError as error:
        shutil.rmtree(dist, ignore_errors=True)
        raise RefusedError(f"{dist} cannot be written: {error}") from None


def git(root, *arguments):
    """What git answers; raises ``RefusedError`` with its last line."""
    return run(root, ["git", *arguments], f"git {arguments[0]}").strip()


def run(root, command, what, environ=None):
    """A command's output; where it fails, ``RefusedError`` with its last line."""
    done = subprocess.run(
        command, check=False, cwd=root, env=environ, capture_output=True, text=True
    )
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise RefusedError(f"{what} failed: {lines[-1]}")
    return done.stdout


def say(line):
    """For who releases."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
