"""Paths of files in a bundle. The target's recipe names the files of a build."""

from __future__ import annotations

import re
import string

MANIFEST = "manifest.json"
GRAPH = "graph.json"
WRAPPER = "wrapper.py"
KERNELS = "kernels"
BUILD_RECORD = "build.json"
# Of the tuning run that wrote the bundle.
LEDGER, LOG, RESULTS = "ledger.jsonl", "autotune.log", "results.json"

#: The characters of a model's name that a folder name may contain.
SAFE_CHARACTERS = string.ascii_letters + string.digits + "_-"
MAX_NAME_LENGTH = 80
_DIGEST_LENGTH = 12  # characters of a digest
_KERNEL_NAME = re.compile(r"[A-Za-z0-9_]{1,200}")


def bundle_folder(name: str, digest: str) -> str:
    """Return a bundle's folder name: the portable characters of the name, and the beginning of the
    digest, which distinguishes names that become equal."""
    plain = re.sub(f"[^{SAFE_CHARACTERS}]+", "_", name)[
        : MAX_NAME_LENGTH - _DIGEST_LENGTH - 1
    ].strip("_-")
    return f"{plain or 'bundle'}-{digest[:_DIGEST_LENGTH]}"


def kernel_folder(kernel: str) -> str:
    """Return the folder of a kernel: its source, and a folder for each target.

    Raises ``ValueError`` for a name that could lead outside the bundle; no generated kernel has
    one.
    """
    if not _KERNEL_NAME.fullmatch(kernel):
        raise ValueError(f"{kernel!r} is not a valid kernel name")
    return f"{KERNELS}/{kernel}"


def source_path(kernel: str, source_file: str) -> str:
    """Return the path of that kernel's source."""
    return f"{kernel_folder(kernel)}/{source_file}"


def build_folder(kernel: str, target: str) -> str:
    """Return the folder of a kernel's build for a target: its files and its record."""
    return f"{kernel_folder(kernel)}/{target}"
