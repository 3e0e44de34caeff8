"""Random programs of views, copies and writes: who shares memory with whom decides what they give.

A program is the text of a function of tensors, as a person would write it; what each line makes is
found by running it in torch while the program is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

# What rounds otherwise in another order, or on the way.
ROUNDING = ("float()", "sigmoid", "lerp", "cumsum", "sum(")


@dataclass
class Program:
    """``text`` is a function ``forward(self, x, y)``; ``self`` has a buffer, ``kept``. The inputs'
    first dimension may be any number where ``dynamic``."""

    text: str
    dynamic: bool
    seed: int

    def module(self) -> Any:
        import torch

        scope: dict[str, Any] = {"torch": torch}
        exec(self.text, scope)
        made = type("Program", (torch.nn.Module,), {"forward": scope["forward"]})()
        made.register_buffer("kept", tensors(self.seed, 4)[2])
        return made

    def inputs(self, rows: int) -> tuple[Any, ...]:
        return tensors(self.seed, rows)[:2]


def kind_of(seed: int) -> str:
    """What a program's tensors are: "floats" and "bits" are doubles; those of "bits" are also read
    and written as integers, so that nothing in them is computed but what is exact to the bit."""
    return Random(f"kind {seed}").choices(["floats", "integers", "complex", "bits"], [6, 1, 2, 2])[
        0
    ]


def tensors(seed: int, rows: int) -> tuple[Any, Any, Any]:
    """The inputs x and y, and the buffer, all of one dtype, some not laid out row by row."""
    import torch

    draw, generator = Random(seed), torch.Generator().manual_seed(seed)
    kind = kind_of(seed)

    def one(*size: int) -> Any:
        drawn = torch.rand(size, generator=generator, dtype=torch.float64) + 0.5
        if kind == "integers":
            return (drawn * 10).long()
        if kind == "complex":
            return torch.complex(drawn, drawn.flip(0) - 1)
        return drawn

    x = draw.choice([lambda: one(rows, 6), lambda: one(rows, 2, 3), lambda: one(rows, 2, 2, 3)])()
    if draw.random() < 0.3 and x.ndim > 1:
        x = x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.ndim > 2 else x
    if x.ndim == 4 and draw.random() < 0.4:
        x = x.contiguous(memory_format=torch.channels_last)
    return x, one(rows, 6), one(4, 6)


def program(seed: int, lines: int = 8) -> Program:
    """The program of a seed."""
    draw = Random(seed)
    dynamic = draw.random() < 0.35
    made = _Drawing(draw, seed, dynamic)
    for _ in range(lines):
        made.step()
    return Program(made.text(), dynamic, seed)


@dataclass
class _Drawing:
    draw: Random
    seed: int
    dynamic: bool
    values: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        x, y, kept = tensors(self.seed, 4)
        self.values |= {"x": x, "y": y, "self.kept": kept}

    def step(self) -> None:
        """A further line; one that torch refuses is drawn again."""
        for _ in range(20):
            kinds = [self._view, self._view, self._copy, self._write, self._write, self._compute]
            line = self.draw.choice(kinds)()
            is_exact = not any(word in line for word in ROUNDING)
            if line and (is_exact or kind_of(self.seed) != "bits") and self._runs(line):
                self.lines.append(line)
                return

    def _runs(self, line: str) -> bool:
        """Whether torch runs the program with the line; its values are kept then."""
        import torch

        x, y, kept = tensors(self.seed, 4)
        owner = type("Owner", (), {"kept": kept})
        scope: dict[str, Any] = {"torch": torch, "x": x, "y": y, "self": owner}
        try:
            for each in (*self.lines, line):
                exec(each, scope)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return False
        names = [n for n in scope if n in ("x", "y") or (n[0] == "t" and n[1:].isdigit())]
        self.values = {n: scope[n] for n in names} | {"self.kept": owner.kept}
        return True

    def _one(self) -> tuple[str, Any]:
        """A value, those that were made last more often."""
        names = list(self.values)
        name = self.draw.choice(names[-3:] if self.draw.random() < 0.5 else names)
        return name, self.values[name]

    def _named(self, text: str) -> str:
        return f"t{len(self.lines)} = {text}"

    def _view(self) -> str:
        name, value = self._one()
        choices = [*_views(self.draw, name, value, self.dynamic)]
        choices += [*_as_other_numbers(name, value, kind_of(self.seed))] * 3
        return self._named(self.draw.choice(choices)) if choices else ""

    def _copy(self) -> str:
        name, value = self._one()
        choices = [
            f"{name}.clone()",
            f"{name}.contiguous()",
            f"{name}.to(torch.float64)",
            f"{name}.to(torch.float64, copy=True)",
            f"{name}.to({name}.dtype)",
            f"{name}.float()",
            f"{name}.double()",
            f"{name}.type_as(x)",
            f"torch.cat([{name}])",
            f"{name}.reshape({name}.shape)",
            f"{name} + 0",
            f"torch.dropout({name}, 0.5, False)",
            f"{name}.resolve_conj()",
            f"{name}.resolve_neg()",
        ]
        if value.ndim == 4:
            choices += [
                f"{name}.contiguous(memory_format=torch.channels_last)",
                f"{name}.to(memory_format=torch.channels_last)",
                f"{name}.clone(memory_format=torch.contiguous_format)",
                f"{name}.to(torch.float64, memory_format=torch.contiguous_format)",
            ]
        return self._named(self.draw.choice(choices))

    def _compute(self) -> str:
        name, value = self._one()
        other, _ = self._one()
        forms = [f"{name} * 2", f"{name}.sum(-1)" if value.ndim else f"{name} + 1"]
        forms += [f"torch.where({name} > 1, {name}, 0.5)", f"{name} + {other}", f"{name}.neg()"]
        return self._named(self.draw.choice(forms))

    def _write(self) -> str:
        name, value = self._one()
        other, beside = self._one()
        number = self.draw.choice(["2", "0.5", "-1.5"])
        forms = [
            *(f"{name}.{op}_({number})" for op in ("add", "mul", "sub", "div", "fill")),
            *(f"{name}.{op}_()" for op in ("neg", "relu", "zero", "square", "floor", "sigmoid")),
            f"{name}.clamp_(0.6, 1.1)",
            f"{name}.floor_divide_({number})",
            f"{name}.masked_fill_({name} > 1, {number})",
            f"{name}.lerp_({name} + 1, 0.25)",
            f"torch._foreach_add_([{name}], {number})",
        ]
        if value.ndim:
            forms += [
                f"{name}[0] = {number}",
                f"{name}[..., -1:] = {number}",
                f"{name}[::2].mul_({number})",
                f"{name}.select(-1, 0).add_({number})",
                f"{name}.index_fill_(-1, torch.tensor([0]), {number})",
                f"{name}.cumsum_(-1)",
            ]
        if value.ndim == 2:
            forms += [f"{name}.fill_diagonal_({number})", f"{name}.diagonal().add_({number})"]
            forms += [f"{name}.tril_()"]
        if value.shape == beside.shape:
            forms += [f"{name}.copy_({other})", f"{name}.add_({other})", f"{name}.mul_({other})"]
            forms += [f"torch._foreach_mul_([{name}, {other}], {number})"]
            forms += [f"torch.add({other}, 1, out={name})"]
        return self.draw.choice(forms)

    def text(self) -> str:
        """All of it, with everything that is there at the end as its results."""
        made = [name for name in self.values if name.startswith("t")]
        results = self.draw.sample(made, min(len(made), self.draw.randint(1, 4)))
        body = [*self.lines, f"return ({', '.join([*sorted(results), 'x + 0'])},)"]
        return "def forward(self, x, y):\n" + "".join(f"    {line}\n" for line in body)


def _as_other_numbers(name: str, value: Any, kind: str) -> Iterator[str]:
    """Texts of what shows a tensor's bytes, or the parts of its numbers, as other numbers."""
    if value.is_complex():
        yield f"torch.view_as_real({name})"
        yield from (f"{name}.{part}" for part in ("real", "imag", "conj()", "mH"))
    elif kind == "complex" and value.ndim and value.shape[-1] == 2:
        yield f"torch.view_as_complex({name})"
    if kind == "bits":
        yield from (f"{name}.view(torch.{dtype})" for dtype in ("int64", "float64", "int32"))


def _views(draw: Random, name: str, value: Any, dynamic: bool) -> Iterator[str]:
    """Texts of what shows a tensor's elements otherwise; some are copies, as its strides are."""
    dims = value.ndim
    yield f"{name}.unsqueeze(0)"
    yield f"{name}.detach()"
    yield f"{name}.view_as({name})"
    yield f"torch.atleast_2d({name})"
    yield f"{name}.flatten()"
    yield f"{name}.ravel()"
    yield f"{name}.reshape(-1)"
    yield f"{name}.squeeze()"
    yield f"torch.positive({name})"
    yield f"{name}.expand({', '.join(['-1'] * dims)})" if dims else f"{name}.expand(1)"
    if not dims:
        return
    yield f"{name}.unbind(0)[-1]" if not dynamic else f"{name}.select(0, -1)"
    yield f"{name}.select(-1, 0)"
    yield f"{name}[1:]"
    yield f"{name}[::2]"
    yield f"{name}[..., :2]"
    yield f"{name}.unsqueeze(-1).expand({', '.join(['-1'] * dims)}, 2)"
    if not dynamic:
        yield f"{name}.split(2, -1)[0]"
        yield f"{name}.chunk(2, -1)[-1]"
        yield f"{name}.tensor_split(2, 0)[0]"
        size = value.numel()
        factors = [(a, size // a) for a in range(1, size + 1) if size % a == 0]
        if factors:
            a, b = draw.choice(factors)
            yield f"{name}.reshape({a}, {b})"
            yield f"{name}.view({a}, {b})"
            yield f"{name}.reshape(1, {a}, {b})"
    else:
        yield f"{name}.reshape({name}.shape[0], -1)"
        yield f"{name}.reshape(-1, {name}.shape[-1])"
    last = value.shape[-1]
    if last in (4, 6):
        yield f"{name}.unflatten(-1, (2, {last // 2}))"
        yield f"{name}.reshape(*{name}.shape[:-1], 2, {last // 2})"
    if last == 2 and value.is_contiguous():
        yield f"torch.view_as_complex({name}).real"
    if dims > 1:
        yield f"{name}.transpose(0, -1)"
        yield f"{name}.mT"
        yield f"{name}.movedim(0, -1)"
        yield f"{name}.flatten(0, 1)"
        yield f"{name}.flatten(-2)"
        yield f"{name}.diagonal()"
        yield f"{name}.permute({', '.join(map(str, draw.sample(range(dims), dims)))})"
        yield f"{name}.transpose(0, 1).reshape({name}.shape)"
