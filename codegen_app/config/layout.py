"""Where the application's files are: in a checkout, or in the package that a wheel installs.

A wheel carries the checkout's folders of pages inside the package (``pyproject.toml``,
docs/adr/0035-wheel.md). What is written lies in the checkout's ``var``, or in the user's own folder
of data: never among installed packages.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """The folders of one installation."""

    packages: Path  # the packages lie in it: a checkout, or site-packages
    installed: bool
    site: Path  # templates, static files and what pages show of docs lie in it
    work: Path  # processes start there; modules are found, and nobody else writes there

    def own_files(self) -> tuple[Path, ...]:
        """All that is Kiln's."""
        names = ("codegen_app", "scheduler")
        more = () if self.installed else ("manage.py", "templates", "static")
        return tuple(self.packages / name for name in (*names, *more))

    def data(self, xdg_data_home: str) -> Path | None:
        """Where everything is written that no variable places elsewhere; none for who has no home.
        A relative path of XDG's variable counts as none, as its specification has it."""
        if not self.installed:
            return self.packages / "var"
        if Path(xdg_data_home).is_absolute():
            return Path(xdg_data_home) / "kiln"
        try:
            return Path.home() / ".local" / "share" / "kiln"
        except RuntimeError:
            return None


def layout_of(packages: Path) -> Layout:
    """Of the installation whose packages lie in a folder."""
    carried = packages / "codegen_app" / "_site"
    if carried.is_dir():
        return Layout(packages, installed=True, site=carried, work=Path("/"))
    return Layout(packages, installed=False, site=packages, work=packages)


LAYOUT = layout_of(Path(__file__).resolve().parents[2])
