"""The rules of the layout that import-linter cannot say.

Each rule is a table and one test; a rule that needs an exception gets it in its table, by name,
where a reader sees it.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import memorybus
import msgspec
import pytest

ROOT = Path(__file__).parent.parent
ROOTS = ("bus/memorybus", "providers/memorybus_providers", "workers/memorybus_workers")

HOMES = {
    # Side effects, and the only folders or modules that may import what causes them.
    # The child of a hosted Hermes plugin runs where memorybus, and so its clock, is not installed.
    "time": ("memorybus.clock", "memorybus_providers.adapters.hermes.child.watch"),
    "random": ("memorybus.ids",),
    "secrets": ("memorybus.ids",),
    "uuid": ("memorybus.ids",),
    "uuid_utils": ("memorybus.ids",),
    "subprocess": (
        "memorybus.embedded.*",
        "memorybus.operations.*",
        "memorybus.processes.*",
        "memorybus.surfaces.*",
        "memorybus_providers.adapters.hermes.launch",
        "memorybus_workers.processes.*",
    ),
    "sqlite3": (
        "memorybus.spool.*",
        "memorybus.agent.session_store",
        "memorybus.operations.archive.known_ids",  # a temporary index, gone with the run
        "memorybus.surfaces.hermes.reconcile.history_index",  # likewise
        "memorybus.surfaces.hermes.transcripts.state_db",  # Hermes's own file, read only
        "memorybus_providers.*",
    ),
    "redis": (
        "memorybus.archive.*",
        "memorybus.dead_letters.*",
        "memorybus.embedded.*",
        "memorybus.health.*",
        "memorybus.history.*",
        "memorybus.jobs.*",
        "memorybus.log.*",
        "memorybus.recall.*",
        "memorybus.redis.*",
        "memorybus.registry.*",
        "memorybus.sending.*",
        "memorybus_workers.*",
    ),
    "rq": (
        "memorybus.health.*",
        "memorybus.jobs.*",
        "memorybus.recall.*",
        "memorybus.redis.connect",
        "memorybus_workers.*",
    ),
}

FOR_ANNOTATIONS = {"random": {"Random"}}
"""Types that others may name, since they receive the object; they may not call them."""

BANNED_IMPORTS = ("pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib")
BANNED_CALLS = ("eval", "exec", "__import__")
READS_ENVIRONMENT = "memorybus.config.settings"
HAND_ENVIRONMENT_ON = (
    "memorybus.processes.child",
    "memorybus_providers.adapters.hermes.launch",
)
"""A child process gets its parent's environment with the settings written into it, or parts."""

FINDS_HERMES = "memorybus.surfaces.hermes.home"
"""HERMES_HOME is Hermes's variable, no setting of ours."""

ENVIRONMENT = ("environ", "environb", "getenv", "getenvb", "putenv", "unsetenv")
WALL_CLOCKS = ("now", "utcnow", "today")
MUTABLE = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
CONTAINERS = ("dict", "list", "set", "bytearray", "defaultdict", "OrderedDict", "Counter", "deque")
WORDS_OF_THE_CONTRACT = ("clock", "errors", "events", "ids", "private", "testing")

PUBLIC_MODULES = (
    "memorybus",
    *(f"memorybus.{word}" for word in WORDS_OF_THE_CONTRACT),
    "memorybus.text.fence",
    "memorybus.text.injection",
    "memorybus.text.scrubber",
)
"""What an integration imports; docs/agents.md says what is in them."""

HERMES_ALSO_SEES = {
    # Read models, and what a terminal shows; nothing that publishes but by a `MemoryBus`.
    "install.status": (
        "memorybus.config.redis_urls",
        "memorybus.health.finding",
        "memorybus.health.monitor",
        "memorybus.text.display",
    ),
    "problems": ("memorybus.text.display",),
    "reconcile.history_index": ("memorybus.history.history", "memorybus.log.stream"),
    "reconcile.importing": ("memorybus.operations.ingest.paced",),
    "reconcile.reconcile": ("memorybus.health.monitor", "memorybus.history.history"),
    "reconcile.view": ("memorybus.text.display",),
    "transcripts.state_db": ("memorybus.concurrency.forking",),
}
"""What modules of the Hermes integration import of the bus beyond its public names."""

HEAVY = ("redis", "rq", "cyclopts", "rich", "structlog")
"""What an agent's process does not load for the sake of publishing."""


class Module(msgspec.Struct, frozen=True):
    """One source file: its dotted name, its text and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module


def read_modules(*roots: Path) -> list[Module]:
    """Parse every Python file below `roots`."""
    found = []
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text()
            found.append(Module(name, path, text, ast.parse(text)))
    return found


SOURCES = tuple(read_modules(*(ROOT / root for root in ROOTS)))
TESTS = tuple(read_modules(ROOT / "tests"))
NAMES = {module.name for module in SOURCES}

each_source = pytest.mark.parametrize("module", SOURCES, ids=lambda module: module.name)
each_test = pytest.mark.parametrize("module", TESTS, ids=lambda module: module.name)


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of every import, lazy ones included; name is empty for a plain one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (owner, name) of every call of a plain name or of a name's attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield "", node.func.id
            elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                yield node.func.value.id, node.func.attr


def at_home(module: str, homes: tuple[str, ...]) -> bool:
    """Whether a module is one of the homes of a side effect."""
    return any(fnmatchcase(module, home) for home in homes)


def strangers(module: Module) -> list[str]:
    """Return the libraries that `module` uses without being their home."""
    found = set()
    for imported, name in imports(module.tree):
        library = imported.split(".")[0]
        only_named = FOR_ANNOTATIONS.get(library, set())
        if at_home(module.name, HOMES.get(library, ("*",))) or name in only_named:
            continue
        if name or not only_named or called(module, library):
            found.add(library)
    return sorted(found | called_types(module))


def called(module: Module, library: str) -> bool:
    """Whether anything of a plainly imported library is called."""
    return any(owner == library for owner, _ in calls(module.tree))


def called_types(module: Module) -> set[str]:
    """Return the libraries whose types `module` makes instances of, outside their homes."""
    names = {name for _, name in calls(module.tree)}
    return {
        library
        for library, types in FOR_ANNOTATIONS.items()
        if not at_home(module.name, HOMES[library]) and names & types
    }


def mutable_state(tree: ast.Module) -> list[str]:
    """Return the module-level names that hold state: all but tables in capitals."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            found += [ast.unparse(t) for t in node.targets if is_state(ast.unparse(t), node.value)]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            name, kind = ast.unparse(node.target), ast.unparse(node.annotation)
            found += [name] if is_state(name, node.value, kind) else []
    return found


def is_state(name: str, value: ast.expr, kind: str = "dict") -> bool:
    """Whether a module-level assignment makes something that is there to be changed.

    An empty table is only a table if its type forbids to fill it.
    """
    if name == "__all__":
        return False
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).split(".")[-1] in CONTAINERS
    filled = ast.unparse(value) not in ("{}", "[]")
    read_only = kind.split("[", maxsplit=1)[0] not in CONTAINERS
    table = name == name.upper() and (filled or read_only)
    return isinstance(value, MUTABLE) and not table


def test_the_sources_are_found() -> None:
    """The other tests of this file look at something."""
    found = {name.split(".")[0] for name in NAMES}
    assert found == {"memorybus", "memorybus_providers", "memorybus_workers"}


def test_every_folder_is_a_package() -> None:
    """A folder without ``__init__.py`` would be passed over by mypy and import-linter."""
    bare = {module.path.parent for module in SOURCES} - {
        module.path.parent for module in SOURCES if module.path.name == "__init__.py"
    }
    assert bare == set()


@each_source
def test_no_drawer_for_odds_and_ends(module: Module) -> None:
    """A module is named for what it holds; ``utils`` names nothing."""
    parts = {word for part in module.name.split(".") for word in part.split("_")}
    assert not parts & {"util", "utils", "helper", "helpers", "common", "misc"}


@each_source
def test_side_effects_have_one_home(module: Module) -> None:
    """Time, chance, SQLite, Redis, RQ and child processes are used in their homes only."""
    assert strangers(module) == []


@each_source
def test_only_settings_reads_the_environment(module: Module) -> None:
    """The environment is read in ``settings``; everything else receives settings."""
    if module.name in (READS_ENVIRONMENT, FINDS_HERMES, *HAND_ENVIRONMENT_ON):
        return
    used = [
        ast.unparse(node)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ENVIRONMENT
        and ast.unparse(node.value) == "os"
    ]
    used += [
        name for library, name in imports(module.tree) if library == "os" and name in ENVIRONMENT
    ]
    assert used == []


@each_source
def test_only_the_clock_knows_what_time_it_is(module: Module) -> None:
    """``datetime`` formats and parses; the present moment comes from a `Clock`."""
    asked = [
        ast.unparse(node)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and node.attr in WALL_CLOCKS
        and ast.unparse(node.value).split(".")[-1] in ("datetime", "date")
    ]
    assert asked == []


@each_source
def test_no_pickle_and_no_eval(module: Module) -> None:
    """Bytes from outside never become code."""
    libraries = {imported.split(".")[0] for imported, _ in imports(module.tree)}
    assert not libraries & set(BANNED_IMPORTS)
    assert not [name for owner, name in calls(module.tree) if not owner and name in BANNED_CALLS]


@each_source
def test_no_state_at_module_level(module: Module) -> None:
    """Two buses in one process share nothing: module level holds tables in capitals only."""
    assert mutable_state(module.tree) == []
    assert not [node for node in ast.walk(module.tree) if isinstance(node, ast.Global)]


@pytest.mark.parametrize("name", WORDS_OF_THE_CONTRACT)
def test_the_words_of_the_contract_stand_alone(name: str) -> None:
    """What a provider may import drags in nothing else of the bus."""
    (module,) = [module for module in SOURCES if module.name == f"memorybus.{name}"]
    seen = {lib for lib, _ in imports(module.tree) if lib.split(".")[0] == "memorybus"}
    assert seen <= {f"memorybus.{word}" for word in WORDS_OF_THE_CONTRACT}


def of_the_bus(tree: ast.AST) -> set[str]:
    """Return the modules of the bus that are imported; a public name counts as the package."""
    found = set()
    for module, name in imports(tree):
        named = module == "memorybus" and name and name not in memorybus.__all__
        found.add(f"memorybus.{name}" if named else module)
    return {module for module in found if module.split(".")[0] == "memorybus"}


def test_hermes_is_an_integration_as_any_other() -> None:
    """It imports the bus by public names, and by the few more that the table has; none is idle."""
    root = "memorybus.surfaces.hermes."
    seen = {}
    for module in SOURCES:
        if module.name.startswith(root):
            more = of_the_bus(module.tree).difference(PUBLIC_MODULES)
            own = sorted(name for name in more if not name.startswith("memorybus.surfaces."))
            seen |= {module.name.removeprefix(root): tuple(own)} if own else {}
    assert seen == HERMES_ALSO_SEES


def test_an_agent_loads_no_heavy_library() -> None:
    """Importing the client costs an agent's process neither Redis nor a CLI (G9)."""
    program = "import json, sys, memorybus.agent.client; print(json.dumps(sorted(sys.modules)))"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30
    )
    assert shown.returncode == 0, shown.stderr
    assert not set(json.loads(shown.stdout)) & set(HEAVY)


@each_test
def test_every_test_says_its_rule(module: Module) -> None:
    """A test function has a docstring: the sentence it holds."""
    silent = [
        node.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


@each_test
def test_tests_wait_for_conditions(module: Module) -> None:
    """Tests never sleep: ``helpers.processes.waiting`` polls a named condition."""
    if module.name == "tests.helpers.processes.waiting":
        return
    slept = [call for call in calls(module.tree) if call in (("time", "sleep"), ("", "sleep"))]
    assert slept == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time", ["time"]),
        ("def f():\n    from redis import Redis", ["redis"]),
        ("from random import Random\ndef f(rng: Random): ...", []),
        ("import random\ndef f(rng: random.Random): ...", []),
        ("from random import Random\nx = Random()", ["random"]),
        ("import random\nx = random.random()", ["random"]),
        ("from random import choice", ["random"]),
        ("import json", []),
    ],
)
def test_the_rule_of_homes_can_fail(source: str, found: list[str]) -> None:
    """The check itself sees what it is there to see."""
    stranger = Module("memorybus.stranger", ROOT, source, ast.parse(source))
    assert strangers(stranger) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("seen = {}", ["seen"]),
        ("SEEN: dict[str, int] = {}", ["SEEN"]),
        ("CACHE = defaultdict(list)", ["CACHE"]),
        ("_pool = [1]", ["_pool"]),
        ("SEEN = {}", ["SEEN"]),
        ("TABLE = {'a': 1}", []),
        ("TABLE: Mapping[str, int] = {}", []),
        ("NAMES = ('a', 'b')", []),
        ("__all__ = ['a']", []),
    ],
)
def test_the_rule_of_state_can_fail(source: str, found: list[str]) -> None:
    """The check itself sees what it is there to see."""
    assert mutable_state(ast.parse(source)) == found
