"""The origin of a node: torch's stack trace and module stack as an ``Origin``.

Origins are informational; text in an unusual form is left out and is never an error.
"""

from __future__ import annotations

import re
from typing import Any

from scheduler.ir.graph import Frame, Origin
from scheduler.limits import MAX_FRAMES, MAX_ORIGIN_TEXT

_FRAME = re.compile(r'\s*File "(?P<file>[^"]*)", line (?P<line>\d{1,9}), in (?P<function>.*)')


def read_origin(metadata: Any) -> Origin:
    """The origin in a node's metadata: module path and type, and the frames of its stack trace."""
    if not isinstance(metadata, dict):
        return Origin()
    # The innermost module of ``key,path,type;key,path,type``.
    innermost = _text(metadata, "nn_module_stack").rpartition(";")[2]
    module_path, _, module_type = innermost.partition(",")[2].rpartition(",")
    return Origin(
        frames=read_frames(_text(metadata, "stack_trace")),
        module_path=module_path,
        module_type=module_type,
        torch_function=_text(metadata, "torch_fn").rpartition(";")[2],
    )


def _text(metadata: dict[str, Any], label: str) -> str:
    value = metadata.get(label)
    return value if isinstance(value, str) and len(value) <= MAX_ORIGIN_TEXT else ""


def read_frames(stack_trace: str) -> tuple[Frame, ...]:
    """The frames of a traceback's text, innermost last. A very deep traceback keeps its innermost
    frames."""
    frames: list[Frame] = []
    for line in stack_trace.splitlines():
        match = _FRAME.fullmatch(line)
        if match:
            file, number, function = match.group("file", "line", "function")
            frames.append(Frame(file, int(number), function.strip(), ""))
        elif frames and not frames[-1].code and line.strip(" ^~"):
            last = frames[-1]
            frames[-1] = Frame(last.file, last.line, last.function, line.strip())
    return tuple(frames[-MAX_FRAMES:])
