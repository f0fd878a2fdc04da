"""A stand-in for Hindsight's client package, and a Python of Hermes that has it installed."""

from pathlib import Path

_VERSION = "0.6.1"

_CLIENT = '''
import asyncio, json, os
from pathlib import Path


class Hindsight:
    """Stores after a while, or refuses while the file ``down`` is there."""

    def __init__(self, **kwargs):
        self._home = Path(os.environ["HERMES_HOME"])

    async def aretain_batch(self, bank_id, items, document_id, retain_async):
        await asyncio.sleep(0.3)
        if (self._home / "down").exists():
            raise ConnectionRefusedError("hindsight is down")
        with (self._home / "retained.jsonl").open("a") as file:
            file.write(json.dumps([bank_id, document_id, items]) + "\\n")

    async def aclose(self):
        pass
'''

_PROGRAM = """\
#!{python}
import runpy, sys
sys.path.insert(0, {packages!r})
assert sys.argv[1] == "-I"
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def python_with_client(directory: Path, python: Path) -> Path:
    """Install the stand-in below a directory; return a program that runs `python` with it."""
    packages = directory / "packages"
    info = packages / f"hindsight_client-{_VERSION}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: hindsight-client\nVersion: {_VERSION}\n"
    )
    (packages / "hindsight_client.py").write_text(_CLIENT)
    program = directory / "python-with-hindsight"
    program.write_text(_PROGRAM.format(python=python, packages=str(packages)))
    program.chmod(0o755)
    return program
