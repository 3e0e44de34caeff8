"""What nothing reads is not written: kernels store what another kernel or the user reads."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from scheduler import pipeline, samples, targets
from scheduler.fusion.nodes import Schedule
from scheduler.fusion.verifier import verify
from scheduler.ir.dtypes import DType
from scheduler.ir.storage import bind_buffer
from scheduler.lowering.verifier import InconsistentError
from tests.unit.fusion.test_legality import Model

TARGETS = [targets.find("gfx942")]

#: Bytes that the kernels of a sample write at its hints: while a normalisation still stored its
#: rows' sums and roots, and since they stay in registers. resnet_small has no normalisation;
#: the weights of its larger convolutions are brought into their order (4.7 MB).
WRITTEN = {
    "bert_2layer": (19_681_280, 19_660_800),
    "gpt2_124m": (1_335_304_192, 1_330_257_920),
    "gpt2_2layer": (36_000_256, 35_955_200),
    "llama3_8b_1layer": (779_157_504, 774_897_664),
    "llama_2layer": (8_876_032, 8_798_208),
    "resnet_small": (20_172_800, 20_172_800),
    "vit_2layer": (16_352_656, 16_336_896),
}


def bytes_written(plan: Schedule) -> int:
    """The size of every output of every kernel call, at the hints."""
    generated = pipeline.generate(plan, TARGETS)
    kernels = {kernel.name: kernel for kernel in generated.kernels}
    hints = {name: info.hint for name, info in plan.lowered.graph.symbols.items()}
    total = 0
    for call in generated.calls:
        for arg in kernels[call.kernel].args:
            if arg.is_output:
                buffer = bind_buffer(plan.lowered.buffers[str(call.args[arg.name])], hints)
                total += prod(buffer.size) * buffer.dtype.itemsize
    return total


@pytest.mark.full(but=["bert_2layer", "vit_2layer"])
@pytest.mark.parametrize("name", samples.names())
def test_the_samples_write_no_more_than_is_read(name: str) -> None:
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path(name))))
    before, now = WRITTEN[name]
    assert bytes_written(plan) == now
    assert now < before or name == "resnet_small"


@pytest.mark.parametrize("target", ["layer_norm.default", "softmax.int"])
def test_a_normalisation_writes_its_result_alone(target: str) -> None:
    m = Model()
    shape: object = (8,) if target.startswith("layer") else 1
    plan = m.plan(m.op(target, m.array(5, 8), shape))
    (node,) = plan.nodes
    assert node.writes == plan.lowered.outputs
    assert len(node.members) == 3  # the rows' sums, or roots, are computed all the same
    (kernel,) = pipeline.generate(plan, TARGETS).kernels
    assert [arg.name for arg in kernel.args if arg.is_output] == ["out_ptr0"]
    assert bytes_written(plan) == 5 * 8 * DType.F32.itemsize


def test_what_the_user_or_another_kernel_reads_is_written() -> None:
    m = Model()
    x = m.array(5, 8)
    rows = m.op("sum.dim_IntList", x, (1,), True)
    normal = m.op("div.Tensor", x, rows)
    assert len(m.plan(normal, rows).nodes[0].writes) == 2
    product = m.op("mm.default", m.op("permute.default", rows, (1, 0)), m.array(5, 4))
    plan = m.plan(normal, product)
    assert [len(node.writes) for node in plan.nodes] == [2, 1]


def softmax() -> Schedule:
    m = Model()
    return m.plan(m.op("softmax.int", m.array(5, 8), 1))


def test_a_schedule_that_writes_for_nobody_is_rejected() -> None:
    plan = softmax()
    (node,) = plan.nodes
    hidden = node.members[0].writes[0]
    storage, pools = {hidden: "pool0"}, {"pool0": plan.lowered.buffers[hidden].size[0] * 4}
    wrong = replace(node, writes=(hidden, *node.writes))
    with pytest.raises(InconsistentError, match=f"writes {hidden}, which is never read"):
        verify(replace(plan, nodes=(wrong,), storage=storage, pools=pools))


def test_a_schedule_that_computes_for_nobody_is_rejected() -> None:
    plan = softmax()
    (node,) = plan.nodes
    spare = node.members[0]
    again = spare.with_results([replace(spare.results[0], buffer="spare")], spare.nodes)
    members = (*node.members, again)
    with pytest.raises(InconsistentError, match=f"{spare.name} in kernel op0 is never used"):
        verify(replace(plan, nodes=(replace(node, members=members),)))


def test_what_stayed_in_registers_cannot_be_read_by_another_kernel() -> None:
    m = Model()
    x = m.array(5, 8)
    rows = m.op("sum.dim_IntList", x, (1,), True)
    normal = m.op("div.Tensor", x, rows)
    plan = m.plan(normal, m.op("mm.default", m.op("permute.default", rows, (1, 0)), m.array(5, 4)))
    first = replace(plan.nodes[0], writes=(plan.nodes[0].writes[-1],))
    with pytest.raises(InconsistentError, match="before an operation writes it"):
        verify(replace(plan, nodes=(first, *plan.nodes[1:])))
