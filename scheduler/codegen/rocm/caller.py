"""A candidate whose kernel is HIP C++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scheduler.codegen.benchmark_request import BenchmarkRequest
from scheduler.codegen.buffer import TemplateBuffer
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.benchmark_request import ROCmBenchmarkRequest
from scheduler.codegen.rocm.buffer import ROCmTemplateBuffer


@dataclass(frozen=True)
class ROCmTemplateCaller(TemplateCaller):
    """Makes requests that fit the exported function, and describes the kernel's output."""

    request_type: ClassVar[type[BenchmarkRequest]] = ROCmBenchmarkRequest
    buffer_type: ClassVar[type[TemplateBuffer]] = ROCmTemplateBuffer
