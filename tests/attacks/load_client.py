"""Readers in a closed loop, without pauses: each asks for the next page once it has the last."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

TIMEOUT_S = 60.0


@dataclass
class Answers:
    """Seconds of each kind of page, and what was no page."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bytes: int = 0


async def read(
    host: str,
    port: int,
    pages: Mapping[str, Sequence[str]],
    readers: int,
    seconds: float,
    cookies: Sequence[str],
    seed: int,
) -> Answers:
    """Let ``readers`` read for so long; reader n has cookie n. ``pages`` are addresses by kind,
    of which each kind is read as often as another."""
    answers = Answers()
    end = time.monotonic() + seconds
    tasks = [
        _reader(host, port, pages, cookies[n % len(cookies)], end, random.Random(seed + n), answers)
        for n in range(readers)
    ]
    await asyncio.gather(*tasks)
    return answers


async def visit(host: str, port: int, addresses: Sequence[str], readers: int, cookie: str) -> None:
    """Each address once, a connection each, so that all of the server's processes see some."""
    waiting = iter(addresses)

    async def _visitor() -> None:
        for address in waiting:
            connection = await asyncio.open_connection(host, port, limit=2**22)
            await _get(*connection, f"{host}:{port}", address, cookie)
            connection[1].close()

    await asyncio.gather(*(_visitor() for _ in range(readers)))


async def _reader(
    host: str,
    port: int,
    pages: Mapping[str, Sequence[str]],
    cookie: str,
    end: float,
    choice: random.Random,
    answers: Answers,
) -> None:
    kinds = list(pages)
    connection = None
    while time.monotonic() < end:
        kind = choice.choice(kinds)
        began = time.monotonic()
        try:
            if connection is None:
                connection = await asyncio.open_connection(host, port, limit=2**22)
            address = choice.choice(pages[kind])
            async with asyncio.timeout(TIMEOUT_S):
                status, size, closes = await _get(*connection, f"{host}:{port}", address, cookie)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as error:
            answers.errors[type(error).__name__] += 1
            connection = None
            continue
        if status != 200:
            answers.errors[f"status {status}"] += 1
        answers.seconds[kind].append(time.monotonic() - began)
        answers.bytes += size
        if closes:
            connection[1].close()
            connection = None
    if connection is not None:
        connection[1].close()


async def _get(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    host: str,
    address: str,
    cookie: str,
) -> tuple[int, int, bool]:
    """Status, bytes of the body, and whether the server ends the connection."""
    lines = [f"GET {address} HTTP/1.1", f"Host: {host}", "Accept-Encoding: gzip"]
    if cookie:
        lines.append(f"Cookie: {cookie}")
    writer.write("\r\n".join([*lines, "", ""]).encode())
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head[9:12])
    closes = b"\r\nconnection: close" in head
    at = head.find(b"\r\ncontent-length:")
    if at >= 0:
        size = int(head[at + 17 : head.index(b"\r\n", at + 2)])
        await reader.readexactly(size)
        return status, size, closes
    if b"\r\ntransfer-encoding: chunked" in head:
        size = 0
        while chunk := int((await reader.readline()).split(b";")[0], 16):
            size += chunk
            await reader.readexactly(chunk + 2)
        await reader.readline()
        return status, size, closes
    return status, len(await reader.read()), True
