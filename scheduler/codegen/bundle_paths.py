"""Where files lie in a bundle. What the files of a build are called says the target's recipe."""

from __future__ import annotations

import re
import string

MANIFEST = "manifest.json"
GRAPH = "graph.json"
WRAPPER = "wrapper.py"
KERNELS = "kernels"
BUILD_RECORD = "build.json"
# Of a tuning run that wrote the bundle.
LEDGER, LOG, RESULTS = "ledger.jsonl", "autotune.log", "results.json"

#: All that a folder's name is made of where it comes from a model's.
SAFE_CHARACTERS = string.ascii_letters + string.digits + "_-"
MAX_NAME_LENGTH = 80
_DIGEST_LENGTH = 12  # of a digest
_KERNEL_NAME = re.compile(r"[A-Za-z0-9_]{1,200}")


def bundle_folder(name: str, digest: str) -> str:
    """What a bundle's folder is called: letters of the name that are plain on any system, and the
    beginning of the digest, which tells those apart that are left the same."""
    plain = re.sub(f"[^{SAFE_CHARACTERS}]+", "_", name)[
        : MAX_NAME_LENGTH - _DIGEST_LENGTH - 1
    ].strip("_-")
    return f"{plain or 'bundle'}-{digest[:_DIGEST_LENGTH]}"


def kernel_folder(kernel: str) -> str:
    """What belongs to a kernel: its source, and a folder for each target.

    Raises ``ValueError`` for a name that could lead elsewhere; no kernel of ours has such a one.
    """
    if not _KERNEL_NAME.fullmatch(kernel):
        raise ValueError(f"{kernel!r} is no name of a kernel")
    return f"{KERNELS}/{kernel}"


def source_path(kernel: str, source_file: str) -> str:
    """The source of a kernel of that name."""
    return f"{kernel_folder(kernel)}/{source_file}"


def build_folder(kernel: str, target: str) -> str:
    """The files of a kernel's build for a target, with its record."""
    return f"{kernel_folder(kernel)}/{target}"
