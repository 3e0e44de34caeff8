"""The lexers know what nvdisasm and LLVM really write."""

from __future__ import annotations

import pytest
from pygments.token import Error

from codegen_app.kernels.queries.listing import read_listing
from codegen_app.web.highlighting import PtxLexer, SassLexer, highlight_lines
from scheduler import targets
from tests.unit.cuda.conftest import SAMPLES, SampleBuild

TARGETS = ["sm_80", "sm_90", "sm_100", "sm_120"]


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_real_listings_have_no_error_tokens(
    sample: str, target: str, sample_build: SampleBuild
) -> None:
    made = sample_build(sample, target)
    for file, lexer in (("kernel.s", SassLexer()), ("kernel.ptx", PtxLexer())):
        text = (made.directory / file).read_text()
        errors = [value for token, value in lexer.get_tokens(text) if token in Error]
        assert errors == []


@pytest.mark.parametrize(("file", "lexer"), [("kernel.s", SassLexer), ("kernel.ptx", PtxLexer)])
def test_each_instruction_has_the_colour_of_its_class(
    file: str, lexer: type[SassLexer | PtxLexer], sample_build: SampleBuild
) -> None:
    """Lines by themselves, as a chunk of a listing begins anywhere; branches' goals are links."""
    text = (sample_build("attention_f16", "sm_90").directory / file).read_text()
    view = read_listing(text, targets.find("sm_90"))
    for row, line in zip(view.text.split("\n"), view.lines, strict=True):
        if not line.instruction:
            continue
        (html,) = highlight_lines(row, lexer())
        kind = "global" if line.instruction == "scratch" else line.instruction
        assert f'<span class="i-{kind}">' in html, row
        if line.jump:
            assert f'<span class="nl">{line.target}</span>' in html
