"""Patterns of series: names with stars, and paths as in CODEOWNERS."""

from __future__ import annotations

import pytest

from scheduler.errors import UserError
from scheduler.track.patterns import (
    SeriesFacts,
    SeriesPatterns,
    matches_name,
    matches_path,
    parse_patterns,
)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*", ["", "gemm", "a\nb"], []),
        ("gemm", ["gemm", "GEMM"], ["gemm2", "a gemm", ""]),
        ("*gemm*", ["gemm", "big GEMM fp8"], ["gem"]),
        ("gemm ?", ["gemm 1"], ["gemm", "gemm 12"]),
        ("a*b*c", ["abc", "aXbXbXc"], ["acb", "abcd"]),
        ("test_sum[100]", ["test_sum[100]"], ["test_sum1"]),
        ("a.b", ["a.b"], ["axb"]),
        ("**x**", ["x", "axb"], ["y"]),
        ("a*a", ["aa", "aba"], ["a"]),
        ("größe*", ["größe 1"], ["GRÖSSE"]),
    ],
)
def test_names_match_as_a_whole_and_ignore_case(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    assert [text for text in matching if not matches_name(pattern, text)] == []
    assert [text for text in others if matches_name(pattern, text)] == []


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        # The examples of GitHub's documentation.
        ("*", ["README.md", "a/b/c.py"], [""]),
        ("*.js", ["a.js", "src/deep/b.js"], ["a.jsx", "js/a.py"]),
        ("/build/logs/", ["build/logs/a", "build/logs/a/b"], ["build/logs", "x/build/logs/a"]),
        ("docs/*", ["docs/getting-started.md"], ["docs/build-app/a.md", "x/docs/a.md"]),
        ("apps/", ["apps/a", "x/apps/b/c"], ["apps", "myapps/a"]),
        ("/docs/", ["docs/a/b"], ["x/docs/a"]),
        ("/scripts/", ["scripts/a"], ["scripts"]),
        ("**/logs", ["logs", "build/logs/a", "deeply/nested/logs/b"], ["logs2/a"]),
        ("/apps/github", ["apps/github", "apps/github/a/b"], ["apps/gitlab/a"]),
        # Others.
        ("kernels/**/gemm_*.py", ["kernels/gemm_a.py", "kernels/x/y/gemm_b.py"], ["gemm_a.py"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "x/src/a"]),
        ("tests/test_?.py", ["tests/test_a.py", "./tests/test_b.py"], ["tests/test_ab.py"]),
        ("test_a.py", ["test_a.py", "x/test_a.py"], ["X/Test_A.py"]),
        ("*/attention/*", ["kernels/attention/a.py"], ["kernels/attention/a/b.py"]),
        ("**", ["a", "a/b"], [""]),
    ],
)
def test_paths_match_as_in_codeowners(pattern: str, matching: list[str], others: list[str]) -> None:
    assert [path for path in matching if not matches_path(pattern, path)] == []
    assert [path for path in others if matches_path(pattern, path)] == []


def test_a_pathological_pattern_is_answered_at_once() -> None:
    """An expression that backtracks takes longer than the age of the universe for these."""
    assert not matches_name("*a" * 90 + "b", "a" * 500)
    assert not matches_name("?*" * 90 + "b", "a" * 500)
    assert not matches_path("**/a/" * 35 + "b", "a/" * 250 + "a")
    assert not matches_path("*a" * 90 + "b", "a" * 500)
    assert matches_name("*a" * 90, "a" * 500)


def test_every_fact_that_has_patterns_matches_one_of_them() -> None:
    facts = SeriesFacts("github.com/x/kernels", "gemm 4096", "NVIDIA H200", "time", "gemm/a.py")
    patterns = parse_patterns({"problem": "conv*\n gemm* \n\ngemm*", "device": "*h200*"})
    assert patterns == SeriesPatterns(problem=("conv*", "gemm*"), device=("*h200*",))
    assert patterns.matches(facts)
    assert SeriesPatterns().matches(facts)
    for name in ("repository", "problem", "device", "metric", "path"):
        assert not SeriesPatterns(**{name: ("other",)}).matches(facts), name
    assert str(patterns) == "problem conv* | gemm*, device *h200*"
    assert str(SeriesPatterns()) == "every series"


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({"problem": "x" * 201}, "problem: .* has 201 characters, more than 200"),
        ({"device": "\n".join(map(str, range(51)))}, "device: 51 patterns, more than 50"),
        ({"path": "!docs/"}, r"path !docs/: exclusions \(!\) are not supported"),
        ({"path": "a[0-9]"}, r"path a\[0-9\]: character ranges"),
        ({"path": "\\#a"}, "escapes"),
        ({"path": "/"}, "names no file"),
    ],
)
def test_what_is_no_pattern_is_refused_in_a_line(texts: dict[str, str], reason: str) -> None:
    with pytest.raises(UserError, match=reason) as refused:
        parse_patterns(texts)
    assert "\n" not in str(refused.value)
