"""Asks for known holes in the locked packages: ``python deploy/check_holes.py``.

Exit status 1 where there is one. Without a database at hand nothing is checked, which is said and
is no failure.
"""

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).with_name("requirements-dev.txt")
SHOWN_LINES = 3


def main():
    """Run pip-audit over the lock file, as it stands and without installing anything."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(LOCK), "--disable-pip"]
    command += ["--require-hashes", "--progress-spinner", "off", "--format", "json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    line, good = outcome(done.stdout, done.stderr)
    sys.stdout.write(f"known vulnerabilities in packages: {line}\n")
    sys.exit(0 if good else 1)


def outcome(output, errors):
    """One line for people, and whether it is good: from what pip-audit wrote."""
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return _without_answer(errors)
    holes = [(one, hole) for one in packages for hole in one.get("vulns", [])]
    if holes:
        named = "; ".join(f"{one['name']} {one['version']}: {hole['id']}" for one, hole in holes)
        return named, False
    checked = [one for one in packages if "skip_reason" not in one]
    if not checked:
        return "not checked: no vulnerability database is reachable", True
    skipped = len(packages) - len(checked)
    rest = f"; {skipped} not in the database" if skipped else ""
    return f"none in {len(checked)} packages{rest}", True


def _without_answer(errors):
    if "Connection" in errors or "Timeout" in errors or "timed out" in errors:
        return "not checked: no network", True
    last = " ".join(errors.strip().splitlines()[-SHOWN_LINES:])
    return f"pip-audit failed: {last or 'no output'}", False


if __name__ == "__main__":
    main()
