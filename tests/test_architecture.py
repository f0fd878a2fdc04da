"""The rules of the layout that import-linter cannot say.

Each rule is a table and one test; a rule that needs an exception gets it in its table, by name,
where a reader sees it.
"""

import ast
import configparser
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import memorybus
import msgspec
import pytest
from memorybus_providers import base

ROOT = Path(__file__).parent.parent
ROOTS = (
    "bus/memorybus",
    "bus/memorybus_console",
    "bus/memorybus_frameworks",
    "bus/memorybus_hermes",
    "providers/memorybus_providers",
    "workers/memorybus_workers",
)

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
        "memorybus.processes.*",
        "memorybus_console.*",
        "memorybus_hermes.*",
        "memorybus_providers.adapters.hermes.launch",
        "memorybus_workers.processes.*",
    ),
    "sqlite3": (
        "memorybus.outbox.database",
        "memorybus.outbox.files",  # counts the rows of a file whose owner is dead
        "memorybus.outbox.spool",
        "memorybus.agent.session_store",
        "memorybus.history.scratch_index",  # a temporary file, gone with the run
        "memorybus_console.operations.ingest.new_events",  # translates its errors
        "memorybus_hermes.transcripts.state_db",  # Hermes's own file, read only
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
        "memorybus.outbox.flusher",
        "memorybus.outbox.producers",
        "memorybus.outbox.sender",
        "memorybus_workers.*",
    ),
    "opentelemetry": ("memorybus.tracing.otel", "memorybus_workers.processes.exporting"),
    "structlog": ("memorybus_workers.*",),
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

READ_A_KEY = (
    "memorybus_providers.embedding.choice",
    "memorybus_providers.remote.options",
)
"""The options name the variable that holds a key, so that no file of settings has to."""

TELLS_MEM0 = "memorybus_providers.mem0.library"
"""Mem0 reads its variables when it is imported, and is told no other way to keep to itself."""

FINDS_HERMES = "memorybus_hermes.home"
"""HERMES_HOME is Hermes's variable, no setting of ours."""

ENVIRONMENT = ("environ", "environb", "getenv", "getenvb", "putenv", "unsetenv")
WALL_CLOCKS = ("now", "utcnow", "today")
MUTABLE = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
CONTAINERS = ("dict", "list", "set", "bytearray", "defaultdict", "OrderedDict", "Counter", "deque")
WORDS_OF_THE_CONTRACT = (
    "clock",
    "errors",
    "events",
    "ids",
    "msgspec_types",
    "private",
    "small_talk",
    "testing",
)

PUBLIC_MODULES = (
    "memorybus",
    *(f"memorybus.{word}" for word in WORDS_OF_THE_CONTRACT),
    "memorybus.text.fence",
    "memorybus.text.injection",
    "memorybus.text.scrubber",
)
"""What an integration imports; docs/agents.md says what is in them."""

HERMES_ALSO_SEES = {
    # Read models, what a terminal shows, names of places, and locks; nothing that publishes but by
    # a `MemoryBus`.
    "install.status": (
        "memorybus.health.finding",
        "memorybus.health.monitor",
        "memorybus.health.status",
        "memorybus.text.display",
        "memorybus.text.redact",
    ),
    "masking": ("memorybus.text.redact",),
    "plugin.conversation": ("memorybus.redis.keys",),
    "plugin.shared": ("memorybus.redis.keys",),
    "plugin.session_tracker": ("memorybus.redis.keys",),
    "problems": ("memorybus.text.display", "memorybus.text.redact"),
    "reconcile.history_index": ("memorybus.history.history", "memorybus.history.scratch_index"),
    "reconcile.reconcile": (
        "memorybus.health.monitor",
        "memorybus.history.forgotten",
        "memorybus.history.history",
    ),
    "reconcile.survey": ("memorybus.history.forgotten",),
    "transcripts.state_db": ("memorybus.concurrency.forking",),
    "transcripts.stored_turns": ("memorybus.text.bounding",),
}
"""What modules of the Hermes integration import of the bus beyond its public names."""

MOST_LINES = 40
"""Lines of a function, beside its docstring: it is read without turning a page."""

MOST_MODULES = 25
"""Modules of a folder, its ``__init__`` among them."""

TEST = re.compile(
    r'^ *(?:async )?def (test_\w+)\(.*?\)(?: -> \w+)?:\s+(r?"{3} ?\S|.)', re.MULTILINE | re.DOTALL
)
"""A test, with the first character of its body, or of its docstring with the quotes before it."""

TYPE_NAME = r"_*[A-Z]\w*[a-z]\w*"
"""How classes and aliases are written, but no constant."""

OWN_TYPES = {"dict", "list", "tuple", "str", "bytes", "int", "object", "Any"}
"""Python's own types, of which msgspec keeps nothing."""

MIRROR_NOTHING = ("deploy", "docs", "helpers", "model", "providers")
"""Folders of tests that stand for no folder of the code; CONTRIBUTING.md says what is in them."""

HEAVY = ("redis", "rq", "cyclopts", "rich", "structlog", "starlette", "Stemmer", "opentelemetry")
"""What an agent's process does not load for the sake of publishing."""


@cache
def parsed(text: str) -> ast.Module:
    """Return the syntax tree of a text."""
    return ast.parse(text)


class Module(msgspec.Struct, frozen=True):
    """One source file: its dotted name and its text."""

    name: str
    path: Path
    text: str

    @property
    def tree(self) -> ast.Module:
        """Its syntax tree, made for the first rule that needs it."""
        return parsed(self.text)


def read_modules(*roots: Path) -> list[Module]:
    """Read every Python file below `roots`."""
    found = []
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append(Module(name, path, path.read_text()))
    return found


@cache
def sources() -> tuple[Module, ...]:
    """Return the product's modules; they are read once, and only where a rule is checked."""
    return tuple(read_modules(*(ROOT / root for root in ROOTS)))


@cache
def written_tests() -> tuple[Module, ...]:
    """Return the modules of the tests."""
    return tuple(read_modules(ROOT / "tests"))


def benchmarks() -> list[Path]:
    """Return the modules of the bench, without the environments that it installs into ``out``."""
    bench = ROOT / "bench"
    folders = [path for path in bench.iterdir() if path.is_dir() and path.name != "out"]
    return [*bench.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]


@cache
def nodes(tree: ast.AST) -> Mapping[type[ast.AST], list[Any]]:
    """Return all nodes of a tree by their type: walked once for all rules."""
    found, waiting = defaultdict(list), [tree]
    while waiting:
        node = waiting.pop()
        found[type(node)].append(node)
        for name in node._fields:  # `ast.walk` takes twice as long
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting += [part for part in value if isinstance(part, ast.AST)]
    return found


Check = Callable[[Module], Iterable[str]]
"""Names what a module does against a rule."""


def offenders(check: Check, modules: Iterable[Module]) -> dict[str, list[str]]:
    """Return what breaks a rule, by module: one test holds a rule for all of them."""
    found = {module.name: sorted(check(module)) for module in modules}
    return {name: offences for name, offences in found.items() if offences}


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of every import, lazy ones included; name is empty for a plain one."""
    for node in nodes(tree)[ast.Import]:
        yield from ((alias.name, "") for alias in node.names)
    for node in nodes(tree)[ast.ImportFrom]:
        yield from ((node.module or "", alias.name) for alias in node.names)


def calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (owner, name) of every call of a plain name or of a name's attribute."""
    for node in nodes(tree)[ast.Call]:
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


def fences(heading: str) -> list[str]:
    """Return the lines of the first code block below a heading of docs/architecture.md."""
    below = (ROOT / "docs" / "architecture.md").read_text().split(f"\n## {heading}\n", 1)[1]
    return below.split("```\n", 2)[1].splitlines()


def mapped(lines: list[str]) -> list[str]:
    """Return the folders of a map: indented below their parent, several on a line, with a slash."""
    found, parents = [], [""]
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.match(r"\s*((?:\S+/ *)+)", line)
        assert names, f"a line of the map names no folder: {line}"
        folders = [parents[depth] + name for name in names[1].split()]
        parents[depth + 1 :] = [folders[-1]]
        found += [folder.rstrip("/") for folder in folders]
    return found


def drawn_layers(lines: list[str]) -> dict[str, list[set[str]]]:
    """Return the layers of the figure, from the top down, for each package."""
    packages = lines[0].split()
    columns = zip(*(line.split("|") for line in lines[1:]), strict=True)
    return {
        package: [set(cell.split()) for cell in column if cell.strip()]
        for package, column in zip(packages, columns, strict=True)
    }


def contract_layers(package: str) -> list[set[str]]:
    """Return the layers of a package as .importlinter has them, from the top down."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    (layers,) = [
        contract["layers"]
        for contract in contracts.values()
        if contract.get("containers", "").split() == [package]
    ]
    return [set(re.split(r"[\s|:]+", line.strip())) for line in layers.splitlines() if line.strip()]


def test_the_map_is_the_tree():
    """The map of docs/architecture.md has every folder of the code once, and nothing else."""
    folders = {
        module.path.parent.relative_to(ROOT).as_posix()
        for module in sources()
        if module.path.name == "__init__.py"
    }
    on_map = mapped(fences("The map"))
    assert sorted(on_map) == sorted(folders)


@pytest.mark.parametrize("heading", ["The layers", "The layers of the providers"])
def test_the_figure_has_the_layers_that_are_checked(heading):
    """The figures of docs/architecture.md have the layers of .importlinter, in their order."""
    for package, layers in drawn_layers(fences(heading)).items():
        assert layers == contract_layers(package)


@pytest.mark.parametrize(
    ("lines", "folders"),
    [
        (["a/  words", "  b/ c/", "    d/  of c / not a folder"], ["a", "a/b", "a/c", "a/c/d"]),
        (["a/", "  b/", "    c/", "  d/"], ["a", "a/b", "a/b/c", "a/d"]),
    ],
)
def test_the_map_is_read_as_it_is_drawn(lines, folders):
    """A folder belongs to the last line above it that is indented less."""
    assert mapped(lines) == folders


def test_the_sources_are_found():
    """The other tests of this file look at something."""
    found = {module.name.split(".")[0] for module in sources()}
    assert found == {Path(root).name for root in ROOTS}
    assert ROOT / "bench" / "run.py" in benchmarks()


def test_every_folder_is_a_package():
    """A folder without ``__init__.py`` would be passed over by mypy and import-linter."""
    bare = {module.path.parent for module in sources()} - {
        module.path.parent for module in sources() if module.path.name == "__init__.py"
    }
    assert bare == set()


def public_types(module: Module) -> list[str]:
    """Return the names of the classes and aliases of types that a module defines for others."""
    body = module.tree.body
    classes = [node.name for node in body if isinstance(node, ast.ClassDef)]
    return [name for name in (*classes, *aliases(module)) if not name.startswith("_")]


def aliases(module: Module) -> dict[str, str]:
    """Return the names that a module assigns in capitalised words, with what each stands for."""
    found = {}
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            found[ast.unparse(target)] = ast.unparse(node.value)
    return {name: value for name, value in found.items() if re.fullmatch(TYPE_NAME, name)}


def unmarked_options(module: Module) -> list[str]:
    """Return the aliases of commands' parameters that do not say that they are one."""
    if not module.name.startswith("memorybus_console.cli."):
        return []
    annotated = [name for name, value in aliases(module).items() if value.startswith("Annotated[")]
    return [name for name in annotated if not name.endswith("Option")]


def long_functions(module: Module) -> list[str]:
    """Return the functions of more than `MOST_LINES`, beside what their docstrings take."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for kind in kinds for node in nodes(module.tree)[kind]]
    return [one.name for one in functions if _lines(one) - _docstring_lines(one) > MOST_LINES]


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return 0 if ast.get_docstring(function) is None else _lines(function.body[0])


def imported_modules(module: Module, names: Collection[str]) -> set[str]:
    """Return those of some modules that a module imports, lazily or not."""
    found = set()
    for owner, name in imports(module.tree):
        whole = f"{owner}.{name}"
        found.add(whole if whole in names else owner)
    return found.intersection(names) - {module.name}


def drawers(module: Module) -> set[str]:
    """Return the words of a module's name that name nothing."""
    parts = {word for part in module.name.split(".") for word in part.split("_")}
    return parts & {"util", "utils", "helper", "helpers", "common", "misc"}


def environment_read(module: Module) -> list[str]:
    """Return what a module reads or changes of the environment; its homes may."""
    homes = (READS_ENVIRONMENT, FINDS_HERMES, TELLS_MEM0, *READ_A_KEY, *HAND_ENVIRONMENT_ON)
    if module.name in homes:
        return []
    used = [
        ast.unparse(node)
        for node in nodes(module.tree)[ast.Attribute]
        if node.attr in ENVIRONMENT and ast.unparse(node.value) == "os"
    ]
    return used + [
        name for library, name in imports(module.tree) if library == "os" and name in ENVIRONMENT
    ]


def wall_clocks_asked(module: Module) -> list[str]:
    """Return where a module asks ``datetime`` for the present moment."""
    return [
        ast.unparse(node)
        for node in nodes(module.tree)[ast.Attribute]
        if node.attr in WALL_CLOCKS
        and ast.unparse(node.value).split(".")[-1] in ("datetime", "date")
    ]


def code_from_bytes(module: Module) -> list[str]:
    """Return what a module uses to make code of bytes."""
    libraries = {imported.split(".")[0] for imported, _ in imports(module.tree)}
    called = [name for owner, name in calls(module.tree) if not owner and name in BANNED_CALLS]
    return [*(libraries & set(BANNED_IMPORTS)), *called]


def module_state(module: Module) -> list[str]:
    """Return the state that a module holds at its level, or changes by ``global``."""
    changed = [ast.unparse(node) for node in nodes(module.tree)[ast.Global]]
    return mutable_state(module.tree) + changed


def unprepared(module: Module) -> list[str]:
    """Return the types that msgspec decodes or converts into, but for Python's own."""
    if module.name == "memorybus.msgspec_types":
        return []
    given = []
    for call in nodes(module.tree)[ast.Call]:
        match ast.unparse(call.func).split("."):
            case ["msgspec", "convert"] | ["msgspec", "json" | "msgpack", "Decoder"]:
                given += call.args[-1:]
            case ["msgspec", "json" | "msgpack", "decode"]:
                given += [one.value for one in call.keywords if one.arg == "type"]
    return [
        ast.unparse(kind)
        for kind in given
        if not ast.unparse(kind).startswith("prepared(")
        and {name.id for name in nodes(kind)[ast.Name]} - OWN_TYPES
    ]


def contract_elsewhere(module: Module) -> list[str]:
    """Return what a module imports of the provider contract from where a type is defined."""
    if module.name == base.__name__ or "memorybus_providers." not in module.text:
        return []
    return [
        f"{owner}.{name}"
        for owner, name in imports(module.tree)
        if name in base.__all__ and owner.startswith("memorybus_providers.")
        if owner != base.__name__
    ]


def without_a_rule(module: Module) -> list[str]:
    """Return the tests of a module that do not say what they hold."""
    return [name for name, body in TEST.findall(module.text) if len(body) == 1]


def sleeps(module: Module) -> list[str]:
    """Return the calls of a test module that only let time pass."""
    if module.name == "tests.helpers.processes.waiting" or "sleep(" not in module.text:
        return []
    sleeping = (("time", "sleep"), ("", "sleep"))
    return [f"{owner}.{name}" for owner, name in calls(module.tree) if (owner, name) in sleeping]


def test_threads_may_decode_into_each_type():
    """A type of ours is made ready before msgspec decodes into it: else two threads crash there."""
    assert offenders(unprepared, sources()) == {}


def test_no_drawer_for_odds_and_ends():
    """A module is named for what it holds; ``utils`` names nothing."""
    assert offenders(drawers, sources()) == {}


def test_a_folder_is_seen_at_a_glance():
    """No folder of the code or of the bench has more than two dozen modules side by side."""
    paths = [module.path for module in sources()] + benchmarks()
    homes = Counter(path.parent for path in paths)
    assert {str(home): n for home, n in homes.items() if n > MOST_MODULES} == {}


def folders(modules: Iterable[Module], root: str) -> set[str]:
    """Return the folders below `root` that have modules, ``.`` for the root itself."""
    paths = [module.path.parent for module in modules]
    below = [path.relative_to(ROOT / root) for path in paths if path.is_relative_to(ROOT / root)]
    return {path.as_posix() for path in below}


def test_a_test_is_found_under_the_path_of_what_it_tests():
    """Unit and integration tests have the code's folders, some of them below their root's."""
    bus, console, frameworks, hermes, providers, workers = (
        folders(sources(), root) for root in ROOTS
    )
    below = [("frameworks", frameworks), ("hermes", hermes), ("workers", workers)]
    mirrored = bus | console | providers
    mirrored |= {Path(name, folder).as_posix() for name, found in below for folder in found}
    tests = [folders(written_tests(), f"tests/{kind}") for kind in ("unit", "integration")]
    assert set().union(*tests) - mirrored == set(MIRROR_NOTHING)


def test_no_module_needs_itself():
    """Imports go round in no circle, those within functions and for types included."""
    names = {module.name for module in sources()}
    needs = {module.name: imported_modules(module, names) for module in sources()}
    TopologicalSorter(needs).prepare()  # an error of it names the circle


def test_a_type_has_its_name_alone():
    """Whoever reads the name of a class, or of an alias, knows which one is meant."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module in sources():
        for name in public_types(module):
            homes[name].append(module.name)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_a_parameter_of_a_command_is_told_from_a_type():
    """An alias of a parameter ends in ``Option``: a `Session` is never an option's text."""
    assert offenders(unmarked_options, sources()) == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("class Lane: ...", ["Lane"]),
        ("class _Lane: ...\n_Place = int", []),
        ("Level = Literal['low']", ["Level"]),
        ("Message: TypeAlias = dict[str, Any]", ["Message"]),
        ("LEVELS = ('low',)\nlevel = 1", []),
    ],
)
def test_the_rule_of_names_can_fail(source, found):
    """The check itself sees what it is there to see."""
    assert public_types(Module("memorybus.types", ROOT, source)) == found


def test_a_function_fits_a_screen():
    """A function has 40 lines at most, beside its docstring."""
    assert offenders(long_functions, sources()) == {}


def test_side_effects_have_one_home():
    """Time, randomness, SQLite, Redis, RQ and child processes are used in their homes only."""
    assert offenders(strangers, sources()) == {}


def test_only_settings_reads_the_environment():
    """The environment is read in ``settings``; everything else receives settings."""
    assert offenders(environment_read, sources()) == {}


def test_only_the_clock_knows_what_time_it_is():
    """``datetime`` formats and parses; the present moment comes from a `Clock`."""
    assert offenders(wall_clocks_asked, sources()) == {}


def test_no_pickle_and_no_eval():
    """Bytes from outside never become code."""
    assert offenders(code_from_bytes, sources()) == {}


def test_no_state_at_module_level():
    """Two buses in one process share nothing: module level holds tables in capitals only."""
    assert offenders(module_state, sources()) == {}


@pytest.mark.parametrize("name", WORDS_OF_THE_CONTRACT)
def test_the_words_of_the_contract_stand_alone(name):
    """What a provider may import drags in nothing else of the bus."""
    (module,) = [module for module in sources() if module.name == f"memorybus.{name}"]
    seen = {lib for lib, _ in imports(module.tree) if lib.split(".")[0] == "memorybus"}
    assert seen <= {f"memorybus.{word}" for word in WORDS_OF_THE_CONTRACT}


def test_the_contract_has_one_path():
    """The types of the provider contract are imported from ``base``, also by the code itself."""
    assert offenders(contract_elsewhere, (*sources(), *written_tests())) == {}


def of_the_bus(tree: ast.AST) -> set[str]:
    """Return the modules of the bus that are imported; a public name counts as the package."""
    found = set()
    for module, name in imports(tree):
        named = module == "memorybus" and name and name not in memorybus.__all__
        found.add(f"memorybus.{name}" if named else module)
    return {module for module in found if module.split(".")[0] == "memorybus"}


def test_hermes_is_an_integration_as_any_other():
    """It imports the bus by public names, and by the few more that the table has; none is idle."""
    root = "memorybus_hermes."
    seen = {}
    for module in sources():
        if module.name.startswith(root):
            more = of_the_bus(module.tree).difference(PUBLIC_MODULES)
            seen |= {module.name.removeprefix(root): tuple(sorted(more))} if more else {}
    assert seen == HERMES_ALSO_SEES


def test_a_framework_is_reached_by_public_names():
    """The modules for other frameworks import the bus by its public names alone."""
    modules = [m for m in sources() if m.name.startswith("memorybus_frameworks.")]
    assert len(modules) > 4
    assert offenders(lambda m: of_the_bus(m.tree).difference(PUBLIC_MODULES), modules) == {}


def test_an_agent_loads_no_heavy_library():
    """Importing the client costs an agent's process neither Redis nor a CLI (G9)."""
    program = "import json, sys, memorybus.agent.client; print(json.dumps(sorted(sys.modules)))"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30
    )
    assert shown.returncode == 0, shown.stderr
    assert not set(json.loads(shown.stdout)) & set(HEAVY)


def test_every_test_says_its_rule():
    """A test function has a docstring: the sentence it holds."""
    assert offenders(without_a_rule, written_tests()) == {}


def test_tests_wait_for_conditions():
    """Tests never sleep: ``helpers.processes.waiting`` polls a named condition."""
    assert offenders(sleeps, written_tests()) == {}


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
def test_the_rule_of_homes_can_fail(source, found):
    """The check itself sees what it is there to see."""
    stranger = Module("memorybus.stranger", ROOT, source)
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
def test_the_rule_of_state_can_fail(source, found):
    """The check itself sees what it is there to see."""
    assert mutable_state(ast.parse(source)) == found


@pytest.mark.parametrize(
    ("check", "source", "found"),
    [
        (drawers, "", ["utils"]),
        (environment_read, "import os\nos.environ", ["os.environ"]),
        (environment_read, "from os import getenv", ["getenv"]),
        (wall_clocks_asked, "datetime.datetime.now(UTC)", ["datetime.datetime.now"]),
        (
            contract_elsewhere,
            "from memorybus_providers.kept import Residue",
            ["memorybus_providers.kept.Residue"],
        ),
        (code_from_bytes, "import pickle\neval('1')", ["eval", "pickle"]),
        (module_state, "def f():\n    global seen", ["global seen"]),
        (without_a_rule, "def test_it(): ...", ["test_it"]),
        (sleeps, "import time\ntime.sleep(1)", ["time.sleep"]),
    ],
)
def test_each_rule_can_fail(check, source, found):
    """The check itself sees what it is there to see, and names the module."""
    module = Module("memorybus.my_utils", ROOT, source)
    assert offenders(check, [module]) == {"memorybus.my_utils": found}
