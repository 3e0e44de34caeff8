"""Files of other kinds are named by their first and last bytes, with what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler import samples
from scheduler.commands.main import main
from scheduler.errors import UserError
from scheduler.frontends import archive
from scheduler.frontends.file_kinds import KINDS, UNKNOWN, Use
from scheduler.frontends.file_sample import SAMPLE_BYTES, Sample, read_sample
from scheduler.frontends.recognition import Recognition, recognize, recognize_file
from scheduler.results import file as results_file
from scheduler.results.points import importer
from scheduler.results.points.model import ImportContext


def archive_of(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        for name in names:
            zipped.writestr(name, b"content")
    return out.getvalue()


def tar_of(name: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as packed:
        packed.addfile(tarfile.TarInfo(name))
    return out.getvalue()


def elf(machine: int, order: str = "little") -> bytes:
    kind = b"\x7fELF\x02" + (b"\x01" if order == "little" else b"\x02") + b"\x01" + b"\0" * 9
    return kind + (3).to_bytes(2, order) + machine.to_bytes(2, order) + b"\0" * 44  # type: ignore[arg-type]


def saved_array(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def safetensors() -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * 4


def database(path: Path) -> bytes:
    with sqlite3.connect(path) as opened:
        opened.execute("CREATE TABLE kernels (name)")
    opened.close()
    return path.read_bytes()


def document(**content: Any) -> bytes:
    return json.dumps(content).encode()


BENCHER = {"gemm": {"latency": {"value": 1.5}}}
AUTOTUNE = b"AUTOTUNE mm(64x64, 64x64)\n  triton_mm_1 0.0051 ms 100.0%\n"
TRACE = b'V0401 12:34:56.789000 4711 torch/_logging/structured.py:28] {"str": ["a.py", 0]}\n'
FILES = {
    "pt2": samples.path("gpt2_2layer").read_bytes(),
    "empty": b"",
    "cut-zip": samples.path("gpt2_2layer").read_bytes()[:6000],
    "aotinductor": archive_of("m/data/aotinductor/model/a.so", "m/archive_format"),
    "torchscript": archive_of("m/data.pkl", "m/code/__torch__.py", "m/constants.pkl"),
    "torch-package": archive_of("MAR-INF/MANIFEST.json", "model.pt"),
    "checkpoint": archive_of("m/data.pkl", "m/data/0", "m/version"),
    "pt2-archive": archive_of("m/archive_format"),
    "keras-zip": archive_of("metadata.json", "config.json", "model.weights.h5"),
    "npz": saved_array(a=np.ones(3)),
    "archive": archive_of("models/encoder.pt2", "readme.txt"),
    "other-archive": b"7z\xbc\xaf\x27\x1c\0\4",
    "trace-folder": archive_of("trace/dedicated_log_torch_trace_ab12.log"),
    "saved-model": archive_of("m/saved_model.pb", "m/variables/variables.index"),
    "safetensors": safetensors(),
    "gguf": b"GGUF\3\0\0\0",
    "tflite": b"\x1c\0\0\0TFL3\0\0",
    "executorch": b"\x30\0\0\0ET12\0\0",
    "saved-model-pb": b"\x08\x01\x12\xf0\x01\x0a",
    "onnx": b"\x08\x08\x12\x07pytorch\x1a\x052.1.0:\x10",
    "hdf5": b"\x89HDF\r\n\x1a\n\0",
    "tensorrt": b"ftrt\0\0",
    "npy": b"\x93NUMPY\1\0",
    "pickle": pickle.dumps({"weight": [1.0]}, protocol=4),
    "code-object": elf(224),
    "offload-bundle": b"__CLANG_OFFLOAD_BUNDLE__\2\0",
    "cubin": elf(190),
    "fatbin": b"\x50\xed\x55\xba\1\0",
    "host-binary": elf(62),
    "bitcode": b"BC\xc0\xde5\x14",
    "nsight": b"NVR\0\x10",
    "utf-16": AUTOTUNE.decode().encode("utf-16"),
    "lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n",
    "points": document(kind="kiln points", schema=1, points=[]),
    "cut-json": b'{"benchmarks": [{"name": "a", "real_t',
    "pytest-benchmark": document(machine_info={}, benchmarks=[]),
    "google-benchmark": document(context={}, benchmarks=[]),
    "kernel-tuner": document(device_name="A100", tune_params_keys=["x"], cache={}),
    "t4": document(results=[{"configuration": {}, "times": {}, "measurements": []}]),
    "t1": document(ConfigurationSpace={}, KernelSpecification={}),
    "profile": document(schemaVersion=1, traceEvents=[]),
    "weight-index": document(metadata={}, weight_map={}),
    "model-config": document(architectures=["Llama"], model_type="llama"),
    "notebook": document(cells=[], nbformat=4),
    "launch": document(grid=[256], block=[64]),
    "bmf": json.dumps(BENCHER).encode(),
    "json": b"[1, 2]",
    "trace": TRACE,
    "autotune": AUTOTUNE,
    "output-code": b"# AOT ID: ['0_inference']\nfrom torch._inductor.async_compile import A\n",
    "triton": b"import triton\n\n@triton.jit\ndef kernel(x):\n    pass\n",
    "listing": b'\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n\t.text\n',
    "ptx": b"//\n.version 8.3\n.target sm_90\n",
    "sass": b"\t.section .text.k\n        /*0000*/                   MOV R1, c[0x0][0x28] ;\n",
    "llvm-ir": b'; ModuleID = "a"\ntarget triple = "amdgcn-amd-amdhsa"\n',
    "mlir": b"module {\n  tt.func public @kernel(%arg0: !tt.ptr<f32>) {\n",
    "hip": b"#include <hip/hip_runtime.h>\n__global__ void k(float *x) {}\n",
    "cpp": b"// a comment\n#include <vector>\nint main() {}\n",
    "python": b'"""A model."""\nimport torch\n',
    "web-page": b"\n<!doctype html>\n<html><title>Sign in</title></html>",
    "text": b"dear Kiln,\nplease optimize\n",
    "unknown": b"\xfd\0\1\2\3",
}


def of_bytes(content: bytes, name: str = "file") -> Recognition:
    return recognize(Sample.of_bytes(name, content))


def test_each_kind_is_recognized_by_its_content() -> None:
    found = {name: of_bytes(content).kind.name for name, content in FILES.items()}
    assert found == {name: name for name in FILES}


def test_each_kind_of_the_table_has_a_file_here() -> None:
    elsewhere = {"folder", "sqlite", "results", "old-checkpoint"}
    assert {kind.name for kind in (*KINDS, UNKNOWN)} == set(FILES) | elsewhere


def test_recorded_results_and_databases(tmp_path: Path) -> None:
    packed = next(samples.path("gpt2_2layer").parents[1].glob("results/*.json.xz"))
    recognition = recognize_file(packed)
    assert (recognition.kind.name, recognition.use) == ("results", Use.RESULTS)
    plain = of_bytes(lzma.decompress(packed.read_bytes()))
    assert plain.kind.name == "results"
    assert results_file.read(packed).runs
    assert of_bytes(database(tmp_path / "a.db")).kind.name == "sqlite"


@pytest.mark.apart
def test_files_that_torch_writes(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model, x = torch.nn.Linear(4, 4), torch.ones(2, 4)
    torch.save(model.state_dict(), tmp_path / "checkpoint")
    torch.save(model.state_dict(), tmp_path / "old", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.trace(model, (x,)), tmp_path / "script")
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "exported.pt2")
    kinds = {
        "checkpoint": "checkpoint",
        "old": "old-checkpoint",
        "script": "torchscript",
        "exported.pt2": "pt2",
    }
    found = {path.name: recognize_file(path).kind.name for path in tmp_path.iterdir()}
    assert found == kinds


@pytest.mark.parametrize(
    ("content", "title", "use"),
    [
        (gzip.compress(FILES["onnx"]), "an ONNX model, compressed with gzip", Use.NONE),
        (lzma.compress(FILES["points"]), "a file of Kiln's points, compressed with xz", Use.NONE),
        (bz2.compress(TRACE), "a TORCH_TRACE log, compressed with bzip2", Use.NONE),
        (tar_of("trace/a.log"), "an archive", Use.NONE),
        (b"\x28\xb5\x2f\xfd", "a binary file of an unknown format, compressed with zstd", Use.NONE),
        (b"\x1f\x8b damaged", "a binary file of an unknown format, compressed with gzip", Use.NONE),
    ],
    ids=["gzip", "xz", "bz2", "tar", "zstd", "damaged"],
)
def test_compressed_files_are_named_by_their_content(content: bytes, title: str, use: Use) -> None:
    recognition = of_bytes(content)
    assert (recognition.title, recognition.use) == (title, use)


def test_an_archive_names_its_members() -> None:
    assert "It contains models/encoder.pt2, readme.txt." in of_bytes(FILES["archive"]).advice
    many = of_bytes(archive_of(*(f"{number}.txt" for number in range(9))))
    assert "0.txt, 1.txt, 2.txt and 6 more" in many.advice


def test_the_code_loads_the_file_by_its_name_and_cannot_leave_its_quotes() -> None:
    recognition = of_bytes(FILES["checkpoint"], 'a".pt"); import os #\n.pt')
    assert recognition.code.splitlines()[0].count('"') == 2
    compile(recognition.code, "example", "exec")
    for kind in KINDS:
        compile(kind.code.replace("{file}", '"a"'), kind.name, "exec")


HOSTILE = {
    "lines": b"\n" * SAMPLE_BYTES,
    "spaces": b" " * SAMPLE_BYTES,
    "tabs before nothing": b"\t" * SAMPLE_BYTES,
    "braces": b"{" * SAMPLE_BYTES,
    "quotes": b'{"' * (SAMPLE_BYTES // 2),
    "kinds": b'{"kind":' + b" " * SAMPLE_BYTES,
    "members": b"PK\x03\x04" + b"PK\x01\x02" * (SAMPLE_BYTES // 4) + b"PK\x05\x06",
    "long names": (b"PK\x01\x02" + b"\xff" * 60) * 900,
    "bomb": gzip.compress(b"\0" * (256 << 20), 1),
    "xz bomb": lzma.compress(b"\0" * (16 << 20)),
    "log": b"V0401 12:34:" + b"1" * SAMPLE_BYTES,
    "autotune": b"AUTOTUNE " * (SAMPLE_BYTES // 9),
    "assembler": b"/*" * (SAMPLE_BYTES // 2),
    "executed if unpickled": b"\x80\x04cos\nsystem\n(S'touch owned'\ntR.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_cost_little_and_are_no_models(name: str) -> None:
    recognition = of_bytes(HOSTILE[name])
    assert recognition.use is Use.NONE
    assert len(recognition.sentence) < 1000
    assert "\n" not in recognition.sentence


def test_a_large_file_is_read_at_both_ends_only(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(b"GGUF")
        file.seek(8 << 30)
        file.write(b"end")
    sample = read_sample(path)
    assert len(sample.head) == SAMPLE_BYTES
    assert sample.tail.endswith(b"end")
    assert recognize(sample).kind.name == "gguf"


def test_folders_are_named_by_their_members(tmp_path: Path) -> None:
    assert recognize_file(tmp_path).kind.name == "folder"
    (tmp_path / "dedicated_log_torch_trace_x.log").touch()
    assert recognize_file(tmp_path).kind.name == "trace-folder"


@pytest.mark.parametrize("command", ["lower", "compile --target cpu --out out"])
def test_the_command_line_says_what_a_wrong_file_is(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(FILES["onnx"])
    assert main([*command.split(), str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "model.onnx: not a torch.export file: an ONNX model. Export the PyTorch model" in line
    assert 'torch.export.save(program, "model.pt2")' in line


def test_a_damaged_model_is_not_called_a_model(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(archive_of("m/models/../model.json"))
    with pytest.raises(UserError, match=r"m\.pt2: damaged, or no member models/model\.json"):
        archive.read_model_json(path)


def test_points_in_an_unknown_format_are_named() -> None:
    context = ImportContext(now=datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(UserError, match="byte 0: not UTF-8 text; the file is a Python pickle"):
        importer.read(FILES["pickle"], context)
    with pytest.raises(UserError, match="not recognized: the file is a profile of torch"):
        importer.read(FILES["profile"], context)
