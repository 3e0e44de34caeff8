"""Somebody to notify, on this machine: an HTTP server and an SMTP server that keep what arrives."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue


@dataclass(frozen=True)
class Request:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What is answered; ``raw`` instead of HTTP, without an end where
    ``dripping``; nothing at all where ``silent``."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    raw: bytes = b""
    silent: bool = False
    dripping: bool = False


class HttpReceiver:
    """Answers with ``answers`` one after the other, then with 204."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/hook"
        self.requests: SimpleQueue[Request] = SimpleQueue()
        self.answers: list[Answer] = []
        self.over = threading.Event()

    def next(self, within_s: float = 60) -> Request:
        """The next request; raises ``queue.Empty`` where none arrives."""
        return self.requests.get(timeout=within_s)


@contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    """A receiver on a free port of the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            answer = receiver.answers.pop(0) if receiver.answers else Answer()
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.requests.put(Request(self.command, self.path, headers, body))
            self._answer(answer)

        def _answer(self, answer: Answer) -> None:
            if answer.silent:
                receiver.over.wait()
            elif answer.raw:
                self.wfile.write(answer.raw)
                while answer.dripping and not receiver.over.wait(0.02):
                    self.wfile.write(b"a")
            else:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the terminal."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A sender that hangs up is no failure here."""

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver = HttpReceiver(server.server_address[1])
        with _serving(server):
            try:
                yield receiver
            finally:
                receiver.over.set()


@dataclass(frozen=True)
class Mail:
    """A message with its envelope."""

    sender: str
    recipients: tuple[str, ...]
    message: EmailMessage


class SmtpReceiver:
    """Takes every message; ``replies`` holds other answers to a command and its argument."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.mails: SimpleQueue[Mail] = SimpleQueue()
        self.replies: dict[str, str] = {}

    def next(self, within_s: float = 60) -> Mail:
        """The next message; raises ``queue.Empty`` where none arrives."""
        return self.mails.get(timeout=within_s)


@contextmanager
def smtp_receiver() -> Iterator[SmtpReceiver]:
    """A receiver on a free port of the loopback."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 receiver")
            sender, recipients = "", []
            while line := self.rfile.readline():
                command = line.decode().strip()
                verb = command.partition(" ")[0].partition(":")[0].upper()
                reply = next(
                    (r for c, r in receiver.replies.items() if c.upper() in command.upper()), ""
                )
                if verb == "QUIT":
                    self._say("221 bye")
                    return
                if verb == "RSET":
                    sender, recipients = "", []
                if reply and verb in ("EHLO", "MAIL", "RCPT", "DATA"):
                    self._say(reply)
                elif verb == "MAIL":
                    sender = _path(command)
                    self._say("250 ok")
                elif verb == "RCPT":
                    recipients.append(_path(command))
                    self._say("250 ok")
                elif verb == "DATA":
                    self._say("354 go on")
                    content = self._content()
                    message = message_from_bytes(content, policy=policy.default)
                    assert isinstance(message, EmailMessage)
                    receiver.mails.put(Mail(sender, tuple(recipients), message))
                    self._say("250 ok")
                else:
                    self._say("250 ok")

        def _content(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line[1:] if line.startswith(b"..") else line)
            return b"".join(lines)

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver = SmtpReceiver(server.server_address[1])
        with _serving(server):
            yield receiver


def _path(command: str) -> str:
    return command.partition("<")[2].partition(">")[0]


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
