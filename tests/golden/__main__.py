"""What is generated otherwise than when it was recorded: ``python -m tests.golden [--write]``.

A report, by ``.ci/run`` too, and no test: a kernel that gets better has another text. ``--write``
records what is generated now; the commit says why it differs.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from scheduler import samples
from tests.golden.loop_kernels import KERNELS, rendered
from tests.golden.products import RENDERED
from tests.golden.sample_kernels import kernels

HERE = Path(__file__).parent
NAMES = HERE / "sample_kernels.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="record what is generated now")
    write = parser.parse_args().write
    found, names = dict(texts()), {name: kernels(name) for name in samples.names()}
    lines = [*changed_texts(found), *changed_names(names)]
    if write:
        for name, text in found.items():
            (HERE / name).write_text(text)
        NAMES.write_text(json.dumps(names, indent=1) + "\n")
    sys.stdout.write("".join(f"golden: {line}\n" for line in lines or ["nothing differs"]))


def texts() -> Iterator[tuple[str, str]]:
    """Rendered texts by the names of the files that record them."""
    yield from ((name, make()) for name, make in RENDERED.items())
    yield from ((name, rendered(name)) for name in KERNELS)


def changed_texts(found: dict[str, str]) -> Iterator[str]:
    """A line for each text that differs, with how many lines of it do."""
    for name, text in found.items():
        recorded = (HERE / name).read_text().splitlines()
        changes = difflib.unified_diff(recorded, text.splitlines(), lineterm="", n=0)
        marks = [line[0] for line in list(changes)[2:]]
        if marks:
            yield f"{name}: {marks.count('+')} lines added, {marks.count('-')} removed"


def changed_names(names: dict[str, dict[str, str]]) -> Iterator[str]:
    """A line for each sample with other kernels."""
    for sample, recorded in json.loads(NAMES.read_text()).items():
        new = names.get(sample, {})
        nodes = [node for node in {**recorded, **new} if recorded.get(node) != new.get(node)]
        if nodes:
            rest = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
            which = ", ".join(nodes[:3])
            yield f"{sample}: {len(nodes)} of {len(recorded)} kernels differ ({which}{rest})"


if __name__ == "__main__":
    main()
