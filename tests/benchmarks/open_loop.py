"""Page requests at a fixed rate, whether or not earlier ones are answered:

    python -m tests.benchmarks.open_loop http://127.0.0.1:8000 --rate 20 --seconds 60

The time of a request counts from the moment when it was due, so a page that takes long delays all
that wait behind it, as for people. Without addresses it requests the pages of the site's bar and
the first rows of their tables. Exits with 1 if the 95th percentile is above the limit, or if a
request failed.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

P95_MS = 300
_SENDERS = 64
_ROWS = 3  # of each table, whose pages are requested too
_DETAIL = re.compile(r'href="(/(?:graphs|nodes|kernels|runs|series|alerts|changes)/[\w.-]+)["?]')
_SEED = 1


@dataclass(frozen=True)
class Load:
    """The times of requests in milliseconds, by address, and what failed."""

    times: dict[str, list[float]]
    failures: tuple[str, ...]

    @property
    def all_times(self) -> list[float]:
        """The times of all addresses, sorted."""
        return sorted(ms for times in self.times.values() for ms in times)

    @property
    def p95_ms(self) -> float:
        """The 95th percentile."""
        times = self.all_times
        return times[min(len(times) - 1, int(0.95 * len(times)))]

    def report(self, limit_ms: float) -> list[str]:
        """The result in lines, with the slowest addresses."""
        times = self.all_times
        lines = [
            f"{len(times)} requests: median {statistics.median(times):.0f} ms, 95% within"
            f" {self.p95_ms:.0f} ms (limit {limit_ms:.0f}; {self.p95_ms / limit_ms:.2f} of it),"
            f" longest {times[-1]:.0f} ms, {len(self.failures)} failed"
        ]
        slowest = sorted(self.times.items(), key=lambda item: -max(item[1]))
        lines += [
            f"  {address:<48} median {statistics.median(ms):5.0f} ms, longest {max(ms):5.0f} ms"
            for address, ms in slowest[:10]
        ]
        return lines + [f"  failed: {failure}" for failure in self.failures[:10]]


def measure(url: str, addresses: Sequence[str], rate: float, seconds: float) -> Load:
    """Request addresses in a random order, repeatable, at that rate."""
    choice = random.Random(_SEED)
    order = [choice.choice(addresses) for _ in range(int(rate * seconds))]
    times: dict[str, list[float]] = defaultdict(list)
    failures: list[str] = []
    begun = time.monotonic() + 1

    def send(number: int, address: str) -> None:
        due = begun + number / rate
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            fetch(url + address)
        except OSError as error:
            failures.append(f"{address}: {error}")
        times[address].append(1000 * (time.monotonic() - due))

    with ThreadPoolExecutor(_SENDERS) as senders:
        list(senders.map(send, range(len(order)), order))
    return Load(times, tuple(failures))


def fetch(url: str) -> bytes:
    """Return a page; raises ``OSError`` for anything but a page."""
    request = Request(url, headers={"Accept-Encoding": "gzip"})
    with urlopen(request, timeout=60) as response:
        content: bytes = response.read()
        if urlsplit(response.url).path == "/login/":
            raise HTTPError(url, 401, "login required", response.headers, None)
        is_compressed = response.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(content) if is_compressed else content


def site_addresses(url: str) -> list[str]:
    """Return the pages of the bar that need no login, and the first rows of their tables."""
    found: dict[str, None] = {}
    for address in _bar_addresses(fetch(url + "/").decode()):
        try:
            page = fetch(url + address).decode()
        except HTTPError:
            continue
        found[address] = None
        found |= dict.fromkeys(list(dict.fromkeys(_DETAIL.findall(page)))[:_ROWS])
    return list(found)


def _bar_addresses(page: str) -> list[str]:
    bar = page[page.index("<header") : page.index("</header>")]
    return list(dict.fromkeys(re.findall(r'href="(/[^"?]*)"', bar)))


def main(arguments: Sequence[str]) -> int:
    """Measure a running site; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("addresses", nargs="*")
    parser.add_argument("--rate", type=float, default=20, help="requests a second")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--p95-ms", type=float, default=P95_MS)
    options = parser.parse_args(arguments)
    addresses = options.addresses or site_addresses(options.url)
    load = measure(options.url, addresses, options.rate, options.seconds)
    sys.stdout.write("\n".join(load.report(options.p95_ms)) + "\n")
    return 1 if load.failures or load.p95_ms > options.p95_ms else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
