"""Where files lie in a bundle. What the files of a build are called says the target's recipe."""

from __future__ import annotations

MANIFEST = "manifest.json"
GRAPH = "graph.json"
WRAPPER = "wrapper.py"
KERNELS = "kernels"
BUILD_RECORD = "build.json"


def kernel_folder(kernel: str) -> str:
    """What belongs to a kernel: its source, and a folder for each target."""
    return f"{KERNELS}/{kernel}"


def source_path(kernel: str, source_file: str) -> str:
    """The source of a kernel of that name."""
    return f"{kernel_folder(kernel)}/{source_file}"


def build_folder(kernel: str, target: str) -> str:
    """The files of a kernel's build for a target, with its record."""
    return f"{kernel_folder(kernel)}/{target}"
