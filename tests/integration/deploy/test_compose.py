"""What can be said of the compose file and the image without a container engine."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import environ, recorded, thread_worker
from memorybus.config.parsing import PREFIX
from memorybus.config.settings import FIELDS, LogForm, load
from memorybus.health.metrics_server import parse_address
from memorybus.health.monitor import read_status

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REDIS = COMPOSE["services"]["redis"]
WORKER = COMPOSE["services"]["worker"]
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()


def redis_options() -> dict[str, str]:
    """Return the server's options by name."""
    _, *words = REDIS["command"]
    return dict(zip(words[::2], words[1::2], strict=True))


def instructions(name: str) -> list[str]:
    """Return the arguments of every instruction of that name in the Dockerfile."""
    return [line.split(maxsplit=1)[1] for line in DOCKERFILE if line.startswith(name + " ")]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--appendonly", "yes"),
        ("--appendfsync", "everysec"),
        ("--maxmemory", "1gb"),
        ("--maxmemory-policy", "noeviction"),
        ("--save", ""),
    ],
)
def test_redis_is_durable_and_evicts_nothing(option, value):
    """The containers' Redis keeps what it acknowledged and evicts nothing (G1)."""
    assert redis_options()[option] == value


def test_redis_data_outlives_the_container():
    """Where Redis writes is a named volume."""
    assert "redis:/data" in REDIS["volumes"]
    assert "redis" in COMPOSE["volumes"]


def test_redis_is_closed_to_the_network():
    """What asks for no password, or for one that everybody knows, listens on this machine only."""
    ports = [port for one in COMPOSE["services"].values() for port in one.get("ports", [])]
    assert {port.split(":")[0] for port in ports} == {"127.0.0.1"}


def test_redis_wants_a_password_that_nobody_ships():
    """The password comes from the environment alone: without one nothing starts."""
    assert redis_options()["--requirepass"].startswith("${REDIS_PASSWORD:?")
    urls = [one["environment"]["MEMORYBUS_URL"] for one in (WORKER, COMPOSE["services"]["page"])]
    assert all("//:${REDIS_PASSWORD}@" in url for url in urls)
    assert REDIS["environment"]["REDISCLI_AUTH"] == "${REDIS_PASSWORD}"


def test_workers_wait_for_a_healthy_redis():
    """Redis says when it can serve, and the workers wait for that."""
    assert "redis-cli ping" in REDIS["healthcheck"]["test"][1]
    assert {"interval", "timeout", "retries"} <= set(REDIS["healthcheck"])
    assert WORKER["depends_on"]["redis"]["condition"] == "service_healthy"


def test_workers_can_be_scaled():
    """Nothing in the worker's service can exist only once: no fixed name, no host port."""
    assert not {"container_name", "hostname", "ports"} & set(WORKER)


def test_local_memories_lie_in_one_shared_volume():
    """The workers' data directory is one named volume: every worker finds the same files."""
    data_dir = WORKER["environment"][PREFIX + "DATA_DIR"]
    assert f"memory:{data_dir}" in WORKER["volumes"]
    assert "memory" in COMPOSE["volumes"]


def test_the_environment_is_made_of_known_settings():
    """Every MEMORYBUS_* name is a setting, and the values are accepted together."""
    environment = WORKER["environment"]
    assert {name.removeprefix(PREFIX).lower() for name in environment} <= set(FIELDS)
    settings = load(environ=environment, directory=ROOT / "tests")
    assert settings.redis_url == "redis://:${REDIS_PASSWORD}@redis:6379/0"
    assert settings.url.rpartition("@")[2].split(":")[0] in COMPOSE["services"]


def test_a_stopping_worker_is_given_the_time_of_a_call():
    """The grace period is longer than a provider call and its lease."""
    grace = float(WORKER["stop_grace_period"].removesuffix("s"))
    assert grace > load(environ={}, directory=ROOT / "tests").lease


def test_images_are_pinned():
    """Every image has a tag that is not a moving one."""
    bases = [line.partition("=")[2] for line in instructions("ARG") if line.startswith("PYTHON=")]
    assert {line.split()[0] for line in instructions("FROM")} == {"$PYTHON"}
    images = [*(one["image"] for one in COMPOSE["services"].values()), *bases]
    tags = [image.partition(":")[2] for image in images]
    assert all(re.match(r"v?\d+\.\d+", tag) for tag in tags), images


REGISTRY = """#!/bin/sh
case "$*" in
*"$GONE"*) echo "ERROR: not found" >&2; exit 1 ;;
"buildx imagetools inspect "*)
  printf 'Name:   %s\\nDigest: sha256:%s\\n' "$4" "$(echo "$4" | sha256sum | cut -c-64)" ;;
esac
"""
"""A `docker` that answers for every tag as a registry does; its digest is made from the tag."""


def pin(directory: Path, gone: str) -> subprocess.CompletedProcess[str]:
    """Run `make pin` in a directory, with a registry that lacks one image."""
    for name in ("Makefile", "Dockerfile", "docker-compose.yml"):
        (directory / name).write_text((ROOT / name).read_text())
    (directory / "docker").write_text(REGISTRY)
    (directory / "docker").chmod(0o755)
    env = os.environ | {"PATH": f"{directory}:{os.environ['PATH']}", "GONE": gone}
    return subprocess.run(
        ["make", "pin"], cwd=directory, env=env, capture_output=True, text=True, check=False
    )


def test_tags_are_pinned_to_the_digests_of_a_registry(tmp_path):
    """`make pin` adds the digest to every image that comes from a registry, and changes no tag."""
    done = pin(tmp_path, gone="nothing")
    assert done.returncode == 0, done.stderr
    pinned = yaml.safe_load((tmp_path / "docker-compose.override.yml").read_text())["services"]
    images = {name: one["image"] for name, one in COMPOSE["services"].items()}
    fetched = {name: image for name, image in images.items() if image != WORKER["image"]}
    base = pinned.pop("worker")["build"]["args"]["PYTHON"]
    for tag, image in [*((fetched[name], pinned[name]["image"]) for name in fetched), (None, base)]:
        digest = hashlib.sha256(f"{tag or image.partition('@')[0]}\n".encode()).hexdigest()
        assert image == f"{tag or 'python:3.12-slim'}@sha256:{digest}"
    assert set(pinned) == set(fetched) == {"redis", "prometheus", "grafana"}


@pytest.mark.parametrize("gone", ["redis:8.2-alpine", "python:3.12-slim"])
def test_nothing_is_pinned_if_a_registry_lacks_an_image(gone, tmp_path):
    """If one digest cannot be had, `make pin` fails, and leaves what was pinned before."""
    before = tmp_path / "docker-compose.override.yml"
    before.write_text("services: {}")
    assert pin(tmp_path, gone).returncode != 0
    assert before.read_text() == "services: {}"


def test_the_image_is_the_worker():
    """The service is built here and runs the command of the package."""
    assert WORKER["build"] == "."
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["memorybus"]
    assert json.loads(instructions("CMD")[0]) == ["worker"]
    assert WORKER["command"][0] == "worker"


def test_workers_log_json():
    """What collects the containers' logs gets one JSON object a line, by a flag that there is."""
    words = WORKER["command"]
    assert "json" in get_args(LogForm)
    assert words[words.index("--log") + 1] == "json"


def test_the_page_is_this_machines_alone():
    """Without a token the page listens on loopback, and it looks at the same Redis and volume."""
    page = COMPOSE["services"]["page"]
    assert page["command"] == ["serve"]
    assert page["network_mode"] == "host"
    assert page["image"] == WORKER["image"]
    assert page["volumes"] == WORKER["volumes"]
    environment = {name: value for name, value in page["environment"].items() if value}
    assert set(page["environment"]) - set(environment) == {"MEMORYBUS_PAGE_TOKEN"}
    settings = load(environ=environment, directory=ROOT / "tests")
    port = settings.redis_url.rpartition(":")[2].partition("/")[0]
    assert f"127.0.0.1:{port}:6379" in REDIS["ports"]


def test_prometheus_scrapes_the_workers_and_reads_the_rules():
    """Every worker that compose starts tells its figures where Prometheus looks for them."""
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yaml").read_text())
    (scraped,) = config["scrape_configs"]
    (found,) = scraped["dns_sd_configs"]
    where = parse_address(WORKER["command"][WORKER["command"].index("--metrics") + 1])
    assert (where.host, where.port) == ("0.0.0.0", found["port"])
    assert set(found["names"]) <= set(COMPOSE["services"])
    assert all((ROOT / "deploy/prometheus" / name).exists() for name in config["rule_files"])
    assert "./deploy/prometheus:/etc/prometheus:ro" in COMPOSE["services"]["prometheus"]["volumes"]


def test_the_image_has_every_kind_of_provider():
    """G7: what sealing needs, or Redis would never be trimmed; and the extra of each provider.

    Besides embedders, traces, metrics, the page and the model that derives. What is left out serves
    tests, and agents of other frameworks, which run elsewhere.
    """
    (install,) = [line for line in instructions("RUN") if "pip install" in line]
    assert '".[$EXTRAS]"' in install
    (chosen,) = [
        set(line.removeprefix("EXTRAS=").split(","))
        for line in instructions("ARG")
        if line.startswith("EXTRAS=")
    ]
    extras = PROJECT["optional-dependencies"]
    (united,) = extras["all"]
    in_all = set(united.removeprefix("memorybus[").removesuffix("]").split(","))
    frameworks = {"anthropic", "langgraph", "openai-agents"}
    assert chosen | in_all == set(extras) - {"dev"} - frameworks
    assert any(one.startswith("pyarrow") for one in extras["archive"])


def test_a_container_is_healthy_if_its_worker_is_there(redis_url, make_settings):
    """The image's check fails without a live worker of this host, and passes with one."""
    (check,) = instructions("HEALTHCHECK")
    command = check.partition("CMD ")[2]
    settings = make_settings(url=redis_url, **recorded("Keyed"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def code() -> int:
        env = os.environ | environ(settings) | {"PATH": path}
        return subprocess.run(["sh", "-c", command], env=env, check=False).returncode

    assert code() == 1
    with thread_worker(settings):
        wait_until(lambda: read_status(settings).workers, "the worker is known")
        assert code() == 0


def test_the_license_is_in_the_wheel():
    """Who gets the package gets the text of the license that it declares."""
    text = (ROOT / "LICENSE").read_text()
    assert PROJECT["license"] == "Apache-2.0"
    assert PROJECT["license-files"] == ["LICENSE"]
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_image_does_not_run_as_root():
    """The last user of the image is an ordinary one, by number; no service takes privileges."""
    assert int(instructions("USER")[-1]) > 0
    assert WORKER["read_only"]
    assert not REDIS["user"].startswith("0")
    for service in COMPOSE["services"].values():
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_each_container_has_limits(name):
    """G10: no container can take all memory, processors or process ids of the machine."""
    service = COMPOSE["services"][name]
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert float(service["cpus"]) > 0
    assert int(service["pids_limit"]) > 0


def test_redis_refuses_writes_before_its_container_is_killed():
    """G1: `maxmemory` is at most half of the limit, so that rewriting the file has room, too."""
    limit, most = (int(text[0]) for text in (REDIS["mem_limit"], redis_options()["--maxmemory"]))
    assert 2 * most <= limit


def test_no_secret_is_built_in():
    """Neither file names a password, token or key."""
    text = (ROOT / "Dockerfile").read_text() + (ROOT / "docker-compose.yml").read_text()
    assert not re.search(r"(?i)(password|secret|token|api_?key)[ ]*[:=][ ]*[^\s$?]", text)


def test_what_the_image_copies_exists_and_is_not_ignored():
    """Every source of a COPY is in the repository and let through by .dockerignore."""
    copied = [
        source
        for line in instructions("COPY")
        if not line.startswith("--from")
        for source in line.split()[:-1]
    ]
    ignored, *allowed = [
        line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] != "#"
    ]
    assert ignored == "*"
    assert {f"!{source}" for source in copied} <= set(allowed)
    assert all((ROOT / source).exists() for source in copied)
