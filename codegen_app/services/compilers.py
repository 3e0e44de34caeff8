"""The compilers of this host, and where compiled code is kept."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.conf import settings

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.build.toolchains import Search, ToolchainResult, find_toolchains, pick_toolchain


def code_cache() -> CodeCache:
    """The compiled code of this host."""
    return CodeCache(settings.CODE_CACHE_DIR)


@cache
def toolchains() -> tuple[ToolchainResult, ...]:
    """Every compiler of this host, in order of preference, or why it is not there."""
    rocm = Path(settings.ROCM_PATH) if settings.ROCM_PATH else None
    return find_toolchains(Search(rocm_path=rocm, path=settings.COMPILER_PATH, cache=code_cache()))


def available_toolchains() -> tuple[Toolchain, ...]:
    """The compilers that are here."""
    return tuple(one for one in toolchains() if isinstance(one, Toolchain))


def toolchain_for(target: str, source_file: str = "") -> Toolchain:
    """The compiler that builds such sources for a target here, those of its base scheduling where
    no name is given; ``UserError`` with reasons where none does."""
    return pick_toolchain(toolchains(), targets.find(target), source_file)
