"""``make screenshots``: a picture of every page, in both themes, at three widths.

    python -m tests.screenshots [--url URL] [--only NAME ...] [--out FOLDER]

Pages are those of ``tests/support/every_page.py``, with the rows of the demo's database. Without
``--url`` a demo is started here and stopped again, and pictures are taken when all its work is
done; with it one that runs already is used. ``index.html`` in the folder shows them side by side,
and says which pages had no row to show.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import django
from playwright.sync_api import Browser, BrowserContext, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (360, 1024, 1680)
THEMES = ("light", "dark")
HIGH = 900  # CSS pixels, of the window
TALLEST = 2400  # of a picture: the rest of a longer page is more of the same
LOOK_EVERY_S = 5.0
OUTSIDE = {"login": "/login/"}  # seen by who is not signed in
# Everything on it is drawn; pages of the administration have no scripts of ours.
ANSWERS = """() => document.documentElement.dataset.ready
  || ![...document.scripts].some((script) => script.type === "module")"""
# What is out of sight is not drawn (content-visibility), in a picture of the whole page neither.
DRAW_ALL = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(".codepane .rows, .diff .part { content-visibility: visible !important; }");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""
UNFINISHED = {"queued", "running"}


def main() -> int:
    """Take them all; the exit status is 1 where a page was not answered as it should be."""
    parser = argparse.ArgumentParser(description="A picture of every page of the demo.")
    parser.add_argument("--url", help="of a demo that runs already, from this folder")
    parser.add_argument("--only", nargs="*", default=[], help="names of pages")
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "screenshots")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("kiln: there is no Chromium: apt-get install chromium")
    with _site(options.url) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        addresses, missing, cookie = _pages(url)
        wanted = {n: a for n, a in addresses.items() if not options.only or n in options.only}
        options.out.mkdir(parents=True, exist_ok=True)
        failed = _take(browser, url, wanted, [cookie], options.out)
        outside = {n: a for n, a in OUTSIDE.items() if not options.only or n in options.only}
        failed += _take(browser, url, outside, [], options.out)
        browser.close()
    _sheet(options.out, wanted | outside, missing)
    _say(f"{options.out / 'index.html'} shows {len(wanted)} pages")
    for line in (*failed, *(f"{name}: not taken, {why}" for name, why in missing.items())):
        _say(line)
    return 1 if failed else 0


@contextmanager
def _site(url: str | None) -> Iterator[str]:
    """The address of a demo with its work done."""
    if url:
        yield url.rstrip("/")
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "manage.py", "demo", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT) as demo:
        try:
            url = f"http://127.0.0.1:{port}"
            while not _is_done(url):
                if demo.poll() is not None:
                    sys.exit("kiln: the demo ended")
                time.sleep(LOOK_EVERY_S)
            yield url
        finally:
            demo.send_signal(signal.SIGTERM)


def _is_done(url: str) -> bool:
    """Whether it answers, and has graphs and runs of which none is under way."""
    try:
        runs, graphs = (_read(f"{url}/{what}.json")[what] for what in ("runs", "graphs"))
    except URLError:
        return False
    return bool(runs and graphs) and not any(row["state"] in UNFINISHED for row in runs + graphs)


def _read(url: str) -> Any:
    with urlopen(url) as answer:
        return json.load(answer)


def _pages(url: str) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
    """The pages there are rows for, what the others lack, and the cookie of who administers."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codegen_app.platform.config.settings")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright's loop runs in this thread
    key = Path(os.environ.get("KILN_VAR", ROOT / "var")) / "secret-key"
    os.environ.setdefault("KILN_SECRET_KEY", key.read_text())
    django.setup()
    from django.contrib.auth.models import User
    from django.test import Client

    from tests.support import every_page

    found, missing = every_page.available()
    administered = {name: address() for name, address in every_page.ADMIN.items()}
    client = Client()
    client.force_login(User.objects.filter(is_superuser=True).order_by("pk")[0])
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}
    return found | administered, missing, cookie


def _take(
    browser: Browser, url: str, pages: Mapping[str, str], cookies: list[dict[str, Any]], out: Path
) -> list[str]:
    """Each page's pictures; what went wrong, a line each."""
    failed = []
    for theme in THEMES:
        for width in WIDTHS:
            context = browser.new_context(
                base_url=url,
                viewport={"width": width, "height": HIGH},
                color_scheme="dark" if theme == "dark" else "light",
            )
            context.add_cookies(cookies)  # type: ignore[arg-type]
            failed += [
                f"{name}: {why}"
                for name, address in pages.items()
                if (why := _picture(context, address, out / f"{name}-{width}-{theme}.png"))
            ]
            context.close()
    return failed


def _picture(context: BrowserContext, address: str, file: Path) -> str:
    """Why there is none, or ""."""
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    answer = page.goto(address)
    page.wait_for_load_state("networkidle")
    page.wait_for_function(ANSWERS)
    page.evaluate(DRAW_ALL)
    wide, tall = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": wide, "height": min(max(tall, HIGH), TALLEST)}
    page.screenshot(path=file, full_page=True, clip=clip)  # type: ignore[arg-type]
    page.close()
    if answer is None or answer.status >= 500:
        return f"{address} was answered with {answer and answer.status}"
    return f"{address}: {errors[0]}" if errors else ""


def _sheet(out: Path, pages: Mapping[str, str], missing: Mapping[str, str]) -> None:
    """All pictures, a row a page."""
    rows = []
    for name, address in pages.items():
        files = [f"{name}-{width}-{theme}.png" for theme in THEMES for width in WIDTHS]
        pictures = "".join(
            f'<a href="{file}"><img src="{file}" alt="{file}" loading="lazy"></a>' for file in files
        )
        title = f"{escape(name)} <code>{escape(address)}</code>"
        rows.append(f"<h2>{title}</h2><div>{pictures}</div>")
    rows += [f"<p>{escape(name)}: not taken, {escape(why)}</p>" for name, why in missing.items()]
    style = "body{font:14px sans-serif}img{height:320px;border:1px solid #888;margin:4px}"
    (out / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>Every page</title><style>{style}</style>'
        + "".join(rows)
    )


def _say(line: str) -> None:
    print(line)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
