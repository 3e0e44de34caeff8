"""Hostile text in every string of a model's file and of a bundle: none of it may become code.

    python -m tests.attacks.strings [--every N] [--texts N] [--seed N]

Each string of each small model (values and keys of its JSON) is replaced by each hostile text,
alone and wherever the same text stands; what is still accepted is rendered by all templates, and
its sources, its wrapper and its manifest are held against those of the same file with a harmless
word in that place. Then the same with the strings of a bundle's JSON.

Prints what was tried, refused, accepted and what got through, and exits with 1 for the last.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from scheduler import pipeline, targets
from scheduler.bundle import reader
from scheduler.bundle.manifest import Manifest
from scheduler.bundle.writer import wrapper_of, write
from scheduler.codegen.kernel import RenderedKernel
from scheduler.codegen.template import KernelTemplate
from scheduler.errors import UserError
from tests.support import exported
from tests.support.cpp_code import code

Place: TypeAlias = tuple["str | int", ...]
"""The way to a string in a document; a last part ``_KEY`` is the key itself."""

_KEY = "\0key"
PLAIN = "harmless"
TEXTS = (
    "\n#ifndef __HIP__\n{ system(0); } //",
    '\n#include "/etc/hostname"\n//',
    "\r#define float double\r",
    "\r\nint main() {}",
    "\0system(0);",
    "*/ system(0); /*",
    "\\",
    "\\\nsystem(0);",
    "??/",
    "??/\nsystem(0);",
    "\\ \t",
    '"; system(0); "',
    "'; system(0); '",
    ')x"; system(0); R"x(',
    '"""\nraise SystemExit(1)\n"""',
    "'''\nraise SystemExit(1)\n'''",
    "#\nraise SystemExit(1)",
    "{{ 7 * 7 }}{% include '/etc/hostname' %}{#",
    "%(prog)s %s %d {0} ${HOME} `id` $(id)",
    "; touch /tmp/x; --flag -o/tmp/x @/etc/hostname",
    "../../../tmp/x",
    "/etc/hostname",
    "KERNEL_NAME",
    "CONFIGURATION",
    "\N{LINE SEPARATOR}system(0);\N{PARAGRAPH SEPARATOR}\x85\x0b\x0c\x1c",
    "\N{RIGHT-TO-LEFT OVERRIDE}\N{LEFT-TO-RIGHT ISOLATE}\N{ZERO WIDTH SPACE}",
    "\x1b[2J\x1b]0;x\x07",
    "\ud800",
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "2026-01-01 00:00:00 ERROR forged",
    "return", "int", "stream", "lambda", "None", "def", "__proto__", "constructor",
    "NULL", "M", "N", "threadIdx", "run", "self", "assert", "INFINITY", "half",
    "i0", "r0", "x0", "d0", "q0", "b0", "tmp0", "buf0", "op0", "in_ptr0", "arg0", "s1",
    "16", "-1", "1e3", "0x10", "s0*2", "s0", "x", "", " ", ",", ".",
    "\N{LATIN SMALL LETTER O WITH DIAERESIS}", "x" * 3_000, "\n" * 30_000,
)  # fmt: skip


@dataclass
class Counts:
    """What came of it; ``through`` has a line for each text that got through."""

    fields: int = 0
    tried: int = 0
    refused: int = 0
    accepted: int = 0
    kernels: int = 0
    through: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.fields} fields, {self.tried} files: {self.refused} refused, "
            f"{self.accepted} accepted with {self.kernels} kernels, {len(self.through)} through"
        )


# -- strings of a document ------------------------------------------------------------------------


def places(document: Any, at: Place = ()) -> Iterator[Place]:
    """Every string of the document, keys too."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield (*at, key, _KEY)
            yield from places(value, (*at, key))
    elif isinstance(document, list):
        for number, value in enumerate(document):
            yield from places(value, (*at, number))
    elif isinstance(document, str):
        yield at


def at(document: Any, place: Place) -> str:
    """The string there."""
    if place[-1] == _KEY:
        return str(place[-2])
    for part in place:
        document = document[part]
    return str(document)


def replaced(document: Any, place: Place, text: str) -> Any:
    """The document with another text in that place alone."""
    changed = copy.deepcopy(document)
    *way, last = place[:-1] if place[-1] == _KEY else place
    inside = changed
    for part in way:
        inside = inside[part]
    if place[-1] != _KEY:
        inside[last] = text
        return changed
    entries = list(inside.items())  # in its order
    inside.clear()
    inside.update({text if key == last else key: value for key, value in entries})
    return changed


def everywhere(document: Any, old: str, new: str) -> Any:
    """The document with another text wherever it stands, as a symbol of expressions too."""
    return exported.with_symbols(document, {old: new})


# -- what is made of a file -----------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """Words of the sources by kernel, and the wrapper's tree, without names and literals."""

    sources: tuple[tuple[str, ...], ...]
    wrapper: tuple[str, ...]


def made(path: Path, name: str | None, counts: Counts) -> Made | str:
    """What a file becomes, or why it is refused. Anything but a ``UserError`` is let through."""
    try:
        graph = pipeline.load(path, name)
        plan = pipeline.schedule(pipeline.lower(graph))
        code_for = pipeline.generate(plan, [targets.find("gfx942")])
        backend = pipeline.scheduling(plan, [targets.find("gfx942")])
        kernels = [
            kernel
            for node in plan.nodes
            if node.name in code_for.chosen
            for kernel in _some(backend.template(node))
        ]
        manifest = code_for.manifest()
        wrapper = wrapper_of(manifest)
    except UserError as error:
        _expect(str(error).isprintable() and len(str(error)) <= 1_000, f"an error: {error!r}")
        return str(error)
    counts.kernels += len(kernels)
    for kernel in kernels:
        _check_kernel(kernel)
    _expect(_prints(wrapper), "the wrapper holds what does not print")
    again = Manifest.from_json(json.loads(json.dumps(manifest.to_json())))
    _expect(again.to_json() == manifest.to_json(), "the manifest is read as another")
    return Made(tuple(words(kernel, set(graph.symbols)) for kernel in kernels), tree(wrapper))


def _some(template: KernelTemplate) -> list[RenderedKernel]:
    """The first, the middle and the last of the candidates: each kind of text that there is."""
    serving = [config for config in template.configs() if template.reject(config) is None]
    picked = sorted({0, len(serving) // 2, len(serving) - 1})
    return [template.generate(serving[number]).kernel for number in picked]


def words(kernel: RenderedKernel, symbols: set[str]) -> tuple[str, ...]:
    """The source's words; sizes by their kind, in no order, since terms are sorted by them."""
    source = code(kernel.source.replace(kernel.name, "KERNEL"))
    sizes = {arg.name for arg in kernel.args if arg.name.startswith(("n_", "s0", "s1"))}
    return tuple(sorted("a size" if word in sizes and symbols else word for word in source))


def tree(wrapper: str) -> tuple[str, ...]:
    """The wrapper's syntax, its own variables alike and texts left out, in no order: terms are
    sorted by the sizes' names. What has no name of the model is held as it stands."""
    lines, found = wrapper.split("\n"), []
    for statement in ast.parse(wrapper).body:
        fixed = isinstance(statement, ast.ClassDef | ast.FunctionDef) and statement.name != "call"
        if fixed:
            found.append("\n".join(lines[statement.lineno - 1 : statement.end_lineno]))
        else:
            found += re.findall(r"\w+|\S", ast.dump(_anonymous(statement)))
    return tuple(sorted(found))


def _anonymous(statement: ast.stmt) -> ast.stmt:
    nodes = list(ast.walk(statement))
    own = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in own:
            node.id = "v"
        elif isinstance(node, ast.arg):
            node.arg = "v"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return statement


class ThroughError(Exception):
    """Something of the text is where it must not be."""


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise ThroughError(what[:300])


def _prints(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def _check_kernel(kernel: RenderedKernel) -> None:
    plain = kernel.name.isidentifier() and kernel.name.isascii() and len(kernel.name) < 150
    _expect(plain, f"a kernel is called {kernel.name[:80]!r}")
    _expect(_prints(kernel.source), "a source holds what does not print")
    _expect(max(map(len, kernel.source.split("\n"))) < 21_000, "a source has an endless line")
    for arg in kernel.args:
        _expect(arg.name.isidentifier() and arg.name.isascii(), f"an argument is {arg.name!r}")


# -- the attacks ----------------------------------------------------------------------------------


class Files:
    """Files of one folder, each made once."""

    def __init__(self, folder: Path, counts: Counts, say: Callable[[str], None]) -> None:
        self._path = folder / "model.pt2"
        self.counts = counts
        self._say = say
        self._last: tuple[Any, Any] | None = None

    def attack(
        self, what: str, document: Any, change: Callable[[str], Any], texts: Sequence[str]
    ) -> None:
        """``change`` puts a text into one place of a document. What is accepted must be made into
        what the document is, or what it is with a harmless text in that place."""
        self.counts.fields += 1
        as_it_was = self._unchanged(document)
        plain = self._made(what, PLAIN, change(PLAIN))
        for text in texts:
            self.counts.tried += 1
            found = self._made(what, text, change(text))
            if found is None:
                continue
            self.counts.refused += isinstance(found, str)
            self.counts.accepted += isinstance(found, Made)
            if isinstance(found, Made) and found not in (plain, as_it_was):
                self._through(what, text, "sources or the wrapper differ")

    def names(self, document: Any, texts: Sequence[str]) -> None:
        """The graph's own name, which is not in the file."""
        self.counts.fields += 1
        plain = self._made("the graph's name", PLAIN, document, PLAIN)
        for text in texts:
            self.counts.tried += 1
            self.counts.accepted += 1
            if self._made("the graph's name", text, document, text) != plain:
                self._through("the graph's name", text, "sources or the wrapper differ")

    def _unchanged(self, document: Any) -> Any:
        if self._last is None or self._last[0] is not document:
            self._last = document, self._made("nothing", "", document)
        return self._last[1]

    def _made(self, what: str, text: str, document: Any, name: str | None = None) -> Any:
        exported.write(self._path, document)
        try:
            return made(self._path, name, self.counts)
        except ThroughError as error:
            self._through(what, text, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no answer
            self._through(what, text, f"{type(error).__name__}: {error}")
        return None

    def _through(self, what: str, text: str, why: str) -> None:
        self.counts.through.append(f"{what}: {text[:60]!r}: {why[:300]}")
        self._say(self.counts.through[-1])


def attack_models(
    files: Files, models: Mapping[str, Callable[[], Any]], chosen: Callable[[str, int], range],
    texts: Callable[[], Sequence[str]],
) -> None:  # fmt: skip
    """Every chosen place of every model's document, alone, and each text wherever it stands."""
    for name, model in models.items():
        document = model()
        files.names(document, texts())
        every = list(places(document))
        strings = list(dict.fromkeys([*(at(document, place) for place in every), "s0", "s1"]))
        # A text that the document has elsewhere names something else in it: that is another model.
        new = [text for text in TEXTS if text not in strings]
        for number in chosen(f"{name} alone", len(every)):
            place = every[number]
            shown = "/".join(map(str, place)).replace(_KEY, "(key)")
            tried = [text for text in texts() if text in new]
            files.attack(f"{name} {shown}", document, partial(replaced, document, place), tried)
        for number in chosen(f"{name} together", len(strings)):
            old = strings[number]
            tried = [text for text in texts() if text in new]
            change = partial(everywhere, document, old)
            files.attack(f"{name}: every {old[:40]!r}", document, change, tried)


def attack_bundle(
    folder: Path, counts: Counts, say: Callable[[str], None],
    chosen: Callable[[str, int], range], texts: Callable[[], Sequence[str]],
) -> None:  # fmt: skip
    """Every chosen string of a bundle's own JSON, read back."""
    plan = pipeline.schedule(
        pipeline.lower(pipeline.load(exported.write(folder / "m.pt2", exported.pointwise())))
    )
    generated = pipeline.generate(plan, [targets.find("cpu")])
    bundle = folder / "bundle"
    write(bundle, plan, generated.manifest(), generated.kernels, {})
    for member in ("manifest.json", "graph.json"):
        document = json.loads((bundle / member).read_text())
        every = list(places(document))
        for number in chosen(member, len(every)):
            counts.fields += 1
            for text in texts():
                counts.tried += 1
                changed = json.dumps(replaced(document, every[number], text))
                (bundle / member).write_text(changed)
                try:
                    _read(bundle)
                    counts.accepted += 1
                except UserError as error:
                    counts.refused += 1
                    if not str(error).isprintable() or len(str(error)) > 1_000:
                        counts.through.append(f"{member} {every[number]}: {text[:60]!r}: the error")
                except Exception as error:  # noqa: BLE001 - whatever it is, it is no answer
                    why = f"{type(error).__name__}: {error}"
                    counts.through.append(f"{member} {every[number]}: {text[:60]!r}: {why[:300]}")
                    say(counts.through[-1])
        (bundle / member).write_text(json.dumps(document))


def _read(folder: Path) -> None:
    """What is done with a bundle before anything of it runs; no path may leave its folder."""
    bundle = reader.open_bundle(folder)
    _ = bundle.graph
    ast.parse(wrapper_of(bundle.manifest))
    for name, kernel in bundle.manifest.kernels.items():
        for path in (kernel.source, name):
            inside = (folder / "kernels" / path).resolve()
            if not inside.is_relative_to(folder.resolve()):
                raise ThroughError(f"{path} leaves the folder")


def main() -> int:
    """All places, or every so many."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="try one place of so many")
    parser.add_argument("--texts", type=int, default=len(TEXTS), help="texts in each place")
    parser.add_argument("--seed", type=int, default=0, help="which places and texts those are")
    options = parser.parse_args()
    rng, counts, start = Random(options.seed), Counts(), time.monotonic()

    def chosen(_: str, count: int) -> range:
        return range(rng.randrange(min(options.every, max(count, 1))), count, options.every)

    def texts() -> list[str]:
        return rng.sample(TEXTS, min(options.texts, len(TEXTS)))

    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder), counts, say)
        for name, model in exported.MODELS.items():
            attack_models(files, {name: model}, chosen, texts)
            say(f"{name}: {counts}")
        attack_bundle(Path(folder), counts, say, chosen, texts)
    say(f"{len(TEXTS)} texts; {counts}; {time.monotonic() - start:.0f} s")
    return 1 if counts.through else 0


if __name__ == "__main__":
    sys.exit(main())
