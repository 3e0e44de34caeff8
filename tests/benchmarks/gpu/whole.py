"""Whole sample models."""

from __future__ import annotations

from collections.abc import Callable

import torch

from scheduler import samples
from tests.benchmarks.gpu.problem import Loaded, Problem, beside_compile
from tests.benchmarks.gpu.samples import program_of


def whole(
    model: str, title: str, inputs: Callable[[str], torch.Tensor], flops: float = 0.0
) -> Problem:
    """A sample in its own dtype, as it lies in the package, with random weights."""
    file = samples.path(model)

    def load(device: str) -> Loaded:
        given = (inputs(device),)
        # With its number: tensors of torch.compile have one, and the program compares them.
        program = program_of(file, given, "cuda:0" if device == "cuda" else device)
        return Loaded(program.module(), given, program, file)

    return Problem(f"{model} whole, {title}", load, flops=flops, bars=beside_compile(1.1))


def wholes() -> tuple[Problem, ...]:
    """In the order in which they are shown: the longest to compile last."""
    image = (2, 3, 224, 224)
    batch, length, width, layers, words = 4, 1024, 768, 12, 50257
    tokens, weights = batch * length, layers * 12 * width**2 + words * width
    return (
        whole("vit_2layer", "2 images, f16", lambda device: _image(image, device, torch.float16)),
        whole("resnet_small", "2 images, f32", lambda device: _image(image, device, torch.float32)),
        whole("llama3_8b_1layer", "2048, bf16", lambda device: _words(128256, (1, 2048), device)),
        whole(
            "gpt2_124m",
            f"{batch}x{length}, f16",
            lambda device: _words(words, (batch, length), device),
            2.0 * tokens * weights + layers * 2.0 * batch * length**2 * width,
        ),
    )


def _image(shape: tuple[int, ...], device: str, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*shape, device=device, dtype=dtype)


def _words(vocabulary: int, shape: tuple[int, ...], device: str) -> torch.Tensor:
    return torch.randint(0, vocabulary, shape, device=device)
