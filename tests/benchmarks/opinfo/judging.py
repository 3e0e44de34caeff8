"""From uses of ops to verdicts: reference beside torch, operations and kernels beside reference."""

from __future__ import annotations

import copy
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scheduler import pipeline, reference
from scheduler.build.cache import CodeCache
from scheduler.build.flags import parse_flags
from scheduler.errors import UserError
from scheduler.fusion.nodes import Schedule
from scheduler.ir.operations import Extern, Lowered
from scheduler.ir.ops import NoKernel, UnsupportedOpError
from scheduler.lowering.ops import named_reasons, resolve_op
from scheduler.targets import find as find_target
from tests.benchmarks.opinfo.comparing import (
    EXACT,
    Expected,
    beside_reference,
    beside_torch,
    equal_places,
    tolerances,
)
from tests.benchmarks.opinfo.database import LABELS, Use, as_array, parts_of, widened
from tests.benchmarks.opinfo.exporting import NotExportedError, Part, exported, one_line
from tests.support.models_as_kernels import Prepared, compile_all, opened, run_on
from tests.unit.lowering.running import run_schedule

GROUP = 48  # uses of one exported file, of one compilation
# Ops whose indices may be those of any of equal elements.
UNSTABLE = frozenset(
    {"sort", "argsort", "topk", "kthvalue", "mode", "median", "nanmedian", "max", "min"}
)
# What is in the memory that these ops give is nobody's.
UNDEFINED = frozenset(
    {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"}
)


class Level(IntEnum):
    """How far a use is taken; each level has those before it."""

    REFERENCE = 1
    INTERPRET = 2
    KERNELS = 3


@dataclass(frozen=True)
class Verdict:
    """What became of a use.

    ``failed`` is where: ``export`` (torch's own), ``read``, ``reference``, ``lower``,
    ``interpret``, ``compile``, ``kernels``; empty where all is right. ``externs`` are ops that
    stay with the reference by their row.
    """

    op: str
    dtype: str
    index: int
    failed: str = ""
    reason: str = ""
    externs: tuple[str, ...] = ()

    @property
    def not_exported(self) -> bool:
        """Whether torch itself raises, or does not export it: nothing can be said of us."""
        return self.failed == "export"


@dataclass(frozen=True)
class Tools:
    """What judging needs: how far to go, and what kernels are built with."""

    level: Level
    cache: Path
    target: str = "cpu"  # the emulation of gfx942
    flags: str = "-O1"
    decompose: bool = False
    begin: Callable[[Sequence[Use], str], None] = field(default=lambda uses, stage: None)


class _FailedError(Exception):
    """A use is wrong, at this stage, for this reason."""

    def __init__(self, stage: str, reason: str) -> None:
        super().__init__(reason)
        self.stage = stage


@dataclass(frozen=True)
class _Known:
    """A use with what torch makes of it."""

    use: Use
    expected: tuple[Expected, ...]
    random: bool


def judge(uses: Sequence[Use], tools: Tools) -> Iterator[Verdict]:
    """A verdict for each use, in the order in which they are reached."""
    known: list[_Known] = []
    for use in uses:
        tools.begin([use], "torch")
        try:
            known.append(_known(use))
        except Exception as error:  # torch raises whatever it likes
            yield _verdict(use, "export", f"torch raises {one_line(error)}")
    for start in range(0, len(known), GROUP):
        yield from _judged(known[start : start + GROUP], tools)


def _known(use: Use) -> _Known:
    """Torch's results; values that depend on the state of its generator are random."""
    own = _called(use, use.tensors, seed=1)
    again = _called(use, use.tensors, seed=2)
    try:
        with _wide_floats():
            wide: list[Any] = _called(use, [widened(one) for one in use.tensors], seed=1)
    except Exception:  # the op has no such types
        wide = []
    if len(wide) != len(own):
        wide = [None] * len(own)
    same = all(
        np.array_equal(parts_of(a), parts_of(b), equal_nan=parts_of(a).dtype.kind == "f")
        for a, b in zip(own, again, strict=True)
    )
    expected = tuple(Expected(a, b) for a, b in zip(own, wide, strict=True))
    return _Known(use, expected, not same or use.op in UNDEFINED or _seeded(use))


@contextmanager
def _wide_floats() -> Iterator[None]:
    """Floats that torch makes of integers are float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _seeded(use: Use) -> bool:
    """Whether the database wraps the op so that torch's generator begins anew: it is random."""
    code = getattr(use.function, "__code__", None)
    return code is not None and "wrapper_set_seed" in code.co_names


def _called(use: Use, tensors: Sequence[Any], seed: int) -> list[Any]:
    torch.manual_seed(seed)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = use([copy.deepcopy(tensor.detach()) for tensor in tensors])
    for one in made:
        if isinstance(one, torch.Tensor) and one.layout is not torch.strided:
            raise ValueError(f"a result of layout {one.layout}")
    return made


def _judged(known: Sequence[_Known], tools: Tools) -> Iterator[Verdict]:
    """Uses of one file; without the one that torch stops at, or of two halves, where it cannot be
    made or read."""
    if not known:
        return
    uses = [one.use for one in known]
    tools.begin(uses, "export")
    try:
        with tempfile.TemporaryDirectory() as folder:
            counts = [len(one.expected) for one in known]
            found = exported(uses, counts, Path(folder), decompose=tools.decompose)
    except NotExportedError as error:
        if len(known) == 1 or error.place is not None:
            place = error.place or 0
            yield _verdict(uses[place], "export", str(error))
            yield from _judged(known[:place], tools)
            yield from _judged(known[place + 1 :], tools)
        else:
            yield from _halves(known, tools)
    except Exception as error:  # a reader's traceback is a fault of the use, not of the judge
        if len(known) == 1:
            yield _verdict(uses[0], "read", _reason(error))
        else:
            yield from _halves(known, tools)
    else:
        yield from _parts(known, found, tools)


def _halves(known: Sequence[_Known], tools: Tools) -> Iterator[Verdict]:
    half = len(known) // 2
    yield from _judged(known[:half], tools)
    yield from _judged(known[half:], tools)


@dataclass(frozen=True)
class _Ready:
    """A use up to its schedule, with what its kernels must give."""

    known: _Known
    part: Part
    references: Mapping[str, Any]
    plan: Schedule
    externs: tuple[str, ...]


def _parts(known: Sequence[_Known], parts: Sequence[Part], tools: Tools) -> Iterator[Verdict]:
    ready: list[_Ready] = []
    for one, part in zip(known, parts, strict=True):
        tools.begin([one.use], "reference")
        try:
            references = _reference(one, part)
            if tools.level < Level.INTERPRET:
                yield _verdict(one.use)
                continue
            tools.begin([one.use], "interpret")
            made = _lowered(one, part, references)
            _interpret(made)
        except _FailedError as fault:
            yield _verdict(one.use, fault.stage, str(fault))
            continue
        if tools.level < Level.KERNELS:
            yield _verdict(one.use, externs=made.externs)
        else:
            ready.append(made)
    if ready:
        yield from _kernels(ready, tools)


@contextmanager
def _stage(name: str) -> Iterator[None]:
    """Whatever is raised inside is a failure of that stage."""
    try:
        yield
    except _FailedError:
        raise
    except Exception as error:  # a traceback is a fault of the use, not of the judge
        raise _FailedError(name, _reason(error)) from None


def _reason(error: Exception) -> str:
    plain = isinstance(error, UserError | UnsupportedOpError | NotExportedError)
    return one_line(error).partition(": ")[2] if plain else one_line(error)


def _reference(one: _Known, part: Part) -> dict[str, Any]:
    """What the reference makes of it. Raises ``_FailedError`` where torch makes something else."""
    with _stage("reference"):
        got = reference.run(part.graph, part.values, _bindings(part))
    for position, (name, expected) in enumerate(zip(part.results, one.expected, strict=True)):
        value = got[name] if isinstance(name, str) else name
        if value is None:
            raise _FailedError("reference", f"result {position} is missing")
        wrong = beside_torch(value, expected, shapes_alone=one.random)
        if wrong and _any_of_equals(one.use, value, expected):
            wrong = ""
        wrong = wrong or _wrong_type(part, name, expected)
        if wrong:
            raise _FailedError("reference", f"result {position}: {wrong}"[:300])
    return got


def _any_of_equals(use: Use, got: Any, expected: Expected) -> bool:
    """Whether a result of indices differs from torch's by the choice among equals alone."""
    op = use.op.partition(".")[0]
    if op not in UNSTABLE or not isinstance(expected.own, torch.Tensor) or not use.tensors:
        return False
    return equal_places(got, expected.own, use.tensors[0])


def _bindings(part: Part) -> dict[str, int]:
    return {name: info.hint for name, info in part.graph.symbols.items()}


def _wrong_type(part: Part, name: Any, expected: Expected) -> str:
    if name not in part.graph.tensors or not isinstance(expected.own, torch.Tensor):
        return ""
    stated, due = part.graph.tensors[name].dtype.label, LABELS.get(expected.own.dtype)
    return "" if stated == due else f"type {stated}, torch {expected.own.dtype}"


def _lowered(one: _Known, part: Part, references: Mapping[str, Any]) -> _Ready:
    with _stage("lower"):
        lowered = pipeline.lower(part.graph)
        plan = pipeline.schedule(lowered)
    externs = {extern.op: extern.reason for extern in _externs(lowered)}
    for op, reason in externs.items():
        named = isinstance(resolve_op(op).op.lowering, NoKernel) or reason in named_reasons()
        if not named:
            raise _FailedError("lower", f"no kernel for this use of {op}: {reason}"[:300])
    return _Ready(one, part, references, plan, tuple(sorted(externs)))


def _externs(lowered: Lowered) -> Iterator[Extern]:
    return (op for op in lowered.operations if isinstance(op, Extern))


def _interpret(made: _Ready) -> None:
    with _stage("interpret"):
        got = run_schedule(made.plan, made.part.values, _bindings(made.part))
    _compare(made, got, "interpret")


def _compare(made: _Ready, got: Mapping[str, Any], stage: str) -> None:
    """Raises ``_FailedError`` where a result is beyond what its kernels may be off by."""
    lowered = made.plan.lowered
    buffers = dict(zip(lowered.graph.outputs, lowered.outputs, strict=True))
    with _stage(stage):
        bounds = tolerances(made.plan, _bindings(made.part))
    for position, (name, expected) in enumerate(
        zip(made.part.results, made.known.expected, strict=True)
    ):
        if name not in buffers:
            continue
        value, right = as_array(got[name]), made.references[name]
        if made.known.random:
            wrong = beside_torch(value, expected, shapes_alone=True)
        else:
            wrong = beside_reference(value, right, expected, bounds.get(buffers[name], EXACT))
            if wrong and _any_of_equals(made.known.use, value, expected):
                wrong = ""
        if wrong:
            raise _FailedError(stage, f"result {position}: {wrong}"[:300])


def _kernels(ready: Sequence[_Ready], tools: Tools) -> Iterator[Verdict]:
    target = find_target(tools.target)
    prepared: list[tuple[_Ready, Prepared]] = []
    for made in ready:
        tools.begin([made.known.use], "generate")
        try:
            with _stage("compile"):
                generated = pipeline.generate(made.plan, [target])
            prepared.append((made, Prepared(made.part.graph, generated)))
        except _FailedError as fault:
            yield _verdict(made.known.use, fault.stage, str(fault), made.externs)
    yield from _compiled(prepared, tools)


def _compiled(prepared: Sequence[tuple[_Ready, Prepared]], tools: Tools) -> Iterator[Verdict]:
    """Uses of one library; of two halves where it does not compile."""
    if not prepared:
        return
    tools.begin([made.known.use for made, _ in prepared], "compile")
    target = find_target(tools.target)
    library: Path | None = None
    if any(one.generated.kernels for _, one in prepared):
        try:
            library = compile_all(
                [one for _, one in prepared],
                target,
                CodeCache(tools.cache),
                parse_flags(tools.flags),
            )
        except Exception as error:  # the compiler's log, or a fault on the way to it
            if len(prepared) > 1:
                half = len(prepared) // 2
                yield from _compiled(prepared[:half], tools)
                yield from _compiled(prepared[half:], tools)
            else:
                reason = _compilers_word(error)
                yield _verdict(prepared[0][0].known.use, "compile", reason, prepared[0][0].externs)
            return
    with closing(opened("cpu", target)) as device:
        for made, one in prepared:
            tools.begin([made.known.use], "kernels")
            try:
                with _stage("kernels"):
                    bindings = _bindings(made.part)
                    values = {n: np.asarray(v) for n, v in made.part.values.items()}
                    got = run_on(device, one, library or Path(), values, bindings)
                _compare(made, got, "kernels")
            except _FailedError as fault:
                yield _verdict(made.known.use, fault.stage, str(fault), made.externs)
            else:
                yield _verdict(made.known.use, externs=made.externs)


def _compilers_word(error: Exception) -> str:
    """The first line of a compiler's log that says what is wrong."""
    if not isinstance(error, AssertionError):
        return one_line(error)
    lines = str(error).splitlines()
    return next((line.strip()[-300:] for line in lines if "error:" in line), one_line(error))


def _verdict(
    use: Use, failed: str = "", reason: str = "", externs: tuple[str, ...] = ()
) -> Verdict:
    return Verdict(use.op, use.dtype, use.index, failed, " ".join(reason.split()), externs)
