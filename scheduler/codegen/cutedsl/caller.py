"""A candidate whose kernel is CuteDSL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scheduler.codegen.benchmark_request import BenchmarkRequest
from scheduler.codegen.buffer import TemplateBuffer
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.cutedsl.benchmark_request import CuteDSLBenchmarkRequest
from scheduler.codegen.cutedsl.buffer import CuteDSLTemplateBuffer


@dataclass(frozen=True)
class CuteDSLTemplateCaller(TemplateCaller):
    """Makes requests that fit the exported function, and describes the kernel's output."""

    request_type: ClassVar[type[BenchmarkRequest]] = CuteDSLBenchmarkRequest
    buffer_type: ClassVar[type[TemplateBuffer]] = CuteDSLTemplateBuffer
