"""``python -m tests.attacks.kills --count 500 --seed N``: processes of a whole demo are killed at
random moments while models are imported, built and tuned and results are sent; then all work
completes, and nothing is lost, doubled or left behind.

Ends with 1 where anything was. The site is kept (and named) then.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import psycopg

from tests.attacks import invariants
from tests.attacks.invariants import Accepted, Surroundings
from tests.attacks.site_under_attack import Site, kill
from tests.attacks.tiny_models import tiny_model

# How often each kind is chosen where it is there.
WEIGHTS = {
    "worker's child": 20,
    "compiler": 20,
    "measuring child": 16,
    "other child": 8,
    "worker": 10,
    "web worker": 8,
    "web": 5,
    "database backend": 12,
    "postmaster": 4,
    "supervisor": 1,
    "power-off": 1,
}
_PAUSE_S = (0.05, 0.8)
_AT_A_TIME = (1, 6)
_LOOK_FOR_S = 0.4  # compilers come and go
_OPEN_AT_MOST = 60
_REST_LIMIT_S = 600


class Attack:
    """One series of faults on one site, kills unless ``disturb`` says otherwise."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site = site
        self.random = random.Random(seed)
        self.faults: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.accepted = Accepted()
        self._models = 0
        self._kernels: list[str] = []
        self._batches = 0
        self._unanswered: list[int] = []

    def run(self, count: int) -> None:
        """Work and kill until so many were killed."""
        began = time.monotonic()
        while self.faults.total() < count:
            if not self.site.is_up():
                self._say(f"the demo ended by itself:\n{self.site.said()}")
                self.answers["demo ended by itself"] += 1
                self.site.start()
            self._work()
            before = self.faults.total() // 25
            for _ in range(self.random.randint(*_AT_A_TIME)):
                time.sleep(self.random.uniform(*_PAUSE_S))
                if not self.disturb():
                    break
            done = self.faults.total()
            if done // 25 != before:
                self._say(f"{done}: {dict(self.faults)} after {time.monotonic() - began:.0f} s")

    def rest(self) -> Iterator[str]:
        """Wait until nothing is left to do; what is still open after a long time."""
        deadline, left = time.monotonic() + _REST_LIMIT_S, -1
        while left != 0 and time.monotonic() < deadline:
            if not self.site.is_up():
                self.answers["demo ended by itself"] += 1
                self.site.start()
            time.sleep(1.0)
            try:
                left = invariants.open_rows(self.site)
            except psycopg.Error:
                continue
        if left:
            yield f"{left} rows are still open after {_REST_LIMIT_S} s"

    def _work(self) -> None:
        """Ask for something, as long as not too much waits."""
        try:
            if invariants.open_rows(self.site) > _OPEN_AT_MOST:
                return
        except psycopg.Error:
            pass  # ask all the same: the pages have to say something
        self._send()
        self.random.choice((self._import, self._import, self._tune, self._build))()

    def _import(self) -> None:
        self._models += 1
        name = f"tiny{self._models}"
        file = (f"{name}.pt2", tiny_model(self._models))
        answer = self._post("import", "/import", {"name": name}, file)
        if found := re.match(r"/graphs/(\d+)", answer):
            self.accepted.graphs.add(int(found[1]))

    def _tune(self) -> None:
        if not self.accepted.graphs:
            return
        graph = str(self.random.choice(sorted(self.accepted.graphs)))
        fields = {"graph": graph, "target": "cpu", "why": "attack"}
        if self.random.random() < 0.5:
            fields |= {"budget": "20s", "compiles": "3", "measurements": "3"}
        answer = self._post("tune", "/retune", fields)
        if found := re.match(r"/runs/(\d+)", answer):
            self.accepted.runs.add(int(found[1]))

    def _build(self) -> None:
        if not self._kernels:
            _, body, _ = self.site.get("/kernels.json")
            self._kernels = re.findall(r'"name": "(rocm_\w+)"', body)
        if self._kernels:
            name = self._kernels.pop()
            fields = {"target": self.random.choice(("cpu", "gfx942")), "flags": "-O1"}
            answer = self._post("build", f"/kernels/{name}/build", fields)
            if found := re.search(r"\?build=(\d+)", answer):
                self.accepted.builds.add(int(found[1]))

    def _send(self) -> None:
        """A batch of results, as CI sends them: one without an answer is sent again."""
        self._batches += 1
        self._unanswered.append(self._batches)
        for number in list(self._unanswered):
            status = self.site.send_results(f"attack-{number}", number)
            self.answers[f"results {status}"] += 1
            if status == 200:
                self._unanswered.remove(number)
                self.accepted.batches.add(f"attack-{number}")

    def _post(
        self, what: str, address: str, fields: dict[str, str], file: tuple[str, bytes] | None = None
    ) -> str:
        status, body, location = self.site.post(address, fields, file)
        self.answers[f"{what} {status}"] += 1
        if status >= 500 and status != 503:
            self._say(f"{what}: {status}: {body[:300]}")
        return location

    def disturb(self) -> bool:
        """Kill one process of a kind chosen by weight, once there is one; all for a power-off.
        Whether the demo goes on by itself."""
        (kind,) = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))
        if kind == "power-off":
            for pid in self.site.all_processes():
                kill(pid)
        elif not self._kill_one(kind):
            return True
        self.faults[kind] += 1
        if kind not in {"power-off", "supervisor"}:
            return True
        self.site.wait_for_supervisor()
        self.site.start()
        return False

    def _kill_one(self, kind: str) -> bool:
        """Whether there was one within a short time."""
        deadline = time.monotonic() + _LOOK_FOR_S
        while time.monotonic() < deadline:
            found = self.site.by_kind().get(kind, [])
            if found and kill(self.random.choice(found)):
                return True
        return False

    def _say(self, line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def main(description: str, count: int, make: Callable[[int], Attack]) -> int:
    """Attack, wait, look; print what was done and what was found."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    options = parser.parse_args()
    before, began = Surroundings.now(), time.monotonic()
    attack = make(options.seed)
    site = attack.site
    found: list[str] = []
    try:
        site.start()
        attack.run(options.count)
        found += attack.rest()
        found += invariants.of_rows(site, attack.accepted)
        status = site.stop()
        if status != 0:
            found.append(f"the demo stopped with {status}: {site.said()[-500:]}")
        # Once more up and down: what the killed ones left is cleared by then.
        site.start()
        found += invariants.of_files(site)
        site.stop()
        found += invariants.of_surroundings(before, site)
        report(options.seed, attack, found, time.monotonic() - began)
    except BaseException:
        found.append("it did not end")
        raise
    finally:
        if found:
            sys.stdout.write(f"kept: {site.var}\n")
        else:
            site.remove()
    return 1 if found else 0


def report(seed: int, attack: Attack, found: list[str], seconds: float) -> None:
    """Counts, for people."""
    out = sys.stdout.write
    out(f"seed {seed}: {attack.faults.total()} in {seconds:.0f} s, ")
    out(f"{attack.site.starts} starts; accepted: {attack.accepted.counts()}\n")
    for kind, number in sorted(attack.faults.items()):
        out(f"  {number:5} {kind}\n")
    out(f"answers: {', '.join(f'{k}: {n}' for k, n in sorted(attack.answers.items()))}\n")
    out("nothing lost, doubled or left behind\n" if not found else "FOUND\n")
    for line in found:
        out(f"  {line}\n")


if __name__ == "__main__":
    invariants.isolate_shared_memory()
    sys.exit(main(__doc__, 500, lambda seed: Attack(Site(), seed)))
