"""The manifests for Kubernetes: as the schemas want them, and true of our programs."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.services.kubernetes_schemas import complaints
from helpers.stories.statuses import metrics_told
from memorybus.config.parsing import PREFIX
from memorybus.config.settings import load
from memorybus.health.metrics_server import LIVE, READY
from memorybus_providers.registry import load as provider_class
from memorybus_workers.processes.supervised_worker import KILL_RESERVE_SECONDS

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[3]
BASE = ROOT / "deploy/kubernetes/base"
KEDA, MONITORING, INGRESS = (
    ROOT / "deploy/kubernetes" / name for name in ("keda", "monitoring", "ingress")
)
SETTINGS = load(file=BASE / "memorybus.toml", environ={})


def _documents() -> Iterator[dict[str, Any]]:
    for folder in (BASE, KEDA, MONITORING, INGRESS):
        listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
        for name in listed:
            if name.endswith(".yaml"):
                yield from yaml.safe_load_all((folder / name).read_text())


DOCUMENTS = list(_documents())


def template(document: dict[str, Any]) -> dict[str, Any]:
    """Return the pods of a workload."""
    job: dict[str, Any] = document["spec"].get("jobTemplate", document)["spec"]["template"]
    return job


WORKLOADS = [one for one in DOCUMENTS if one["kind"] in ("Deployment", "StatefulSet", "CronJob")]
WORKERS = [one for one in WORKLOADS if template(one)["spec"]["containers"][0]["name"] == "worker"]


def name_of(document: dict[str, Any]) -> str:
    """Return what it is and its name."""
    return f"{document['kind']}-{document['metadata']['name']}"


def container(document: dict[str, Any]) -> dict[str, Any]:
    """Return the one container of a workload's pods."""
    (found,) = template(document)["spec"]["containers"]
    return dict(found)


def option(document: dict[str, Any], name: str) -> str:
    """Return an option of the command that its pods run."""
    words = container(document)["args"]
    return str(words[words.index(name) + 1])


def named(kind: str) -> list[dict[str, Any]]:
    """Return the objects of a kind."""
    return [one for one in DOCUMENTS if one["kind"] == kind]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_each_object_is_as_its_schema_wants(document):
    """G10: an unknown or misplaced field would be refused, or dropped without a word."""
    assert complaints(document) == []


def test_the_schemas_see_what_is_wrong():
    """A field that is misspelt, of a wrong type or missing is complained of."""
    (first, *_) = named("Deployment")
    assert complaints(first | {"spec": first["spec"] | {"replica": 2}})
    assert complaints(first | {"spec": first["spec"] | {"replicas": "2"}})
    (scaled,) = named("ScaledObject")
    assert complaints(scaled | {"spec": scaled["spec"] | {"maxReplicaCount": "16"}})


@pytest.mark.parametrize("folder", [BASE, KEDA, MONITORING, INGRESS], ids=lambda path: path.name)
def test_kustomize_builds_them(folder):
    """G10: what the pages say to apply can be built; with KEDA nobody else sets the number."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not here")
    words = [kubectl, "kustomize", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = {name_of(one): one for one in yaml.safe_load_all(done.stdout)}
    assert {name_of(one) for one in WORKLOADS} <= set(built)
    worker = built["Deployment-memorybus-worker"]
    assert ("replicas" in worker["spec"]) == (folder != KEDA)
    settings = template(worker)["spec"]["volumes"][0]["configMap"]["name"]
    assert "memorybus.toml" in built[f"ConfigMap-{settings}"]["data"]
    assert re.fullmatch(r"memorybus:\d.*", container(worker)["image"])


@pytest.mark.parametrize("document", WORKLOADS, ids=name_of)
def test_pods_may_do_nothing_but_their_work(document):
    """G10: not root, no privilege, nothing to write but its volumes, no word with the cluster."""
    pod, one = template(document)["spec"], container(document)
    assert pod["automountServiceAccountToken"] is False
    rights = pod["securityContext"]
    assert rights["runAsNonRoot"]
    assert f"USER {rights['runAsUser']}\n" in (ROOT / "Dockerfile").read_text()
    assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
    assert one["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in one["resources"]["limits"]
    writable = {v["mountPath"] for v in one["volumeMounts"] if not v.get("readOnly")}
    assert writable == {"/data", "/tmp"}


@pytest.mark.parametrize("document", WORKLOADS, ids=name_of)
def test_secrets_are_named_and_never_written(document):
    """G10: every variable in the file is a plain setting; what is secret comes from Secrets."""
    assert all(set(source) == {"secretRef"} for source in container(document)["envFrom"])
    values = {one["name"]: one["value"] for one in container(document)["env"]}
    assert set(values) == {"MEMORYBUS_CONFIG", "MEMORYBUS_DATA_DIR"}
    assert Path(values["MEMORYBUS_DATA_DIR"]).parent == Path("/data")
    variables = [one["password_env"] for one in SETTINGS.provider.values()]
    assert all(one in (BASE / "kustomization.yaml").read_text() for one in variables)
    load(environ={"MEMORYBUS_URL": "redis://redis", **dict.fromkeys(variables, "x")})
    files = "".join(path.read_text() for path in BASE.iterdir())
    assert not re.search(rf"(?im)^\s*(password|{PREFIX}URL|token|api_?key)\s*[:=]", files)


def secrets_of(document: dict[str, Any]) -> set[str]:
    """Return what its pods get variables from, without the common prefix."""
    sources = container(document)["envFrom"]
    return {source["secretRef"]["name"].removeprefix("memorybus-") for source in sources}


@pytest.mark.parametrize("document", WORKLOADS, ids=name_of)
def test_each_pod_gets_its_own_secrets_alone(document):
    """G10: all reach Redis; a provider's secret goes to who opens it, the page's to the page."""
    kind, page = container(document)["name"], container(document)["name"] == "page"
    served = option(document, "--providers").split(",") if document in WORKERS else []
    opened = SETTINGS.providers if page else served  # the page rebuilds whatever it is told to
    wanted = {name for name in opened if "password_env" in SETTINGS.provider.get(name, {})}
    wanted |= {"redis"} | ({"archive"} if kind != "canary" else set())
    assert secrets_of(document) == wanted | ({"page"} if page else set())
    listed = (BASE / "kustomization.yaml").read_text()
    assert all(f"{name}.env" in listed for name in wanted)


@pytest.mark.parametrize("document", WORKLOADS, ids=name_of)
def test_probes_ask_where_somebody_answers(document):
    """G10: the ports are those of the command, the paths those that it serves."""
    one = container(document)
    if document["kind"] == "CronJob":
        assert one["args"] == ["doctor"]
        return
    (port,) = one["ports"]
    worker = document in WORKERS
    told = (
        option(document, "--metrics").rpartition(":")[2] if worker else option(document, "--port")
    )
    assert port["containerPort"] == int(told)
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    paths = [one[probe]["httpGet"] for probe in probes]
    assert paths == [
        {"path": path, "port": port["name"]} for path in (LIVE if worker else READY, LIVE, READY)
    ]


@pytest.mark.parametrize("document", WORKERS, ids=name_of)
def test_a_worker_that_ends_is_given_its_time(document):
    """G4: the platform waits for longer than a worker may take, and that for longer than a call."""
    assert SETTINGS.call_timeout < SETTINGS.grace
    patience = template(document)["spec"]["terminationGracePeriodSeconds"]
    assert patience >= SETTINGS.grace + KILL_RESERVE_SECONDS + 5


def test_each_provider_is_served_where_its_state_can_be():
    """G3: local providers by one pod with a volume, shared ones by any number, each by somebody."""
    served = {one["kind"]: option(one, "--providers").split(",") for one in WORKERS}
    assert sorted(chain(*served.values())) == sorted(SETTINGS.providers)
    for kind, names in served.items():
        wanted = "local" if kind == "StatefulSet" else "shared"
        for name in names:
            table = SETTINGS.provider.get(name, {})
            assert provider_class(table.get("kind", name)).placement == wanted
    (local,) = named("StatefulSet")
    assert local["spec"]["replicas"] == 1
    (claim,) = local["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] in {v["name"] for v in container(local)["volumeMounts"]}


def test_what_belongs_together_finds_itself():
    """G10: every budget, service, policy and scaler points at pods that there are."""
    labels = [template(one)["metadata"]["labels"].items() for one in WORKLOADS]
    chosen = [one["spec"]["selector"] for one in named("Service")]
    chosen += [one["spec"]["selector"]["matchLabels"] for one in named("PodDisruptionBudget")]
    for selector in chosen:
        assert len([one for one in labels if selector.items() <= one]) == 1
    (policy,) = named("NetworkPolicy")
    everybody = policy["spec"]["podSelector"]["matchLabels"].items()
    assert all(everybody <= one for one in labels)
    accounts = {template(one)["spec"]["serviceAccountName"] for one in WORKLOADS}
    assert accounts == {one["metadata"]["name"] for one in named("ServiceAccount")}


def test_the_network_lets_through_what_is_needed():
    """G10: Prometheus reaches the workers' port, browsers the page's, and no other port is open."""
    (policy,) = named("NetworkPolicy")
    opened = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    served = [port for one in WORKLOADS for port in container(one).get("ports", [])]
    assert opened == {port["containerPort"] for port in served}
    assert all(rule["from"] for rule in policy["spec"]["ingress"])


def test_the_network_lets_out_to_each_kind_of_service():
    """G10: the usual port of every backend, embedder and collector of the pages can be reached."""
    (policy,) = named("NetworkPolicy")
    ports = {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}
    pages = [*ROOT.glob("providers/memorybus_providers/*/options.py"), ROOT / "docs/traces.md"]
    texts = "".join(page.read_text() for page in pages)
    usual = {int(port) for port in re.findall(r"http://(?:localhost|127\.0\.0\.1):(\d+)", texts)}
    assert {8000, 8888, 9472, 11434, 4318} <= usual
    assert usual <= ports
    assert {53, 443, 5432, 6379} <= ports


def test_workers_are_scaled_by_a_metric_that_exists():
    """G10: by the backlog of the provider that these workers serve, up to the log's lanes."""
    (scaled,) = named("ScaledObject")
    target = scaled["spec"]["scaleTargetRef"]["name"]
    (worker,) = [one for one in named("Deployment") if one["metadata"]["name"] == target]
    (trigger,) = scaled["spec"]["triggers"]
    query = trigger["metadata"]["query"]
    (provider,) = re.findall(r'provider="(\w+)"', query)
    assert provider == option(worker, "--providers")
    assert set(re.findall(r"memorybus_\w+", query)) <= metrics_told()
    assert scaled["spec"]["minReplicaCount"] >= 1
    assert scaled["spec"]["maxReplicaCount"] <= SETTINGS.partitions


def test_every_object_is_in_the_namespace_of_the_page():
    """G10: the namespace exists before its objects, and refuses pods with more rights."""
    (namespace,) = named("Namespace")
    folders = (BASE, KEDA, MONITORING, INGRESS)
    placed = [yaml.safe_load((one / "kustomization.yaml").read_text()) for one in folders]
    assert {one["namespace"] for one in placed} == {namespace["metadata"]["name"]}
    enforced = namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    assert enforced == "restricted"


def test_the_operator_scrapes_each_worker_and_nothing_else():
    """G10: the monitor chooses the pods that serve metrics, at the port that has that name."""
    (monitor,) = named("PodMonitor")
    chosen = monitor["spec"]["selector"]
    (expression,) = chosen["matchExpressions"]
    for workload in WORKLOADS:
        labels = template(workload)["metadata"]["labels"]
        assert chosen["matchLabels"].items() <= labels.items()
        assert (labels[expression["key"]] in expression["values"]) == (workload in WORKERS)
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    ports = {port["name"] for one in WORKERS for port in container(one)["ports"]}
    assert ports == {endpoint["port"]}


def test_the_ingress_leads_to_the_page_over_tls():
    """G10: the host has a certificate, and its one path the page's service and port."""
    (ingress,) = named("Ingress")
    (rule,) = ingress["spec"]["rules"]
    (tls,) = ingress["spec"]["tls"]
    (path,) = rule["http"]["paths"]
    target = path["backend"]["service"]
    (page,) = [one for one in named("Service") if one["metadata"]["name"] == target["name"]]
    assert tls["hosts"] == [rule["host"]]
    assert target["port"]["name"] in {port["name"] for port in page["spec"]["ports"]}
