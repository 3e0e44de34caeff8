"""A process that answers one question after the other: one that ends, or hangs, takes one question
with it."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")
_ENDING_S = 10.0


class LostError(Exception):
    """There is no answer; the text says why."""


class Apart(Generic[Question, Answer]):
    """``make`` is called in the process, and gives what answers there."""

    def __init__(self, make: Callable[[], Callable[[Question], Answer]]) -> None:
        self._make = make
        self._process: Any = None
        self._connection: Any = None

    def answer(self, question: Question, within_s: float) -> Answer:
        """Raises ``LostError`` where it raised there, the process ended, or took longer; the next
        question starts another one, since what went wrong on a GPU may have left it unusable for
        its process."""
        if self._process is None:
            self._start()
        try:
            self._connection.send(question)
            if not self._connection.poll(within_s):
                self.stop()
                raise LostError(f"not done within {within_s:.0f} s")
            found, why = self._connection.recv()
        except (EOFError, OSError):
            self._process.join(_ENDING_S)
            status = self._process.exitcode
            self.stop()
            raise LostError(f"the process ended with {status}") from None
        if why:
            self.stop()
            raise LostError(why)
        answer: Answer = found
        return answer

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _start(self) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._make))
        self._process.start()
        theirs.close()


def _serve(connection: Connection, make: Callable[[], Callable[[Any], Any]]) -> None:
    answer = make()
    while True:
        try:
            question = connection.recv()
        except EOFError:
            return
        try:
            found: tuple[Any, str] = answer(question), ""
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is this question's
            said = " ".join(str(error).split())
            found = None, f"{type(error).__name__}: {said}"[:1000]
        connection.send(found)
