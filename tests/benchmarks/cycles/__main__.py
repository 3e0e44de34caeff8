"""The model held against what is known.

    python -m tests.benchmarks.cycles             kernels of others and ours, published rates, the
                                                  H200's times of the hand-made kernels
    python -m tests.benchmarks.cycles gates       the gates' figures, and what is better or worse
      --raise                                     writes those that are better
      --write                                     writes all of them, worse ones too
    python -m tests.benchmarks.cycles defaults    the choice without measurement beside the best
                                                  candidate, for shapes of real models (--help)
    python -m tests.benchmarks.cycles peers --site DIR
                                                  our defaults beside Triton's kernels (--help)

Exits with 1 where a kernel that was designed without conflicts has some, the rankings of measured
and modelled variants differ, a gate is worse, or a bar is missed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.targets import find
from tests.benchmarks.cycles import measured, others
from tests.benchmarks.cycles.defaults import main as defaults
from tests.benchmarks.cycles.peers.command import main as peers
from tests.support.families import figures, modelled
from tests.support.modelled_gates import FILE, GATES, better, held, missed, read, worse


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def rates(toolchain: Toolchain, cache: CodeCache) -> bool:
    """The tables; whether all holds."""
    rows = [*others.of_others(), *others.of_ours(toolchain, cache)]
    for line in others.table(rows):
        say(line)
    free = all(row.conflict == 1 for row in rows if not row.kernel.startswith("Kiln"))
    if not measured.MEASURED.is_file():
        say("\nno times of an H200 are here: tests/benchmarks/cycles/h200.py measures them")
        return free
    found = list(measured.beside("gfx942", toolchain, cache))
    for line in measured.table(found):
        say(line)
    return free and all(row.correlation >= measured.LEAST_CORRELATION for row in found)


def gates(toolchain: Toolchain, cache: CodeCache, *, lift: bool, write: bool) -> bool:
    """Each gate's figures; whether none is worse."""
    ratchets = (
        {target: dict(families) for target, families in read().items()} if FILE.is_file() else {}
    )
    holds = True
    for gate in GATES:
        target = find(gate.target)
        of_family = figures(
            gate.family, target, modelled(gate.family.plan(), target, toolchain, cache)
        )
        found = held(gate.family, of_family)
        before = ratchets.setdefault(gate.target, {}).get(gate.family.name, {})
        lines = [
            *missed(gate, of_family),
            *worse(found, before),
            *(f"better: {line}" for line in better(found, before)),
        ]
        say(f"{gate.title}: {found} {'; '.join(lines)}")
        is_worse = any(worse(found, before))
        holds = holds and not is_worse and not missed(gate, of_family)
        if write or (lift and any(better(found, before)) and not is_worse):
            ratchets[gate.target][gate.family.name] = found
    if lift or write:
        FILE.write_text(json.dumps(ratchets, indent=2) + "\n")
    return holds or write


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["peers"]:
        return peers(arguments[1:])
    if arguments[:1] == ["defaults"]:
        return defaults(arguments[1:])
    known = {"gates", "--raise", "--write"}
    if not set(arguments) <= known or (arguments and arguments[0] != "gates"):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="kiln-cycles-") as folder:
        cache = CodeCache(Path(folder))
        target = find("gfx942")
        search = Search(Path("/opt/rocm"), "", cache)
        toolchain = pick_toolchain(find_target_toolchains(target, search), target, "source.hip")
        if arguments:
            lift, write = "--raise" in arguments, "--write" in arguments
            return 0 if gates(toolchain, cache, lift=lift, write=write) else 1
        return 0 if rates(toolchain, cache) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
