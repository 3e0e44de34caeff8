"""One source, one target: its listing, code object and shared library, from one compilation."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from scheduler.build import bundle_format, commands
from scheduler.build.cache import CodeCache, Entry, digest
from scheduler.build.diagnostics import first_error
from scheduler.build.elf import dynamic_symbols
from scheduler.build.flags import DEFAULT, Flags
from scheduler.build.metadata import resources
from scheduler.build.model import Build, Resources, Toolchain
from scheduler.build.process import Cancellation, Completed, Limits, run
from scheduler.build.toolchains import HEADERS, TOOL_ENVIRONMENT
from scheduler.outcome import Rejected, Stage
from scheduler.targets import Target

# Counts up when what is made beside the commands changes: the bundle, the record, the checks.
_RECIPE = "3"
# What a library for a GPU may leave open: the HIP runtime's functions, and what compilers call
# of the C library by themselves.
_OFFERED = re.compile(r"(__)?hip[A-Z]\w*|__cxa_(atexit|finalize)|mem(cpy|set|move|cmp)")


def build(
    source: str,
    name: str,
    target: Target,
    toolchain: Toolchain,
    cache: CodeCache,
    flags: Flags = DEFAULT,
    limits: Limits = Limits(),
    cancellation: Cancellation | None = None,
) -> Build | Rejected:
    """Build a HIP source, or find it built.

    ``name`` is the symbol that the library must export. A source that does not compile, or that
    takes the compiler over its limits, is ``Rejected`` with its log; the first kind is remembered
    too. Raises ``UserError`` for a cache that cannot be written, ``Cancelled`` when stopped.
    """
    if target.family == "cpu" and not toolchain.host:
        reason = f"the {toolchain.name} compiler has no C library for {target.name}"
        return Rejected(Stage.COMPILE, reason, "the bundled compiler has one")
    key = _key(source, name, target, toolchain, flags)
    entry = cache.get(key)
    if entry is not None:
        return _result(entry, target, toolchain, flags, source, cached=True)
    with cache.workspace() as directory:
        steps = _Steps(directory, cache, limits, cancellation)
        _prepare(directory, source, toolchain)
        made = _make(steps, name, target, toolchain, flags)
        if isinstance(made, Rejected):
            if not steps.lost:
                cache.put(key, {}, {"reason": made.reason, "log": made.detail})
            return made
        record = {
            "log": steps.log,
            "duration_s": steps.seconds,
            "code_digest": hashlib.sha256((directory / made[-1]).read_bytes()).hexdigest(),
            "resources": {
                function: asdict(one)
                for function, one in resources(
                    (directory / commands.LISTING).read_text(), target
                ).items()
            },
        }
        entry = cache.put(key, {file: directory / file for file in made}, record)
    return _result(entry, target, toolchain, flags, source, cached=False)


def to_json(result: Build) -> dict[str, Any]:
    """What build.json holds, field by field."""
    return {
        "toolchain": {
            "name": result.toolchain.name,
            "version": result.toolchain.version,
            "path_digest": result.toolchain.path_digest,
        },
        "flags": list(result.flags),
        "source_digest": result.source_digest,
        "code_digest": result.code_digest,
        "duration_s": result.duration_s,
        "log": result.log,
        "resources": {name: asdict(one) for name, one in result.resources.items()},
    }


@dataclass
class _Steps:
    """Runs one command after the other and keeps what they said and took."""

    directory: Path
    cache: CodeCache
    limits: Limits
    cancellation: Cancellation | None
    log: str = ""
    seconds: float = 0.0
    lost: bool = False
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.environment = {
            **TOOL_ENVIRONMENT,
            "HOME": str(self.directory),
            "TMPDIR": str(self.directory),
            "ZIG_GLOBAL_CACHE_DIR": str((self.cache.root / "zig").absolute()),
            "ZIG_LOCAL_CACHE_DIR": str(self.directory / "zig"),
        }

    def do(self, command: Sequence[str]) -> Rejected | None:
        """None when the command succeeded. The time is wall time of the compiler's process."""
        start = time.perf_counter()
        done = run(command, self.directory, self.environment, self.limits, self.cancellation)
        self.seconds += time.perf_counter() - start
        self.log += done.output
        if done.ok:
            return None
        self.lost = bool(done.lost)
        return Rejected(Stage.COMPILE, _reason(done), self.log)


def _reason(done: Completed) -> str:
    if done.lost:
        return f"the compiler was {done.lost}"
    return first_error(done.output) or f"the compiler failed with status {done.returncode}"


def _prepare(directory: Path, source: str, toolchain: Toolchain) -> None:
    (directory / commands.SOURCE).write_text(source)
    (directory / "include").symlink_to(HEADERS)
    if toolchain.builtin_headers:
        (directory / "builtin").symlink_to(toolchain.builtin_headers)


def _plan(target: Target, toolchain: Toolchain, flags: Flags) -> tuple[tuple[str, ...], ...]:
    """The commands, in order."""
    if target.family == "cpu":
        return (
            commands.emulation_listing(target, toolchain, flags),
            commands.emulation_library(toolchain, flags),
        )
    return (
        commands.listing(target, toolchain, flags),
        commands.code_object(target, toolchain),
        commands.linked_code_object(toolchain),
        commands.host(target, toolchain, flags),
        commands.library(toolchain),
    )


def _make(
    steps: _Steps, name: str, target: Target, toolchain: Toolchain, flags: Flags
) -> tuple[str, ...] | Rejected:
    """The files made, the one that holds the code last."""
    for command in _plan(target, toolchain, flags):
        if commands.BUNDLE in command:
            body = (steps.directory / commands.CODE_OBJECT).read_bytes()
            bundle = bundle_format.pack({target.name: body})
            (steps.directory / commands.BUNDLE).write_bytes(bundle)
        lost = steps.do(command)
        if lost:
            return lost
    lost = _unloadable(steps, name, target)
    if lost:
        return lost
    if target.family == "cpu":
        return (commands.LISTING, commands.LIBRARY)
    return (commands.LISTING, commands.LIBRARY, commands.CODE_OBJECT)


def _unloadable(steps: _Steps, name: str, target: Target) -> Rejected | None:
    """What would only be found when the library is loaded."""
    symbols = dynamic_symbols((steps.directory / commands.LIBRARY).read_bytes())
    if name not in symbols.defined:
        return Rejected(Stage.COMPILE, f"the source does not export {name}", steps.log)
    strangers = sorted(each for each in symbols.undefined if not _OFFERED.fullmatch(each))
    if target.family != "cpu" and strangers:
        reason = f"nothing offers {', '.join(strangers)} when the library is loaded"
        return Rejected(Stage.COMPILE, reason, steps.log)
    return None


def _key(source: str, name: str, target: Target, toolchain: Toolchain, flags: Flags) -> str:
    """Everything that decides the output; of the commands all but where the compiler lies."""
    anywhere = replace(
        toolchain, clang=("clang",), linker=("ld.lld",), host=("bin/cc",) if toolchain.host else ()
    )
    plan = _plan(target, anywhere, flags)
    return digest(
        *(_RECIPE, source, name, target.name, commands.host_machine()),
        *(toolchain.name, toolchain.version, toolchain.path_digest),
        *("\0".join(command) for command in plan),
    )


def _result(
    entry: Entry, target: Target, toolchain: Toolchain, flags: Flags, source: str, cached: bool
) -> Build | Rejected:
    record = entry.record
    if "reason" in record:
        return Rejected(Stage.COMPILE, record["reason"], record["log"])
    return Build(
        target=target.name,
        toolchain=toolchain,
        flags=flags.values,
        source_digest=hashlib.sha256(source.encode()).hexdigest(),
        code_digest=record["code_digest"],
        duration_s=record["duration_s"],
        log=record["log"],
        directory=entry.directory,
        resources={name: Resources(**one) for name, one in record["resources"].items()},
        cached=cached,
    )
