"""Calls exported functions of a kernel's library through ctypes, for every device."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scheduler.runtime.device import DeviceError, LoadedKernel

_CTYPES: dict[str, Any] = {
    "ptr": ctypes.c_void_p,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}
_INTEGER_RANGES = {
    "ptr": (0, 2**64 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1),
}


class Library:
    """A kernel's library in this process. Raises ``DeviceError`` if it cannot be opened.

    ``status`` is the name of that error in the device's runtime; the default is HIP's.
    """

    def __init__(self, path: Path, status: str = "hipErrorSharedObjectInitFailed") -> None:
        try:
            self.handle = ctypes.CDLL(str(path.absolute()))
        except OSError as error:
            raise DeviceError(status, str(error)) from None
        self._path = path

    def function(self, name: str, status: str = "hipErrorSharedObjectSymbolNotFound") -> Any:
        """Return an exported function. Raises ``DeviceError`` if there is none of that name."""
        try:
            return self.handle[name]
        except AttributeError:
            message = f"{self._path.name} exports no function {name!r}"
            raise DeviceError(status, message) from None

    def close(self) -> None:
        """Unload the library; its functions must not be called afterwards."""
        if sys.platform == "win32":
            raise NotImplementedError("shared libraries are closed on POSIX systems only")
        import _ctypes  # noqa: PLC0415 - CPython's own, for the one thing ctypes leaves out

        _ctypes.dlclose(self.handle._handle)


class ExportedKernel:
    """A kernel's C function, as `scheduler.codegen.kernel.KernelArg` describes it.

    ``raise_for`` gets the return value after each call, and raises ``DeviceError`` if the value or
    the runtime reports a failure.
    """

    def __init__(
        self,
        function: Any,
        arg_types: Sequence[str],
        stream: int,
        raise_for: Callable[[int], None],
    ) -> None:
        unknown = [kind for kind in arg_types if kind not in _CTYPES]
        if unknown:
            raise ValueError(f"argument types {unknown} are not known; known are {[*_CTYPES]}")
        self._function = function
        self._function.restype = ctypes.c_int
        self._types = tuple(arg_types)
        self._stream = ctypes.c_void_p(stream)
        self._raise_for = raise_for

    def workspace_bytes(self, args: Sequence[int | float]) -> int:
        """Bytes of workspace that a call with these arguments needs; launches nothing."""
        size = ctypes.c_size_t(0)
        self._raise_for(
            self._function(*self._convert(args), ctypes.byref(size), None, self._stream)
        )
        return size.value

    def __call__(self, args: Sequence[int | float], workspace: int = 0) -> None:
        """Launch on the device's stream. Raises ``DeviceError`` if the function returns non-0."""
        self.prepared(args, workspace)()

    def prepared(self, args: Sequence[int | float], workspace: int = 0) -> Callable[[], None]:
        """Return the launch with converted arguments, so that only the launch is timed."""
        values = (*self._convert(args), None, ctypes.c_void_p(workspace), self._stream)
        function, raise_for = self._function, self._raise_for

        def launch() -> None:
            raise_for(function(*values))

        return launch

    def _convert(self, args: Sequence[int | float]) -> list[Any]:
        if len(args) != len(self._types):
            raise ValueError(f"the kernel takes {len(self._types)} arguments, not {len(args)}")
        return [_to_ctypes(kind, arg) for kind, arg in zip(self._types, args, strict=True)]


def bind_launch(
    kernel: LoadedKernel, args: Sequence[int | float], workspace: int
) -> Callable[[], None]:
    """Return a launch that is ready to be timed, for any kind of kernel."""
    if isinstance(kernel, ExportedKernel):
        return kernel.prepared(args, workspace)
    return lambda: kernel(args, workspace)


def elapsed_ns(launches: Sequence[tuple[LoadedKernel, Sequence[int | float], int]]) -> int:
    """Return the wall time, in nanoseconds, of launches that are complete on return."""
    bound_launches = [bind_launch(*launch) for launch in launches]
    start_ns = time.perf_counter_ns()
    for launch in bound_launches:
        launch()
    return time.perf_counter_ns() - start_ns


def _to_ctypes(kind: str, value: int | float) -> Any:
    """Convert an argument; ctypes silently truncates integers, here that is an error."""
    if kind in _INTEGER_RANGES:
        low, high = _INTEGER_RANGES[kind]
        if int(value) != value or not low <= value <= high:
            raise ValueError(f"{value} does not fit into an argument of type {kind}")
        return _CTYPES[kind](int(value))
    return _CTYPES[kind](value)
