"""The kinds of files that people try to import, each with what to do with it.

Magic numbers are those of each format's documentation. A kind that has none is recognized by names
of members, by keys of a JSON document or by lines of text, within the sample.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from scheduler.frontends.file_sample import Sample

Test: TypeAlias = Callable[[Sample], bool]
_EM_CUDA, _EM_AMDGPU = 190, 224  # machines of ELF files
_OLD_TORCH = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"  # torch's magic number, pickled
_MAX_SAFETENSORS_HEADER = 100_000_000
#: ``{"name": {"measure": {"value": …``
_BENCHER = re.compile(
    r'\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*\{\s*"(?:value|lower_value|upper_value)"'
)


class Use(StrEnum):
    """What Kiln imports a file as; ``NONE`` if it cannot."""

    GRAPH = "graph"
    RESULTS = "results"
    POINTS = "points"
    KERNEL = "kernel"
    NONE = ""


@dataclass(frozen=True)
class FileKind:
    """A kind of file: its ``title`` with its article, ``advice`` on what to do with it, and
    ``code``, the lines of Python that make a file for Kiln ({file} is the file's name)."""

    name: str
    title: str
    matches: Test
    advice: str
    use: Use = Use.NONE
    code: str = ""


# ---- tests


def starts(*magic: bytes, offset: int = 0) -> Test:
    """Test for one of these byte sequences at an offset."""
    return lambda sample: sample.head[offset:].startswith(magic)


def has_member(pattern: str) -> Test:
    """Test for a member of an archive or folder whose name matches."""
    regex = re.compile(pattern)
    return lambda sample: any(regex.search(name) for name in sample.members)


def has_line(pattern: str) -> Test:
    """Test for text with a line whose beginning matches."""
    regex = re.compile(rf"^(?:{pattern})", re.MULTILINE)
    return lambda sample: regex.search(sample.text) is not None


def has_text(pattern: str) -> Test:
    """Test for text that matches at its beginning or end."""
    regex = re.compile(pattern)
    return lambda sample: bool(
        sample.text and (regex.search(sample.text) or regex.search(sample.ending))
    )


def has_keys(*names: str) -> Test:
    """Test for a JSON document with these keys."""
    patterns = [re.compile(rf'"{name}"\s*:') for name in names]
    return lambda sample: (
        _is_json(sample)
        and all(
            pattern.search(sample.text) or pattern.search(sample.ending) for pattern in patterns
        )
    )


def _is_json(sample: Sample) -> bool:
    return sample.text.lstrip().startswith(("{", "["))


def _is_kind(kind: str) -> Test:
    """Test for one of Kiln's own JSON documents."""
    regex = re.compile(rf'"kind"\s*:\s*"{kind}"')
    return lambda sample: (
        _is_json(sample) and bool(regex.search(sample.text) or regex.search(sample.ending))
    )


#: The keys of a results file are sorted: its kernels may fill the sample before ``kind``.
_RESULTS_BEGIN = re.compile(r'\s*\{\s*"digest"\s*:\s*"[0-9a-f]{64}"\s*,\s*"(?:kernels|kind)"')


def _is_results(sample: Sample) -> bool:
    return _is_kind("kiln results")(sample) or _RESULTS_BEGIN.match(sample.text) is not None


def _is_elf(*machines: int) -> Test:
    def matches(sample: Sample) -> bool:
        head = sample.head
        little = head[5:6] != b"\x02"
        machine = int.from_bytes(head[18:20], "little" if little else "big")
        return head.startswith(b"\x7fELF") and (not machines or machine in machines)

    return matches


def _is_zip(sample: Sample) -> bool:
    return sample.head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def _is_cut_zip(sample: Sample) -> bool:
    return _is_zip(sample) and b"PK\x05\x06" not in sample.tail


def _is_safetensors(sample: Sample) -> bool:
    """An 8-byte length and a JSON object of that length."""
    length = int.from_bytes(sample.head[:8], "little")
    return sample.head[8:9] == b"{" and 2 <= length <= _MAX_SAFETENSORS_HEADER


def _is_onnx(sample: Sample) -> bool:
    """A protocol buffer ``ModelProto``: its first field is the IR version, 3 or later; a length, an
    integer or a message follows."""
    head = sample.head
    return len(head) > 2 and head[0] == 0x08 and 3 <= head[1] <= 0x20 and head[2] in _ONNX_TAGS


_ONNX_TAGS = b"\x12\x1a\x22\x28\x32\x3a\x42\x72"  # fields 2 to 8, and 14


def _is_pickle(sample: Sample) -> bool:
    return len(sample.head) > 2 and sample.head[0] == 0x80 and 2 <= sample.head[1] <= 5


def _is_cut_json(sample: Sample) -> bool:
    return _is_json(sample) and not sample.ending.rstrip().endswith(("}", "]"))


# ---- advice

_EXPORT = "Export the PyTorch model that it was made from, and import the .pt2 file."
_EXPORT_CODE = """\
import torch
program = torch.export.export(model.eval(), example_inputs)
torch.export.save(program, "model.pt2")"""
_WEIGHTS = (
    "It has weights, and not the operations that Kiln generates kernels for. Load it into its model"
    " and export that."
)
_WEIGHTS_CODE = """\
model.load_state_dict(torch.load({file}, weights_only=True))
program = torch.export.export(model.eval(), example_inputs)
torch.export.save(program, "model.pt2")"""
_SAFETENSORS_CODE = """\
safetensors.torch.load_model(model, {file})
program = torch.export.export(model.eval(), example_inputs)
torch.export.save(program, "model.pt2")"""
_NOT_PYTORCH = (
    "Kiln reads only models of PyTorch. Export the same architecture in PyTorch, and import the"
    " .pt2 file."
)
_BUILD_AMD = "Compile it for an AMD GPU (hipcc, without host code), and import the code object."
_NVIDIA = (
    "Kiln models external kernels only for AMD GPUs. To measure kernels on NVIDIA GPUs, import the"
    " model and start a tuning run."
)
_RESULT_FORMATS = (
    "Kiln imports JSON of pytest-benchmark, of Google Benchmark and in Bencher's format, AUTOTUNE"
    " logs, and its own points and results."
)
_BENCHMARK = "Import it with the device and the revision that were measured."
_OTHER_TUNER = (
    "Kiln does not read other tuners' files. Write their times in Bencher's format"
    ' ({"name": {"latency": {"value": 1.5}}}), and import that.'
)

# ---- the table

ARCHIVE = FileKind(
    "archive",
    "an archive",
    lambda sample: _is_zip(sample) or starts(b"ustar", offset=257)(sample),
    "Unpack it and import one of its files.",
)
#: In the order in which they are tried.
KINDS: tuple[FileKind, ...] = (
    FileKind(
        "trace-folder",
        "a TORCH_TRACE folder",
        has_member(r"(?:^|/)dedicated_log_torch_trace_"),
        f"It records what was compiled, and not the model. {_EXPORT}",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "saved-model",
        "a TensorFlow SavedModel",
        has_member(r"(?:^|/)saved_model\.pb$"),
        _NOT_PYTORCH,
        code=_EXPORT_CODE,
    ),
    FileKind(
        "folder",
        "a folder",
        lambda sample: sample.listed is not None,
        "Import one file: a .pt2 of torch.export.save.",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "empty",
        "an empty file",
        lambda sample: sample.size == 0,
        "It has no bytes: save or copy it again.",
    ),
    FileKind(
        "cut-zip",
        "a zip archive that is cut off",
        _is_cut_zip,
        "Its end is missing: save or copy it again.",
    ),
    FileKind(
        "pt2",
        "a torch.export model",
        has_member(r"^[^/]+/models/.+\.json$|^serialized_exported_program\.json$"),
        "Import it.",
        Use.GRAPH,
    ),
    FileKind(
        "aotinductor",
        "an AOTInductor package",
        has_member(r"(?:^|/)aotinductor/"),
        "It is compiled, and has no graph. Export the model without compiling it.",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "torchscript",
        "a TorchScript model",
        has_member(r"^[^/]+/(?:constants\.pkl|code/.+\.py)$"),
        "Kiln reads torch.export and not torch.jit. Export the Python module.",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "torch-package",
        "a TorchServe archive",
        has_member(r"^MAR-INF/"),
        _EXPORT,
        code=_EXPORT_CODE,
    ),
    FileKind(
        "checkpoint",
        "a PyTorch checkpoint of torch.save",
        has_member(r"^(?:[^/]+/)?data\.pkl$"),
        _WEIGHTS,
        code=_WEIGHTS_CODE,
    ),
    FileKind(
        "pt2-archive",
        "a PyTorch archive without a model",
        has_member(r"^[^/]+/archive_format$"),
        "Save it with torch.export.save.",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "keras-zip",
        "a Keras model",
        has_member(r"^model\.weights\.h5$"),
        _NOT_PYTORCH,
        code=_EXPORT_CODE,
    ),
    FileKind(
        "npz", "a NumPy archive of arrays", has_member(r"\.npy$"), _WEIGHTS, code=_EXPORT_CODE
    ),
    ARCHIVE,
    FileKind(
        "other-archive",
        "an archive",
        starts(b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"),
        "Unpack it and import one of its files.",
    ),
    FileKind(
        "safetensors",
        "a safetensors checkpoint",
        _is_safetensors,
        _WEIGHTS,
        code=_SAFETENSORS_CODE,
    ),
    FileKind(
        "gguf",
        "a GGUF model of llama.cpp",
        starts(b"GGUF"),
        f"Its weights are quantized for llama.cpp. {_NOT_PYTORCH}",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "tflite",
        "a TensorFlow Lite model",
        starts(b"TFL3", offset=4),
        _NOT_PYTORCH,
        code=_EXPORT_CODE,
    ),
    FileKind(
        "executorch",
        "an ExecuTorch program",
        starts(b"ET12", b"ET13", offset=4),
        f"It is lowered for ExecuTorch. {_EXPORT}",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "saved-model-pb",
        "a TensorFlow SavedModel",
        starts(b"\x08\x01\x12"),
        _NOT_PYTORCH,
        code=_EXPORT_CODE,
    ),
    FileKind("onnx", "an ONNX model", _is_onnx, _EXPORT, code=_EXPORT_CODE),
    FileKind(
        "hdf5",
        "an HDF5 file (Keras)",
        starts(b"\x89HDF\r\n\x1a\n"),
        _NOT_PYTORCH,
        code=_EXPORT_CODE,
    ),
    FileKind(
        "tensorrt",
        "a TensorRT engine",
        starts(b"ftrt", b"ptrt"),
        f"It is compiled. {_EXPORT}",
        code=_EXPORT_CODE,
    ),
    FileKind("npy", "a NumPy array", starts(b"\x93NUMPY"), _WEIGHTS, code=_EXPORT_CODE),
    FileKind(
        "old-checkpoint",
        "a PyTorch checkpoint of torch.save (before 1.6)",
        lambda sample: _is_pickle(sample) and _OLD_TORCH in sample.head[:32],
        _WEIGHTS,
        code=_WEIGHTS_CODE,
    ),
    FileKind(
        "pickle",
        "a Python pickle",
        _is_pickle,
        "Kiln never unpickles a file, because that executes it. Export the model.",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "code-object",
        "an AMD GPU code object",
        _is_elf(_EM_AMDGPU),
        "Add its launch and a board: Kiln models where its cycles go.",
        Use.KERNEL,
    ),
    FileKind(
        "offload-bundle",
        "a HIP offload bundle",
        starts(b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"),
        "Add the launch of a kernel and a board: Kiln models where its cycles go.",
        Use.KERNEL,
    ),
    FileKind("cubin", "a CUDA binary", _is_elf(_EM_CUDA), _NVIDIA),
    FileKind("fatbin", "a CUDA fat binary", starts(b"\x50\xed\x55\xba"), _NVIDIA),
    FileKind(
        "host-binary",
        "a program or library for the CPU",
        _is_elf(),
        "Import the code object of its GPU kernels (extract it with roc-obj-extract).",
    ),
    FileKind(
        "bitcode",
        "LLVM bitcode",
        starts(b"BC\xc0\xde"),
        "Compile it with llc for amdgcn-amd-amdhsa, and import the code object.",
    ),
    FileKind(
        "nsight",
        "a Nsight Compute report",
        starts(b"NVR\0"),
        "Kiln does not read profiles of other tools.",
    ),
    FileKind(
        "sqlite",
        "an SQLite database (a profile of Nsight Systems or rocprof)",
        starts(b"SQLite format 3\0"),
        "Kiln does not read profiles of other tools.",
    ),
    FileKind(
        "utf-16",
        "a text file in UTF-16",
        starts(codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
        "Save it as UTF-8 (in PowerShell with Out-File), and import that.",
    ),
    FileKind(
        "lfs-pointer",
        "a Git LFS pointer",
        has_line(r"version https://git-lfs\.github\.com/spec/"),
        "The file itself was not downloaded: run git lfs pull.",
    ),
    FileKind(
        "results",
        "a results file of Kiln",
        _is_results,
        "Its models must be imported first. The import may take a minute.",
        Use.RESULTS,
    ),
    FileKind(
        "points", "a file of Kiln's points", _is_kind("kiln points"), "Import it.", Use.POINTS
    ),
    FileKind(
        "cut-json",
        "a JSON document that is cut off",
        _is_cut_json,
        "Its end is missing: save or copy it again.",
    ),
    FileKind(
        "pytest-benchmark",
        "results of pytest-benchmark",
        has_keys("machine_info", "benchmarks"),
        _BENCHMARK,
        Use.POINTS,
    ),
    FileKind(
        "google-benchmark",
        "results of Google Benchmark",
        has_keys("context", "benchmarks"),
        _BENCHMARK,
        Use.POINTS,
    ),
    FileKind(
        "kernel-tuner",
        "a Kernel Tuner cache",
        has_keys("tune_params_keys", "cache"),
        _OTHER_TUNER,
    ),
    FileKind(
        "t4",
        "tuning results in the T4 format",
        has_keys("results", "configuration", "measurements"),
        _OTHER_TUNER,
    ),
    FileKind(
        "t1",
        "a tuning problem in the T1 format",
        has_keys("ConfigurationSpace", "KernelSpecification"),
        "Kiln derives its search spaces from a model. Export the model.",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "profile",
        "a profile of torch.profiler",
        has_keys("traceEvents"),
        f"It has times without the model. {_EXPORT}",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "weight-index",
        "an index of a checkpoint",
        has_keys("weight_map"),
        _WEIGHTS,
        code=_EXPORT_CODE,
    ),
    FileKind(
        "model-config",
        "a configuration of a Hugging Face model",
        has_keys("architectures", "model_type"),
        "Create the model with transformers, and export it.",
        code="""\
model = AutoModel.from_config(AutoConfig.from_pretrained("."))
program = torch.export.export(model.eval(), example_inputs)
torch.export.save(program, "model.pt2")""",
    ),
    FileKind(
        "notebook",
        "a Jupyter notebook",
        has_keys("cells", "nbformat"),
        "Run it, and export its model.",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "launch",
        "a launch of a kernel",
        has_keys("grid", "block"),
        "Import the code object or the listing of the kernel, and give this as its launch.",
    ),
    FileKind(
        "bmf",
        "results in Bencher's format",
        lambda sample: _BENCHER.match(sample.text) is not None,
        _BENCHMARK,
        Use.POINTS,
    ),
    FileKind("json", "a JSON document", _is_json, _RESULT_FORMATS),
    FileKind(
        "trace",
        "a TORCH_TRACE log",
        has_line(r"V\d{4} \d\d:\d\d:\S+ \d+ \S+\] \{"),
        f"It records what was compiled, and not the model. {_EXPORT}",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "autotune",
        "an AUTOTUNE log of Inductor",
        has_text(r"\bAUTOTUNE \w+\("),
        _BENCHMARK,
        Use.POINTS,
    ),
    FileKind(
        "output-code",
        "generated code of Inductor (output_code.py)",
        has_text(r"torch\._inductor\.(?:async_compile|codecache|runtime)|# AOT ID: \["),
        f"It is generated from a graph, and does not contain it. {_EXPORT}",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "triton",
        "Triton source",
        has_text(r"@triton\.(?:jit|autotune)"),
        "Kiln models compiled kernels: import the .hsaco file from Triton's cache"
        " (~/.triton/cache), built for an AMD GPU.",
    ),
    FileKind(
        "listing",
        "a listing of AMD's assembler",
        has_text(r"(?m)^[ \t]*\.amdhsa_kernel\s|\.amdgcn_target"),
        "Add its launch and a board: Kiln models where its cycles go.",
        Use.KERNEL,
    ),
    FileKind("ptx", "a PTX listing", has_text(r"(?m)^\.target\s+sm_\d+"), _NVIDIA),
    FileKind(
        "sass",
        "a SASS listing",
        has_text(r"(?m)^[ \t]*/\*[0-9a-f]{4}\*/\s+\S|EF_CUDA_SM\d+"),
        _NVIDIA,
    ),
    FileKind(
        "llvm-ir",
        "LLVM IR",
        has_text(r"(?m)^target triple ="),
        "Compile it with llc for amdgcn-amd-amdhsa, and import the code object.",
    ),
    FileKind(
        "mlir",
        "MLIR (a stage of Triton)",
        has_text(r"\btt\.func\b|\bfunc\.func\b"),
        "Import the code object that the compiler makes of it.",
    ),
    FileKind("hip", "HIP or CUDA source", has_text(r"\b__global__\b|\b__device__\b"), _BUILD_AMD),
    FileKind(
        "cpp",
        "C or C++ source",
        has_line(r"[ \t]*#[ \t]*include[ \t]*[<\"]"),
        "Kiln reads models and compiled kernels. " + _BUILD_AMD,
    ),
    FileKind(
        "python",
        "Python source",
        has_line(r"(?:import|from)\s+[\w.]+|def \w+\(|class \w+"),
        "Kiln does not execute Python. Run it, and export its model.",
        code=_EXPORT_CODE,
    ),
    FileKind(
        "web-page",
        "a web page",
        has_line(r"[ \t]*<(?i:!doctype html|html)\b"),
        "A log-in page was probably saved instead of the file: download it again.",
    ),
    FileKind(
        "text",
        "a text file",
        lambda sample: bool(sample.text),
        f"It is no model that Kiln reads. {_RESULT_FORMATS}",
    ),
)
UNKNOWN = FileKind(
    "unknown",
    "a binary file of an unknown format",
    lambda _sample: True,
    "Kiln reads models that torch.export.save writes.",
    code=_EXPORT_CODE,
)
