"""Many builds at once: in order, each once, stopped together, and safe beside other processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.model import Build, Toolchain
from scheduler.build.parallel import BuildProgress, BuildRequest, build_all
from scheduler.errors import Rejected
from scheduler.sandbox import Sandbox
from scheduler.sandbox.model import SYSTEM_LIBRARIES
from scheduler.sandbox.process import Cancellation, Cancelled, Limits, run
from tests.unit.build.sources import ADD


def request(toolchain: Toolchain, number: int) -> BuildRequest:
    source = ADD.replace("1.0f", f"{number}.0f")
    return BuildRequest(source, "add_one", targets.find("gfx942"), toolchain)


def test_results_come_in_order_and_equal_requests_are_compiled_once(
    toolchain: Toolchain, cache: CodeCache
) -> None:
    bad = BuildRequest("nonsense", "x", targets.find("gfx942"), toolchain)
    requests = [request(toolchain, n) for n in (3, 1, 2, 1)] + [bad]
    seen: list[BuildProgress] = []
    results = build_all(requests, cache, workers=2, on_progress=seen.append)
    assert isinstance(results[4], Rejected)
    digests = [each.source_digest for each in results if isinstance(each, Build)]
    assert digests[1] == digests[3]
    assert len(set(digests)) == 3
    assert [each.done for each in seen] == [1, 2, 3, 4, 5]
    assert {each.index for each in seen} == set(range(5))
    assert len(list((cache.root / "builds").glob("*/*"))) == 4


def test_what_progress_raises_stops_the_rest(toolchain: Toolchain, cache: CodeCache) -> None:
    def stop(_: BuildProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_all([request(toolchain, n) for n in range(20)], cache, workers=2, on_progress=stop)
    assert len(list((cache.root / "builds").glob("*/*"))) < 20
    assert not list((cache.root / "tmp").iterdir())


def test_what_a_killed_process_left_is_removed_a_day_later(
    toolchain: Toolchain, cache: CodeCache
) -> None:
    old, new = cache.root / "tmp" / "old", cache.root / "tmp" / "new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "kernel.s").write_text("half")
    os.utime(old, (0, 0))
    build_all([request(toolchain, 1)], cache, workers=1)
    assert [each.name for each in (cache.root / "tmp").iterdir()] == ["new"]


def small_programs(folder: Path) -> Sandbox:
    """A fence around the machine's small programs, which work in this folder."""
    programs = (Path("/bin"), Path("/usr/bin"))
    return Sandbox(write=(folder,), execute=(*programs, *SYSTEM_LIBRARIES))


def test_cancelling_ends_a_running_process_and_its_children(tmp_path: Path) -> None:
    """The child holds the output open, so that ``run`` returns only when it is gone as well."""
    started = tmp_path / "started"
    script = f"sleep 600 & touch {started}; wait"
    cancellation = Cancellation()
    ended: list[str] = []

    def work() -> None:
        try:
            run(
                ["/bin/sh", "-c", script],
                tmp_path,
                {"PATH": "/bin:/usr/bin"},
                Limits(),
                cancellation,
                small_programs(tmp_path),
            )
        except Cancelled:
            ended.append("cancelled")

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive() and not started.exists():
        thread.join(0.01)
    assert started.exists()
    cancellation.cancel()
    thread.join(60)
    assert not thread.is_alive()
    assert ended == ["cancelled"]
    with pytest.raises(Cancelled):
        run(["/bin/true"], tmp_path, {}, Limits(), cancellation)


def test_a_process_over_its_time_is_ended_with_its_children(tmp_path: Path) -> None:
    done = run(
        ["/bin/sh", "-c", "echo before; sleep 600; echo after"],
        tmp_path,
        {"PATH": "/bin:/usr/bin"},
        Limits(seconds=0.2),
        policy=small_programs(tmp_path),
    )
    assert not done.ok
    assert done.failure == "stopped after 0.2 s"
    assert done.output == "before\n"


@pytest.mark.full
def test_processes_that_build_the_same_at_once_agree(
    toolchain: Toolchain, cache: CodeCache, tmp_path: Path
) -> None:
    """They race for one entry, over a damaged one, and each gets a whole result."""
    script = f"""
import sys
from pathlib import Path
from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.toolchains import bundled_clang
from tests.unit.build.sources import ADD
cache = CodeCache(Path({str(cache.root)!r}))
sys.stdin.readline()
for target in ("gfx942", "gfx1100", "gfx1201"):
    result = build(ADD, "add_one", targets.find(target), bundled_clang(cache), cache)
    files = sorted(path.name for path in result.directory.iterdir())
    print(target, result.code_digest, *files)
"""
    (damaged,) = build_all([request(toolchain, 1)], cache, workers=1)
    assert isinstance(damaged, Build)
    (damaged.directory / "kernel.so").write_bytes(b"")
    root = Path(__file__).parents[3]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            text=True,
        )
        for _ in range(4)
    ]
    outputs = {process.communicate("go\n", timeout=120)[0] for process in processes}
    assert len(outputs) == 1
    (text,) = outputs
    assert text.count("entry.json kernel.hsaco kernel.s kernel.so") == 3
    assert not list((cache.root / "tmp").iterdir())
