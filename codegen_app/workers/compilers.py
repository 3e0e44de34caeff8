"""The compilers and the torch of this host, and the cache of compiled code."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from pathlib import Path

from django.conf import settings

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.build.toolchains import Search, ToolchainResult, find_toolchains, pick_toolchain


def code_cache() -> CodeCache:
    """Return the cache of this host's compiled code."""
    return CodeCache(settings.CODE_CACHE_DIR)


@cache
def toolchains() -> tuple[ToolchainResult, ...]:
    """Return every compiler of this host in order of preference, or why it is missing."""
    rocm = Path(settings.ROCM_PATH) if settings.ROCM_PATH else None
    return find_toolchains(Search(rocm_path=rocm, path=settings.COMPILER_PATH, cache=code_cache()))


def available_toolchains() -> tuple[Toolchain, ...]:
    """Return the compilers that this host has."""
    return tuple(toolchain for toolchain in toolchains() if isinstance(toolchain, Toolchain))


def toolchain_for(target: str, source_file: str = "") -> Toolchain:
    """Return the compiler that builds ``source_file`` for a target here; without a name, the
    sources of the target's base scheduling. Raises ``UserError`` with reasons if there is none."""
    return pick_toolchain(toolchains(), targets.find(target), source_file)


def torch_version() -> str:
    """Return the installed version of torch, or "". torch is not imported, which takes seconds."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""
