"""Where the application's files are: in a checkout, or in the package that a wheel installs.

A wheel has the checkout's folders of pages inside the package (``pyproject.toml``,
docs/adr/0035-wheel.md). Data are written to the checkout's ``var``, or to the user's own data
folder: never among installed packages.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """The folders of one installation."""

    packages: Path  # contains the packages: a checkout, or site-packages
    installed: bool
    site: Path  # contains templates, static files and the docs that pages show
    work: Path  # working directory of processes; nobody else may write there

    def own_files(self) -> tuple[Path, ...]:
        """All of Kiln's own files."""
        names = ("codegen_app", "scheduler")
        more = () if self.installed else ("manage.py", "templates", "static")
        return tuple(self.packages / name for name in (*names, *more))

    def data(self, xdg_data_home: str) -> Path | None:
        """Return the default folder for all data; None for a user without a home. A relative path
        in XDG's variable is ignored, as its specification requires."""
        if not self.installed:
            return self.packages / "var"
        if Path(xdg_data_home).is_absolute():
            return Path(xdg_data_home) / "kiln"
        try:
            return Path.home() / ".local" / "share" / "kiln"
        except RuntimeError:
            return None


def layout_of(packages: Path) -> Layout:
    """Return the layout of the installation whose packages are in a folder."""
    packaged_site = packages / "codegen_app" / "_site"
    if packaged_site.is_dir():
        return Layout(packages, installed=True, site=packaged_site, work=Path("/"))
    return Layout(packages, installed=False, site=packages, work=packages)


LAYOUT = layout_of(Path(__file__).resolve().parents[3])
