"""The sides of a comparison: what they are called, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codegen_app.kernels.models import Build
from codegen_app.tuning.models import BenchmarkResult
from codegen_app.tuning.queries.measured_row import MeasuredRow, metrics_of
from scheduler.codegen.languages import language_of

_LONGEST_CONFIG = 40  # characters of a label


@dataclass(frozen=True)
class Side(MeasuredRow):
    """One build with its compared time. ``label`` identifies it by what differs, ``changed`` are
    the parameters of its configuration that differ; ``device`` and ``bindings`` say where its time
    was measured: sides may differ in these too."""

    build: int
    label: str
    kernel: str
    url: str
    target: str
    flags: tuple[str, ...]
    toolchain: str
    config: Mapping[str, Any]
    changed: Mapping[str, Any]
    device: str
    bindings: Mapping[str, int]

    @property
    def facts(self) -> Mapping[str, str]:
        """What identifies the build, by the titles of columns."""
        return {
            "Target": self.target,
            "Flags": " ".join(self.flags),
            "Toolchain": self.toolchain,
            "Measured on": self.device,
            "Sizes": " ".join(f"{name}={size}" for name, size in self.bindings.items()),
        }


def make_sides(builds: Sequence[Build], times: Mapping[int, BenchmarkResult]) -> tuple[Side, ...]:
    """Return the sides in the order of the builds. ``times`` are by the builds' keys."""
    changed = _changed_parameters(builds)
    sides = []
    for build, label, parameters in zip(builds, _labels(builds, changed), changed, strict=True):
        result = times.get(build.pk)
        sides.append(
            Side(
                build=build.pk,
                label=label,
                kernel=build.kernel.name,
                url=f"{build.kernel.get_absolute_url()}?build={build.pk}",
                target=build.target,
                flags=tuple(build.flags),
                toolchain=f"{build.toolchain} {build.toolchain_version}",
                config=build.kernel.config,
                changed=parameters,
                metrics=metrics_of(result),
                emulated=bool(result and result.emulated),
                origin=result.origin if result else "",
                device=result.environment.device_name if result else "",
                bindings=result.bindings if result else {},
            )
        )
    return tuple(sides)


def shared_facts(sides: Sequence[Side]) -> Mapping[str, str]:
    """Return the facts that are equal on all sides, which need no column."""
    first, *others = [side.facts for side in sides]
    return {
        title: text
        for title, text in first.items()
        if all(facts[title] == text for facts in others)
    }


def _changed_parameters(builds: Sequence[Build]) -> list[dict[str, Any]]:
    """Return the parameters of each build's kernel that are not equal on all sides."""
    configs: list[Mapping[str, Any]] = [build.kernel.config for build in builds]
    names = dict.fromkeys(name for config in configs for name in config)
    differing = [
        name
        for name in names
        if any(config.get(name) != configs[0].get(name) for config in configs)
    ]
    return [{name: config[name] for name in differing if name in config} for config in configs]


def _labels(builds: Sequence[Build], changed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Label each side by what differs: the compiler if nothing else does, the target if nothing
    differs. Kernels are called by their parameters, by their digest if these are many or equal."""
    configs = [" ".join(f"{name}={value}" for name, value in part.items()) for part in changed]
    kernels = {build.kernel_id for build in builds}
    parts = dict(LABEL_PARTS)
    if len(set(configs)) == len(kernels) and max(map(len, configs)) <= _LONGEST_CONFIG:
        config_of = dict(zip((build.pk for build in builds), configs, strict=True))

        def config_text(build: Build) -> str:
            return config_of[build.pk]

        parts = {**LABEL_PARTS, "kernel": config_text}
    differing = [part for part, text in parts.items() if len({text(build) for build in builds}) > 1]
    shorter = [part for part in differing if part != "toolchain"]
    if len({_join(build, shorter, parts) for build in builds}) == len(builds):
        differing = shorter
    return [_join(build, differing or ["target"], parts) for build in builds]


_LabelPart = Callable[[Build], str]
LABEL_PARTS: Mapping[str, _LabelPart] = {
    "language": lambda build: language_of(build.kernel.source_file),
    "kernel": lambda build: build.kernel.name.rpartition("_")[2],  # eight digits of its digest
    "target": lambda build: build.target,
    "flags": lambda build: " ".join(build.flags),
    "toolchain": lambda build: f"{build.toolchain} {build.toolchain_version}",
}


def _join(build: Build, names: Sequence[str], parts: Mapping[str, _LabelPart]) -> str:
    return " ".join(parts[name](build) for name in names)


def full_label(build: Build) -> str:
    """Return a build's label wherever it stands alone."""
    return _join(build, ("kernel", "target", "flags"), LABEL_PARTS)
