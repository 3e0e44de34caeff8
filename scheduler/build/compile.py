"""Build one source for one target: listing, code object and shared library, in one compilation."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scheduler.build.cache import CodeCache, Entry, digest
from scheduler.build.flags import DEFAULT_FLAGS, Flags
from scheduler.build.model import Build, Toolchain
from scheduler.build.recipe import Recipe, recipe_of
from scheduler.build.sandbox_paths import toolchain_sandbox
from scheduler.build.toolchains import TOOL_ENVIRONMENT
from scheduler.codegen.languages import language_of
from scheduler.errors import Interrupted, MachineError, Rejected, Stage
from scheduler.sandbox import Sandbox
from scheduler.sandbox.process import Cancellation, Limits, run
from scheduler.targets import Target

# Space that a build may take besides its files: the tools' own caches.
_MIN_FREE_BYTES = 64 << 20
_ANY_ERROR = re.compile(r"^.*?\b(?:fatal )?error: .*$", re.MULTILINE)
# Tool messages about the machine. A line about a source begins with its name, one that shows the
# source with a space or a number: no text of a kernel can match.
_MACHINE_ERROR = re.compile(
    r"^(?:[\w./+-]*(?:clang|lld|zig|hipcc)[\w.+-]*: )?(?:fatal )?(?:LLVM )?(?:error|ERROR): "
    r"(?!.*\bsource\.(?:hip|py):).*"
    r"(?:No space left on device|Disk quota exceeded|Input/output error|Too many open files"
    r"|Read-only file system|Resource temporarily unavailable|NoSpaceLeft|checking cache failed"
    r"|sub-compilation of \w+ failed"
    r"|unable to execute command: (?:Killed|Terminated|Hangup|Interrupt|Bus error)).*$",
    re.MULTILINE,
)
# The driver's message when its compiler or linker crashed: a bug, or out of memory.
_CRASH = re.compile(
    r"^[\w./+-]*(?:clang|lld|zig|hipcc)[\w.+-]*: (?:fatal )?error: "
    r"(?:unable to execute command: |.*command failed (?:due to signal|with exit code (?!1\b)))",
    re.MULTILINE,
)


def build(
    source: str,
    name: str,
    target: Target,
    toolchain: Toolchain,
    cache: CodeCache,
    flags: Flags = DEFAULT_FLAGS,
    limits: Limits = Limits(),
    cancellation: Cancellation | None = None,
    *,
    source_file: str = "",
    trust_failures: bool = True,
) -> Build | Rejected:
    """Build a source, or return the cached build.

    ``name`` is the symbol that the library must export; ``source_file`` tells the language (as for
    ``recipe_of``). A source that does not compile, or that takes the compiler over its limits, is
    ``Rejected`` with its log; failures of the first kind are cached too, and retried without
    ``trust_failures``. A compiler that was killed from outside, or ran out of room, says nothing
    about the source: ``Interrupted``. A failure that names no line of the source is checked twice,
    since a disk may have been full for a moment. Raises ``MachineError`` for a cache that cannot be
    written or has no room, ``Cancelled`` when stopped.
    """
    recipe = recipe_of(target, source_file)
    if obstacle := recipe.obstacle(toolchain):
        reason = f"the {toolchain.name} compiler cannot build for {target.name}: {obstacle}"
        return Rejected(Stage.COMPILE, reason)
    if ignored := recipe.ignored_flags(flags):
        language = language_of(recipe.source_file)
        problem = f"{' '.join(ignored)} has no effect in {language} for {target.name}"
        return Rejected(Stage.COMPILE, f"{problem}: remove it")
    # Everything that decides the output: the commands, but not the compiler's location.
    steps = recipe.steps(target, toolchain.without_paths(), flags, name)
    key = digest(
        *(recipe.version, source, name, target.name, platform.machine()),
        *(toolchain.name, toolchain.version, toolchain.driver_digest),
        recipe.included_digest(source),
        *("\0".join(step.command) for step in steps),
    )
    entry = cache.get(key)
    if entry is not None and (trust_failures or "reason" not in entry.record):
        return _entry_build(entry, recipe, target, toolchain, flags, source, cached=True)
    for is_last in (False, True):
        with cache.workspace() as directory:
            runner = _CommandRunner(recipe, toolchain, directory, cache, limits, cancellation)
            runner.check_free_space()
            (directory / recipe.source_file).write_text(source)
            recipe.prepare(directory, toolchain)
            rejected = _run_recipe(runner, name, target, toolchain, flags)
            if rejected is None:
                code = (directory / recipe.code_file).read_bytes()
                record = {
                    "log": runner.log,
                    "duration_s": runner.seconds,
                    "code_digest": hashlib.sha256(code).hexdigest(),
                    "resources": recipe.resources(directory, target),
                }
                files = {file: directory / file for file in recipe.files_with(toolchain)}
                entry = cache.put(key, files, record)
                return _entry_build(entry, recipe, target, toolchain, flags, source, cached=False)
            if runner.killed or isinstance(rejected, Interrupted):
                return rejected
            if is_last or runner.has_source_error:
                cache.put(key, {}, {"reason": rejected.reason, "log": rejected.detail})
                return rejected
    raise AssertionError("the last one returns")


@dataclass
class _CommandRunner:
    """Runs one command after the other and keeps their output and time."""

    recipe: Recipe
    toolchain: Toolchain
    directory: Path
    cache: CodeCache
    limits: Limits
    cancellation: Cancellation | None
    log: str = ""
    seconds: float = 0.0
    killed: bool = False  # over its limits, or crashed: perhaps not because of the source
    environment: dict[str, str] = field(init=False)
    sandbox: Sandbox = field(init=False)

    def __post_init__(self) -> None:
        compilers_cache = self.cache.compiler_cache()
        self.sandbox = toolchain_sandbox(self.toolchain, self.directory, compilers_cache)
        self.environment = {
            **TOOL_ENVIRONMENT,
            "HOME": str(self.directory),
            "TMPDIR": str(self.directory),
            "ZIG_GLOBAL_CACHE_DIR": str(compilers_cache),
            "ZIG_LOCAL_CACHE_DIR": str(self.directory / "zig"),
        }

    @property
    def has_source_error(self) -> bool:
        """Whether the tools found an error at a line of the source."""
        diagnostics = self.recipe.diagnostics(self.log)
        return any(diagnostic.severity == "error" for diagnostic in diagnostics)

    def check_free_space(self) -> None:
        """Raise ``MachineError`` if a build may run out of room: without it, tools fail in
        unpredictable ways, or not at all."""
        root = self.cache.root
        free = shutil.disk_usage(root).free
        if free < _MIN_FREE_BYTES:
            raise MachineError(
                f"no space left for the code cache in {root}: {free >> 20} MiB are free, a build"
                f" needs {_MIN_FREE_BYTES >> 20}: free some space, or choose another folder"
            )

    def run_command(self, command: Sequence[str], output: str = "") -> Rejected | None:
        """Return None if the command succeeded; its output then goes into the file ``output``, if
        one is named. The time is wall time of the compiler's process."""
        start = time.perf_counter()
        process = run(
            *(command, self.directory, self.environment, self.limits, self.cancellation),
            policy=self.sandbox,
        )
        self.seconds += time.perf_counter() - start
        if process.ok and output:
            (self.directory / output).write_text(process.output)
            return None
        self.log += process.output
        if process.ok:
            return None
        self.killed = bool(process.failure or _CRASH.search(process.output))
        if process.interrupted:
            reason = f"the compiler was {process.failure} from outside Kiln"
            return Interrupted(Stage.COMPILE, reason, self.log)
        if process.failure:
            return Rejected(Stage.COMPILE, f"the compiler was {process.failure}", self.log)
        if machine_error := _MACHINE_ERROR.search(process.output):
            reason = f"the compiler: {machine_error[0].strip()}"
            return Interrupted(Stage.COMPILE, reason, self.log)
        match = _ANY_ERROR.search(process.output)
        reason = (
            match[0].strip() if match else f"the compiler failed with status {process.returncode}"
        )
        for diagnostic in self.recipe.diagnostics(process.output):
            if diagnostic.severity == "error":
                reason = f"line {diagnostic.line}: {diagnostic.message}"
                break
        return Rejected(Stage.COMPILE, reason, self.log)


def _run_recipe(
    runner: _CommandRunner, name: str, target: Target, toolchain: Toolchain, flags: Flags
) -> Rejected | None:
    """Make the recipe's files."""
    recipe, directory = runner.recipe, runner.directory
    for step in recipe.steps(target, toolchain, flags, name):
        if step.before is not None:
            step.before(directory)
        if (rejected := runner.run_command(step.command, step.output)) is not None:
            return rejected
    for file in recipe.files_with(toolchain):
        if not (directory / file).is_file() or not (directory / file).stat().st_size:
            return Interrupted(Stage.COMPILE, f"the compiler did not write {file}", runner.log)
    reason = recipe.load_error(directory, name)
    return Rejected(Stage.COMPILE, reason, runner.log) if reason else None


def _entry_build(
    entry: Entry,
    recipe: Recipe,
    target: Target,
    toolchain: Toolchain,
    flags: Flags,
    source: str,
    cached: bool,
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
        resources=record["resources"],
        cached=cached,
        source_file=recipe.source_file,
    )
