"""Real models to try: torch.export files whose weights were removed (README.md beside them)."""

from __future__ import annotations

from pathlib import Path

GRAPHS = Path(__file__).parent / "graphs"
RESULTS = Path(__file__).parent / "results"


def path(name: str) -> Path:
    """The file of a sample by its name without ``.pt2``; KeyError where there is none."""
    file = GRAPHS / f"{name}.pt2"
    if not file.is_file():
        raise KeyError(name)
    return file


def names() -> tuple[str, ...]:
    """All samples, sorted."""
    return tuple(sorted(file.stem for file in GRAPHS.glob("*.pt2")))


def results() -> tuple[Path, ...]:
    """Recorded results of samples (docs/results.md), sorted by their names."""
    return tuple(sorted(RESULTS.glob("*.json*")))
