"""The default configuration of the matrix templates: the fastest by an estimate."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

from scheduler.codegen.rocm.gemm_config import (
    GROUPS,
    GemmConfig,
    GemmProblem,
    async_configs,
    common_configs,
    gemv_configs,
    reject,
)
from scheduler.codegen.rocm.gemm_estimate import estimates
from scheduler.targets import Target
from scheduler.targets.model import hip_hardware


@lru_cache(maxsize=4096)
def default_config(problem: GemmProblem, targets: tuple[Target, ...]) -> GemmConfig | None:
    """The fastest by an estimate of those that serve every target; None where none does.

    Where every target copies asynchronously, and the operands can be, those that do. The estimates
    do not distinguish matrix instructions: of those only the common configurations are tried, the
    fastest first, since the rules cost more. A model's layers repeat their problems, so results
    are cached.
    """
    gpus = [hip_hardware(target) for target in targets]
    if all(gpu.copies_asynchronously for gpu in gpus):
        found = _first(async_configs(problem), problem, targets)
        if found is not None:
            return found
    tried = chain(common_configs(problem, GROUPS[-1:]), gemv_configs(problem))
    return _first(tried, problem, targets)


def _first(
    configs: Iterable[GemmConfig], problem: GemmProblem, targets: tuple[Target, ...]
) -> GemmConfig | None:
    by_target = estimates(configs, problem, targets)
    by_time = sorted(by_target, key=lambda config: by_target[config])
    return next((one for one in by_time if reject(one, problem, targets) is None), None)
