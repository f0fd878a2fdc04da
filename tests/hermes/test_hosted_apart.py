"""Each bundled plugin, hosted, files what it files inside Hermes itself: nobody's among another's.

Two persons, their chats and two agents on one worker; the services are fakes, the SDKs are real.
"""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from helpers.hermes.hermes_agent import PYTHON
from helpers.hermes.talks import TALKS, Talk, begin, directory, finish, have_inside
from helpers.hosted.hosted import asking, context, ended, hosted
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.services import fake_services
from helpers.services.fake_services import FakeService, Filed, serving
from helpers.services.honcho_server import HonchoServer, honcho_server
from helpers.stories.scenario import thread_worker
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import Permanent
from memorybus.events import Scope, SessionStarted, TurnCompleted
from memorybus.health.monitor import read_status
from memorybus_hermes.plugin import memory_managers
from memorybus_providers.adapters.hermes import HostedHermesProvider
from memorybus_providers.adapters.hermes.plugins import PLUGINS
from memorybus_providers.base import HookContext, RecallContext, RecallScope

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Hermes Agent: run make hermes-venv"),
]

OWN = [talk for talk in TALKS if talk.agent == "default"]
ANNA = [talk for talk in OWN if talk.user == "11"]
BRV = """\
#!{python} -I
import json, os, sys
with open(os.path.join(os.path.dirname(__file__), "calls.jsonl"), "a") as file:
    file.write(json.dumps([os.getcwd(), sys.argv[1:]]) + "\\n")
"""


class Backend:
    """What stands behind a plugin, in one world: Hermes itself, or the bus.

    Attributes:
        root: the HERMES_HOME of the default profile.
        homes: where the HERMES_HOMEs lie.
    """

    def __init__(self, plugin: str, place: Path, stack: ExitStack) -> None:
        self.root = place / ".hermes"
        self.homes = [place]
        self._plugin = plugin
        self.service = self._serve(stack)
        for home in (self.root, self.root / "profiles" / "coder"):
            self._configure(home)
        (place / "bin").mkdir()
        brv = place / "bin" / "brv"
        brv.write_text(BRV.format(python=sys.executable))
        brv.chmod(0o755)

    def _serve(self, stack: ExitStack) -> FakeService | HonchoServer | None:
        if self._plugin == "honcho":
            return stack.enter_context(honcho_server())
        service = getattr(fake_services, self._plugin, None)
        return stack.enter_context(serving(service)) if service else None

    def _configure(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        url = self.service.url if self.service else ""
        wait = {"firstTurnBaseWait": 60, "firstTurnDialecticWait": 60}
        files = {
            "honcho.json": json.dumps({"baseUrl": url, "apiKey": "no-key-at-all", **wait}),
            "mem0.json": json.dumps({"host": url}),
            "hindsight/config.json": json.dumps(
                {"mode": "cloud", "api_url": url, "api_key": "no-key-at-all"}
            ),
            ".env": f"RETAINDB_API_KEY=no-key-at-all\nRETAINDB_BASE_URL={url}\n"
            f"SUPERMEMORY_API_KEY=no-key-at-all\nSUPERMEMORY_BASE_URL={url}\n"
            f"OPENVIKING_ENDPOINT={url}\n",
        }
        for name, text in files.items():
            (home / name).parent.mkdir(exist_ok=True)
            (home / name).write_text(text)

    def filed(self) -> list[Filed]:
        """Return all that is filed, whatever keeps it."""
        if isinstance(self.service, HonchoServer):
            said = [Filed(one[:3], one.content) for one in self.service.messages]
            return said + [Filed(one[:4], one.content) for one in self.service.conclusions]
        if self.service is not None:
            return list(self.service.filed)
        return self._facts() if self._plugin == "holographic" else self._curated()

    def _facts(self) -> list[Filed]:
        found: list[Filed] = []
        for path in [path for home in self.homes for path in home.rglob("memory_store.db")]:
            db = sqlite3.connect(path)
            rows = db.execute("select content from facts").fetchall()
            db.close()
            found += [Filed((str(path.parent),), row[0]) for row in rows]
        return found

    def _curated(self) -> list[Filed]:
        path = self.root.parent / "bin" / "calls.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        calls = [json.loads(line) for line in lines]
        return [Filed((where,), args[-1]) for where, args in calls if args[0] == "curate"]


Worlds = Callable[[str], tuple[Backend, Backend]]


@pytest.fixture
def worlds(short_dir: Path) -> Iterator[Worlds]:
    """Make the backends of Hermes itself and of the bus."""
    with ExitStack() as stack, ended([short_dir]):

        def make(plugin: str) -> tuple[Backend, Backend]:
            places = (short_dir / "inside", short_dir / "hosted")
            for place in places:
                place.mkdir()
            one, two = (Backend(plugin, place, stack) for place in places)
            return one, two

        yield make


@pytest.fixture
def settings_for(make_settings: MakeSettings) -> Callable[..., Settings]:
    """Make settings with one hosted plugin as the provider."""

    def make(plugin: str, backend: Backend, **options: Any) -> Settings:
        table = {"kind": f"hermes:{plugin}", "hermes_python": str(PYTHON), "idle": 2.0, **options}
        return make_settings(
            partitions=4,
            providers=(plugin,),
            provider={plugin: {**table, "hermes_home": str(backend.root)}},
            call_timeout=60.0,
            lease=90.0,
        )

    return make


def behind(settings: Settings) -> int:
    """Return how many events the provider has not applied yet."""
    return sum(one.backlog for one in read_status(settings).providers)


def have_hosted(settings: Settings, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all conversations through the bus and one worker."""
    monkeypatch.setenv("PATH", f"{backend.root.parent / 'bin'}:/usr/bin:/bin")
    with thread_worker(settings), MemoryBus.connect(settings) as bus:
        managers, new_manager = [], memory_managers(bus)
        for talk in TALKS:
            monkeypatch.chdir(directory(backend.root, talk))
            managers.append(begin(new_manager, talk))
        assert bus.flush("logged", 30)
        wait_until(lambda: behind(settings) == 0, "all turns are applied", 180)
        for manager, talk in zip(managers, TALKS, strict=True):
            finish(manager, talk)
        assert bus.flush("logged", 30)
        wait_until(lambda: behind(settings) == 0, "all is applied", 180)


@pytest.mark.usefixtures("redis_server")
@pytest.mark.parametrize("plugin", sorted(PLUGINS))
def test_a_hosted_plugin_files_as_hermes_does(plugin, worlds, settings_for, monkeypatch):
    """Every text lies under the names it has in Hermes; where that mixes, each owner's apart.

    How often one is filed is another question: this one is where.
    """
    inside, behind_bus = worlds(plugin)
    separation = PLUGINS[plugin].separation
    served = {"no": ANNA}.get(separation, TALKS)
    have_inside(PYTHON, inside.root, plugin, served)
    options = {"user": "11"} if separation == "no" else {}
    settings = settings_for(plugin, behind_bus, **options)
    behind_bus.homes.append(settings.provider_home(plugin))
    have_hosted(settings, behind_bus, monkeypatch)
    expected, found = inside.filed(), behind_bus.filed()
    assert expected
    if separation in ("profile", "no"):
        assert set(found) == set(expected)
    else:
        assert {one.text for one in found} == {one.text for one in expected}
        check_apart(found)
    if plugin == "mem0":  # it keeps its own agent's persons apart itself
        assert {one for one in expected if any(said(talk, one) for talk in OWN)} <= set(found)


def said(talk: Talk, one: Filed) -> bool:
    """Whether a filed text is of a conversation."""
    return talk.text in one.text or talk.fact in one.text


def check_apart(found: Sequence[Filed]) -> None:
    """Check that no name under which one owner's texts are filed is another owner's."""
    owners: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for one in found:
        tellers = {(talk.agent, talk.user) for talk in TALKS if said(talk, one)}
        assert len(tellers) == 1, one
        owners.setdefault(one.names, set()).update(tellers)
    assert all(len(some) == 1 for some in owners.values()), owners


MakeProvider = Callable[..., HostedHermesProvider]


@pytest.fixture
def provider_of(short_dir: Path) -> Iterator[MakeProvider]:
    """Make opened providers of one backend."""
    made: list[HostedHermesProvider] = []

    def make(plugin: str, backend: Backend, **options: Any) -> HostedHermesProvider:
        home = short_dir / f"home-{len(made)}"
        table = {"hermes_home": str(backend.root), **options}
        made.append(hosted(plugin, home, PYTHON, **table))
        made[-1].open()
        return made[-1]

    yield make
    for provider in made:
        provider.shutdown()


def of(user: str, session: str, *, agent: str = "default") -> HookContext:
    """Return the context of an event of somebody's session."""
    base = context(session)
    return HookContext(
        Scope(agent=agent, user=user), base.session, base.event_id, base.position, base.at, 60.0
    )


def tell(provider: HostedHermesProvider, text: str, ctx: HookContext, **details: str) -> None:
    """Have a session's beginning and one turn, as Hermes in a directory named ``src`` has it."""
    provider.initialize(SessionStarted(details={"cwd": "/home/x/src", **details}), ctx)
    provider.sync_turn(TurnCompleted(user=text, assistant="Noted."), ctx)


@pytest.fixture
def honcho(worlds: Worlds, provider_of: MakeProvider) -> tuple[HostedHermesProvider, HonchoServer]:
    """Return an open provider of the real plugin, and its fake server."""
    _, backend = worlds("honcho")
    assert isinstance(backend.service, HonchoServer)
    return provider_of("honcho", backend), backend.service


def test_terminals_of_two_persons_fall_not_together(honcho):
    """Without a gateway's key a person's session is named as in Hermes, another's with a mark."""
    provider, server = honcho
    for user in ("default", "anna", "bob"):
        tell(provider, f"I am {user}.", of(user, f"s-{user}"))
    tell(provider, "I code.", of("bob", "s-bob", agent="coder"))
    names = {(place, content) for place, said in server.sessions().items() for _, content in said}
    of_texts = {content: place for place, content in names if content != "Noted."}
    assert of_texts["I am default."] == ("hermes", "src")
    assert of_texts["I code."][0] == "hermes_coder"
    assert len(set(of_texts.values())) == 4
    assert all(place[1].startswith("src") for place in of_texts.values())


def test_one_persons_recall_has_nothing_of_anothers(honcho):
    """What Honcho gives for a prompt is made of that person's sessions alone."""
    provider, _ = honcho
    keyed = "agent:main:telegram:dm:"
    tell(provider, "My diagnosis is migraine.", of("11", "a"), gateway_session_key=f"{keyed}11")
    tell(provider, "My diagnosis is gout.", of("22", "b"), gateway_session_key=f"{keyed}22")
    found = provider.prefetch("What is my diagnosis?", asking("b", user="22"))
    text = "\n".join(one.text for one in found)
    assert "gout" in text
    assert "migraine" not in text


def test_ids_that_honcho_would_make_one_are_two(honcho):
    """Ids that differ only in what Honcho's names cannot have are two peers, in two sessions."""
    provider, server = honcho
    users = ("anna.b@example.org", "anna-b@example.org", "hermes")
    for user in users:
        key = f"agent:main:email:dm:{user}"
        tell(provider, f"I am {user}.", of(user, f"s-{user}"), gateway_session_key=key)
    said = [one for one in server.messages if one.content != "Noted."]
    assert len({one.peer for one in said} | {"hermes"}) == 4
    assert len({one.session for one in said}) == 3


def test_the_owners_memory_files_are_the_owners(worlds, provider_of):
    """What Honcho takes over from MEMORY.md and USER.md goes to nobody else's session."""
    _, backend = worlds("honcho")
    assert isinstance(backend.service, HonchoServer)
    (backend.root / "memories").mkdir()
    (backend.root / "memories" / "USER.md").write_text("The owner's name is Eri.")
    provider = provider_of("honcho", backend)
    tell(provider, "Hello.", of("anna", "s-anna"))
    assert backend.service.uploads == []
    tell(provider, "Hello.", of("default", "s-own"))
    assert [path.split("/")[4] for path in backend.service.uploads] == ["src"]


@pytest.mark.parametrize(
    ("plugin", "name", "text", "agent", "user", "said"),
    [
        (
            "honcho",
            "honcho.json",
            {"pinUserPeer": True, "peerName": "eri"},
            "default",
            "bob",
            "peer",
        ),
        ("honcho", "honcho.json", {"workspace": "ours"}, "coder", "default", "workspace 'ours'"),
        ("mem0", "mem0.json", {"user_id": "eri"}, "default", "bob", "user_id is 'eri'"),
        ("retaindb", ".env", "RETAINDB_PROJECT=ours\n", "coder", "bob", "RETAINDB_PROJECT"),
        (
            "holographic",
            "config.yaml",
            "plugins:\n  hermes-memory-store:\n    db_path: {place}/one.db\n",
            *("default", "bob", "db_path"),
        ),
    ],
)
def test_a_configuration_that_mixes_is_refused_by_name(
    worlds, provider_of, plugin, name, text, agent, user, said
):
    """What a plugin's own configuration does not keep apart is not opened; its own owner is."""
    _, backend = worlds(plugin)
    path = backend.root / name
    if isinstance(text, dict):
        path.write_text(json.dumps({**json.loads(path.read_text()), **text}))
    else:
        before = path.read_text() if path.exists() else ""
        path.write_text(before + text.format(place=backend.root.parent))
    provider = provider_of(plugin, backend)
    tell(provider, "Mine.", of("default", "s-own"))
    with pytest.raises(Permanent, match=f"does not keep that of '{user}'.*apart") as refused:
        tell(provider, "Another's.", of(user, "s-other", agent=agent))
    assert said in str(refused.value)
    assert "apart = false" in str(refused.value)
    assert not any("Another's." in one.text for one in backend.filed())
    asked = RecallContext(RecallScope(agent, user, ""), deadline=60.0)
    assert provider.prefetch("What is whose?", asked) == []
    shared = provider_of(plugin, backend, apart=False)
    tell(shared, "Another's.", of(user, "s-other", agent=agent))


def test_the_names_that_are_relied_on_are_hermes_s(short_dir):
    """Every private name by which owners are kept apart is there in Hermes 0.19's plugins."""
    relied_on = {
        "holographic": ["_store"],
        "honcho": ["_resolve_session_key", "_lazy_init_kwargs"],
        "mem0": ["_config"],
        "retaindb": ["_client"],
    }
    program = (
        "import json, sys; from plugins.memory import load_memory_provider as load\n"
        "print([n for n, names in json.load(sys.stdin).items() for a in names\n"
        "       if not hasattr(load(n), a)])"
    )
    env = {"HERMES_HOME": str(short_dir), "HOME": str(short_dir)}
    done = subprocess.run(
        [PYTHON, "-I", "-c", program],
        input=json.dumps(relied_on),
        env={**env, "HERMES_DISABLE_LAZY_INSTALLS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"
