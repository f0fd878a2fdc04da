"""The skills that a Hermes agent wrote, as memories that age; Hermes keeps their files.

A skill is a directory with a ``SKILL.md`` below ``skills/`` of the home; ``skills/.usage.json`` has
its use, its state, whether it is pinned, and who made it, and an archived one lies in
``skills/.archive/``. Hermes 0.19 to 0.22 read and write these alike, under one lock. Hermes's own
curator has the same states: unless it is switched off, it alone decides how skills age.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import msgspec
from memorybus.errors import Unavailable
from memorybus.events import MemoryCurated, MemoryState
from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    ProviderConfig,
    RecallScope,
    StoredMemory,
)
from memorybus_providers.options import Options, option_rows, read_options
from msgspec import Meta

from memorybus_hermes.home import curates_skills, find_home

PREFIX: Final = "skill:"
"""What a skill's id has before its name."""

_NAME = re.compile(r"\w[\w.-]{0,99}")
"""The names that are curated; they become names of directories."""

_MARK: Final = "memorybus"
"""The field of Hermes's record that has the last change from the bus; Hermes keeps it."""

_HEAD_CHARS = 4_000
"""How far Hermes reads a SKILL.md for its name."""


class SkillOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of an instance."""

    hermes_home: Annotated[str, Meta(description="the HERMES_HOME that has the skills")] = (
        "~/.hermes"
    )


class Skill(msgspec.Struct, frozen=True):
    """A skill as its files have it.

    Attributes:
        name: its name in Hermes.
        folder: where it lies now.
        about: what it is for.
        record: what Hermes knows of its use.
    """

    name: str
    folder: Path
    about: str
    record: dict[str, Any]

    @property
    def state(self) -> MemoryState:
        """Its state; a pin of an archived one counts once it is restored."""
        if self.folder.parent.name == ".archive":
            return "archived"
        return "pinned" if self.record.get("pinned") else _ageing(self.record.get("state"))

    @property
    def changed(self) -> tuple[int, str]:
        """Time and event of the last change from the bus."""
        mark = self.record.get(_MARK)
        fields = mark if isinstance(mark, dict) else {}
        at = fields.get("at")
        return at if isinstance(at, int) else 0, str(fields.get("event") or "")


class SkillsProvider(MemoryProvider):
    """Lists the skills that an agent wrote, and gives them the states that the curator decides."""

    kind = "hermes-skills"
    delivery = "keyed"
    placement = "local"
    capabilities = Capabilities(recall=False, curates=True, handles=frozenset({MemoryCurated}))
    fresh_options: ClassVar[tuple[str, ...]] = ("hermes_home",)

    def __init__(self, config: ProviderConfig) -> None:
        """Read the options.

        Raises:
            ConfigError: an option is unknown or of the wrong type.
        """
        super().__init__(config)
        self._home = find_home(Path(read_options(config, SkillOptions).hermes_home))
        self._skills = self._home.path / "skills"

    @property
    def fresh_by_home(self) -> bool:
        """The skills are not in the instance's own directory."""
        return False

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options."""
        return option_rows(SkillOptions)

    def open(self) -> None:
        """Look for the skills.

        Raises:
            Unavailable: Hermes has not made its directory of skills here.
        """
        if not self._skills.is_dir():
            raise Unavailable(
                f"{self._skills} does not exist: start Hermes once, or name another hermes_home"
            )

    def backup_paths(self) -> Sequence[Path]:
        """Return the directory of the skills."""
        return (self._skills,)

    def curated(self, scope: RecallScope) -> Iterator[StoredMemory]:
        """Yield the skills, by name: they belong to the agent, and to no person."""
        if scope.agent not in {None, self._home.profile} or scope.user or scope.workspace:
            return
        ages = not curates_skills(self._home.config)
        scheduled = _scheduled(self._home.path / "cron" / "jobs.json")
        for name, skill in sorted(self._read(self._usage()).items()):
            used = max(_ms(skill.record.get(f"last_{deed}_at")) for deed in _DEEDS)
            if scheduled & {name, skill.folder.name}:  # Hermes counts that as use, too
                used = self.config.clock.now_ms()
            yield StoredMemory(
                f"{name}: {skill.about}",
                agent=self._home.profile,
                kind="skill",
                at=_ms(skill.record.get("created_at")),
                name=PREFIX + name,
                state=skill.state,
                since=skill.changed[0],
                used=used,
                ages=ages,
            )

    def on_memory_curated(self, event: MemoryCurated, ctx: HookContext) -> None:
        """Give a skill its state, and move its directory, as Hermes does.

        Raises:
            Unavailable: the files cannot be written.
        """
        name = event.memory.removeprefix(PREFIX)
        if name == event.memory or ctx.scope.agent != self._home.profile:
            return
        try:
            with self._locked():
                usage = self._usage()
                skill = self._read(usage).get(name)
                if skill is not None and skill.changed < (ctx.at, ctx.event_id):
                    self._change(skill, event.after, ctx)
                    self._write(usage)
        except OSError as error:
            raise Unavailable(f"{self._skills} cannot be written: {error}") from error

    def _change(self, skill: Skill, after: MemoryState, ctx: HookContext) -> None:
        """Move a skill and change its record; a crash between both is mended by a repetition."""
        is_archived = skill.state == "archived"
        if after == "archived" and not is_archived:
            _move(skill.folder, self._skills / ".archive" / skill.name, ctx.at)
        elif after != "archived" and is_archived:
            _move(skill.folder, self._skills / skill.name, ctx.at)
        self.config.crash("skills.moved")
        skill.record.update(
            state="active" if after == "pinned" else after,
            pinned=after == "pinned",
            archived_at=_iso(ctx.at) if after == "archived" else None,
            **{_MARK: {"at": ctx.at, "event": ctx.event_id}},
        )

    def _read(self, usage: Mapping[str, Any]) -> dict[str, Skill]:
        """Return the skills that Hermes lets a curator have; one in use hides an archived one."""
        archived = sorted(self._skills.glob(".archive/*/SKILL.md"))
        hidden = re.compile(r"/\.|/(venv|node_modules|site-packages|__pycache__)/").search
        used = [path for path in self._skills.rglob("SKILL.md") if not hidden(self._below(path))]
        skills = (_skill(path, usage) for path in (*archived, *used))
        return {skill.name: skill for skill in skills if skill is not None}

    def _below(self, path: Path) -> str:
        return f"/{path.relative_to(self._skills)}"

    # -- Hermes's record of use ---------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock under which Hermes changes its record."""
        with (self._skills / ".usage.json.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _usage(self) -> dict[str, Any]:
        return _json_table(self._skills / ".usage.json")

    def _write(self, usage: Mapping[str, Any]) -> None:
        """Write the record as Hermes does: whole, or not at all."""
        target = self._skills / ".usage.json"
        made = self._skills / ".usage_memorybus.tmp"
        made.write_text(json.dumps(usage, indent=2, sort_keys=True, ensure_ascii=False), "utf-8")
        made.chmod(target.stat().st_mode)
        os.replace(made, target)


_DEEDS = ("used", "viewed", "patched")


def _skill(path: Path, usage: Mapping[str, Any]) -> Skill | None:
    """Return the skill of a SKILL.md, if an agent wrote it and a directory can have its name."""
    head = _head(path)
    name = head.get("name") or path.parent.name
    record = usage.get(name)
    if not (isinstance(record, dict) and _NAME.fullmatch(name)):
        return None
    if record.get("created_by") != "agent" and record.get("agent_created") is not True:
        return None
    return Skill(name, path.parent, head.get("description", ""), record)


def _head(path: Path) -> dict[str, str]:
    """Return the single-line fields between the first two ``---`` of a SKILL.md."""
    try:
        text = path.read_text("utf-8-sig", errors="replace")[:_HEAD_CHARS]
    except OSError:
        return {}
    fields = (
        line.partition(":") for line in text.partition("---")[2].partition("\n---")[0].split("\n")
    )
    return {key.strip(): value.strip().strip("\"'") for key, _, value in fields}


def _move(folder: Path, target: Path, at: int) -> None:
    """Move a directory; where one lies already, add the time to the name, as Hermes does."""
    target.parent.mkdir(exist_ok=True)
    if target.exists():
        target = target.with_name(f"{target.name}-{_time(at):%Y%m%d%H%M%S}")
    folder.rename(target)
    if target.parent.name == ".archive":
        os.utime(target, ns=(at * 1_000_000, at * 1_000_000))  # `hermes curator purge` goes by it


def _scheduled(path: Path) -> frozenset[str]:
    """Return the skills that cron jobs name; Hermes never archives these."""
    named = [
        name
        for job in _list(_json_table(path).get("jobs"))
        if isinstance(job, dict)
        for name in (job.get("skill"), *_list(job.get("skills")))
    ]
    return frozenset(Path(str(name).removesuffix("/SKILL.md")).name for name in named if name)


def _json_table(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _ageing(state: object) -> MemoryState:
    return "stale" if state == "stale" else "active"


def _ms(stamp: object) -> int:
    try:
        time = datetime.fromisoformat(str(stamp))
    except ValueError:
        return 0
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _time(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)


def _iso(at: int) -> str:
    return _time(at).isoformat()
