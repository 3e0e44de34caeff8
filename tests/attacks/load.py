"""Many readers at once: how long a page takes then.

    python -m tests.attacks.load --readers 200 --seconds 30 [--accounts 20] [--no-writing]

Serves a sample model as the demo does and reads it in a closed loop, from the same cores; first
while nothing is written, then while a worker writes. Fails where a page of a list or a kernel
takes longer than 500 ms for 5% of the readers, or where any answer is no page.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.attacks import load_client, load_site

GOAL_S = 0.5
HELD = ("overview", "graphs", "kernels", "runs", "selections", "kernel")


def main() -> int:
    """The figures; 1 where they do not hold."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="kiln-load-") as folder:
        Path(folder).chmod(0o755)  # the database's user comes through
        with load_site.served(Path(folder), options.graph, options.accounts) as site:
            say(", ".join(f"{len(pages)} {kind}" for kind, pages in site.pages.items()))
            good = True
            phases = [("nothing is written", nullcontext())]
            if options.writing:
                phases.append(("a worker writes", load_site.writing(site)))
            for title, meanwhile in phases:
                with meanwhile:
                    held = {k: v for k, v in site.pages.items() if options.all or k in HELD}
                    _warm(site, held, options.visits)
                    before = _cpu_s(site.web.pid)
                    answers = _read(site, held, options, options.seconds)
                    cpu_s = _cpu_s(site.web.pid) - before
                good &= _report(title, answers, options.seconds, site, cpu_s)
    return 0 if good else 1


def _read(
    site: load_site.Site,
    pages: Mapping[str, Sequence[str]],
    options: argparse.Namespace,
    seconds: float,
) -> load_client.Answers:
    return asyncio.run(
        load_client.read(
            site.host, site.port, pages, options.readers, seconds, site.cookies, options.seed
        )
    )


def _warm(site: load_site.Site, pages: Mapping[str, Sequence[str]], visits: int) -> None:
    """Pages that were rendered once by each process, as after a while of use."""
    addresses = [address for kind in pages.values() for address in kind] * visits
    asyncio.run(load_client.visit(site.host, site.port, addresses, 16, site.cookies[0]))


def _report(
    title: str,
    answers: load_client.Answers,
    seconds: float,
    site: load_site.Site,
    cpu_s: float,
) -> bool:
    everything = [one for times in answers.seconds.values() for one in times]
    say(
        f"\n{title}: {len(everything) / seconds:.0f} pages a second,"
        f" {answers.bytes / seconds / 1e6:.1f} MB a second, errors: {dict(answers.errors) or 0},"
        f" web server: {1e3 * cpu_s / max(1, len(everything)):.1f} ms of a core a page,"
        f" {_memory_mib(site.web.pid):.0f} MiB"
    )
    good = not answers.errors
    for kind, times in {**answers.seconds, "all": everything}.items():
        p50, p95, p99 = (_percentile(times, share) * 1e3 for share in (50, 95, 99))
        slow = p95 > GOAL_S * 1e3
        good &= not (slow and kind in HELD)
        say(
            f"  {kind:<10} {len(times):>6} pages  p50 {p50:6.0f}  p95 {p95:6.0f}  p99 {p99:6.0f} ms"
            f"{'  over the goal' if slow else ''}"
        )
    return good


def say(line: str) -> None:
    """A line, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _percentile(times: Sequence[float], share: int) -> float:
    return statistics.quantiles(times, n=100)[share - 1] if len(times) > 1 else sum(times)


def _memory_mib(root: int) -> float:
    """What the web server's processes hold together."""
    return sum(map(_pss_kib, _processes(root))) / 1024


def _cpu_s(root: int) -> float:
    """What they have computed so far."""
    total = 0
    for pid in _processes(root):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def _processes(root: int) -> list[int]:
    pids = [root]
    for pid in pids:
        children = Path(f"/proc/{pid}/task/{pid}/children")
        pids += [int(child) for child in children.read_text().split()]
    return pids


def _pss_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--visits", type=int, default=6, help="of each page, before it counts")
    parser.add_argument("--accounts", type=int, default=0, help="0: anonymous readers")
    parser.add_argument("--graph", default="gpt2_2layer")
    parser.add_argument("--all", action="store_true", help="nodes, graphs and runs too")
    parser.add_argument("--no-writing", dest="writing", action="store_false")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
