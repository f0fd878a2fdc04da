"""Finds out what a worker serves now: the instances it was given, and copies of them."""

import logging
from collections.abc import Collection, Mapping, Sequence

import msgspec
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.events import ContextCompressing
from memorybus.query.ranges import WHOLE
from memorybus.redis.keys import Keys
from memorybus.registry.instances import (
    Instance,
    InstancePause,
    Instances,
    InstancesView,
    RetryRequest,
    describe_ignored,
    ignored_entries,
    is_live_instance,
    lasting_pause,
    live_name,
    prepared_copy,
)
from memorybus.registry.lanes import LaneKeys
from memorybus.registry.rebuild_lock import running_rebuilds
from memorybus.registry.roster import ProviderInfo
from memorybus.registry.tools import MOST_BYTES, DeclaredTools
from memorybus.text.redact import describe_error, one_line
from memorybus_providers.base import MemoryProvider
from redis import Redis

from memorybus_workers.hosting.instances import make_in_role
from memorybus_workers.lanes.context import Role

_log = logging.getLogger("memorybus")


class ServedInstances:
    """The instances of one worker. Belongs to one thread."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        redis: Redis,
        configured: Mapping[str, MemoryProvider],
        among: Sequence[str],
        only: str = "",
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._only = only
        self._redis = redis
        self._keys = Keys(settings.namespace)
        self._instances = Instances(redis, self._keys)
        self._lanes = LaneKeys(redis, settings)
        self._configured = infos_of(settings, configured, among)
        self._made: dict[str, tuple[Role, ProviderInfo | str]] = {}
        self._ignored: tuple[str, ...] = ()
        # the tools of the instances that agents know
        self.tools: Mapping[str, DeclaredTools] = tools_of(configured)
        # what is registered about each, copies last
        self.infos: Mapping[str, ProviderInfo] = self._configured
        # how each is run now; those with nothing more to do are left out
        self.roles: Mapping[str, Role] = {name: Role(name) for name in configured}
        self.paused: frozenset[str] = frozenset()  # the instances whose lanes are paused
        self.dropped: tuple[Instance, ...] = ()  # the copies that are to be removed
        self.failing: Mapping[str, str] = {}  # the copies that cannot be made, and why
        # the instances with requests of operators about their dead letters
        self.redo: frozenset[str] = frozenset()
        # the instances whose waiting events an operator wants retried now; the code that does so
        # empties it
        self.retries: set[str] = set()
        self._retry_requests: Mapping[str, RetryRequest] | None = None
        # whether a command that rebuilds or verifies one of them waits for this worker
        self.hurried = False

    def refresh(self) -> None:
        """Find out which copies are new, changed or dropped, and which instances are paused."""
        view = self._instances.read_view(redo=tuple(self.infos))
        self._log_ignored(view)
        ours = [instance for instance in view.all.values() if self._is_ours(instance)]
        copies = {instance.name: instance for instance in ours if not instance.dropped}
        providers = {
            name: self._info(instance, _role(instance, view)) for name, instance in copies.items()
        }
        known = {name: info for name, info in providers.items() if isinstance(info, ProviderInfo)}
        self.failing = {name: why for name, why in providers.items() if isinstance(why, str)}
        filled = {
            name: _role(copies[name], view) for name in known if not self._has_ended(copies[name])
        }
        self._made = {name: kept for name, kept in self._made.items() if name in copies}
        self.infos = self._configured | known
        self.roles = {name: self._configured_role(name, view) for name in self._configured} | filled
        # After the look, so that the command that made a copy is seen with it.
        busy = running_rebuilds(self._redis, self._keys, self._configured)
        self._drop_orphaned_copies(view, busy)
        self.paused = frozenset(view.pauses) - self._lift_orphaned_pauses(view, busy)
        self.dropped = tuple(instance for instance in ours if instance.dropped)
        self.redo = view.redo
        self._note_new_retries(view.retries)
        self.hurried = bool(busy)

    def _note_new_retries(self, requests: Mapping[str, RetryRequest]) -> None:
        """Note which retry requests are new; those from before this worker began are ignored."""
        before = requests if self._retry_requests is None else self._retry_requests
        self._retry_requests = requests
        self.retries |= {name for name, request in requests.items() if before.get(name) != request}

    def provider_of(self, name: str) -> str:
        """Return the instance of the settings that an instance is, or is a copy of."""
        info = self.infos.get(name)
        return info.copy_of or name if info else name

    def is_copy(self, name: str) -> bool:
        """Return whether an instance is a copy: recalls never ask it by its name."""
        return name not in self._configured

    def _drop_orphaned_copies(self, view: InstancesView, busy: Collection[str]) -> None:
        """Mark copies as dropped if the verification that made them is gone: nobody else would."""
        for instance in view.all.values():
            gone = (
                instance.provider in self._configured
                and instance.provider not in busy
                and not instance.dropped
            )
            dropped = msgspec.structs.replace(instance, dropped=True)
            if instance.purpose == "verify" and gone and self._instances.change(instance, dropped):
                _log.warning(
                    "%s is removed: the verification that made it is gone",
                    instance.name,
                    extra={"provider": instance.name},
                )

    def _lift_orphaned_pauses(self, view: InstancesView, busy: Collection[str]) -> set[str]:
        """Lift the pause of each serving instance whose command is gone; return these instances."""
        serving = {
            live_name(provider, view.live) for provider in self._configured if provider not in busy
        }
        left = {name: pause for name, pause in view.pauses.items() if prepared_copy(pause)}
        freed = {name for name in serving & left.keys() if self._lift_pause(name, left[name])}
        for name in freed:
            _log.warning(
                "%s continues: a command paused it and is gone (%s)",
                name,
                left[name].reason,
                extra={"provider": name},
            )
        return freed

    def _lift_pause(self, name: str, pause: InstancePause) -> bool:
        """Lift exactly the pause that was seen; return whether no other pause remains."""
        was = self._instances.change_pause(
            name, lambda current: lasting_pause(current) if current == pause else current
        )
        return was == pause and pause.under is None

    def _is_ours(self, instance: Instance) -> bool:
        if not instance.is_copy or instance.name in self._settings.providers:
            return False  # what the settings name is no copy, whatever Redis says
        return instance.name == self._only if self._only else instance.provider in self._configured

    def _log_ignored(self, view: InstancesView) -> None:
        """Log once which records are ignored; `doctor` shows them too."""
        found = ignored_entries(view, self._settings.providers)
        if found and found != self._ignored:
            _log.warning(
                "%s: %s; see: memorybus doctor", self._keys.instances, describe_ignored(found)
            )
        self._ignored = found

    def _configured_role(self, name: str, view: InstancesView) -> Role:
        late = view.all.get(name)
        plan = late.plan if late is not None and not late.is_copy else WHOLE
        return Role(name, {}, plan, is_live_instance(name, name, view.live))

    def _info(self, instance: Instance, role: Role) -> ProviderInfo | str:
        """Return what is registered about a copy, or why it cannot be made (logged once)."""
        known = self._made.get(instance.name)
        if known is None or known[0] != role:
            known = self._made[instance.name] = (role, self._try_to_make(instance, role))
        return known[1]

    def _try_to_make(self, instance: Instance, role: Role) -> ProviderInfo | str:
        try:
            provider = make_in_role(self._settings, instance.name, role, self._clock)
        except Exception as error:  # one copy's options must not stop the others
            why = str(error) if isinstance(error, MemoryBusError) else describe_error(error)
            _log.error(
                "copy %s of %s is not served: %s",
                instance.name,
                instance.provider,
                why,
                extra={"provider": instance.name},
            )
            return one_line(f"it cannot be made here: {why}", self._settings.secrets)
        order = (
            self._configured[instance.provider].order
            if instance.provider in self._configured
            else 0
        )
        kind = self._settings.provider_kind(instance.provider)
        return info_of(kind, provider, order, instance.provider)

    def _has_ended(self, instance: Instance) -> bool:
        """Whether a copy has all events of its plan, and no request of an operator is open."""
        if any(
            instance.plan.end(partition) is None for partition in range(self._settings.partitions)
        ):
            return False
        lanes = enumerate(self._lanes.states(instance.name))
        there = all(instance.plan.ended(partition, lane.n) for partition, lane in lanes)
        return there and not self._lanes.has_dead_letter_requests(instance.name)


def _role(instance: Instance, view: InstancesView) -> Role:
    answering = is_live_instance(instance.name, instance.provider, view.live)
    return Role(instance.provider, instance.options, instance.plan, answering)


def infos_of(
    settings: Settings, providers: Mapping[str, MemoryProvider], among: Sequence[str]
) -> dict[str, ProviderInfo]:
    return {
        name: info_of(settings.provider_kind(name), provider, among.index(name))
        for name, provider in providers.items()
    }


def info_of(kind: str, provider: MemoryProvider, order: int, copy_of: str = "") -> ProviderInfo:
    return ProviderInfo(
        kind=kind,
        delivery=provider.delivery,
        placement=provider.placement,
        order=order,
        recall=provider.capabilities.recall,
        as_of=provider.capabilities.as_of,
        compresses=ContextCompressing in provider.capabilities.handles,
        prompts=type(provider).system_prompt_block is not MemoryProvider.system_prompt_block,
        examines=type(provider).health is not MemoryProvider.health,
        digests=type(provider).digest is not MemoryProvider.digest,
        exports=provider.capabilities.exports,
        retracts=provider.capabilities.retracts,
        curates=provider.capabilities.curates,
        note=provider.note,
        copy_of=copy_of,
    )


def tools_of(providers: Mapping[str, MemoryProvider]) -> dict[str, DeclaredTools]:
    """Return the tools of those instances that have some; the instances need not be open."""
    return {
        name: DeclaredTools(schemas, tuple(sorted(provider.capabilities.reading_tools)))
        for name, provider in providers.items()
        if provider.capabilities.tools and (schemas := _schemas(name, provider))
    }


def _schemas(name: str, provider: MemoryProvider) -> tuple[object, ...]:
    """Return an instance's schemas as JSON values; none if they cannot be published."""
    try:
        body = msgspec.json.encode(list(provider.get_tool_schemas()))
        if len(body) <= MOST_BYTES:
            return msgspec.json.decode(body, type=tuple[object, ...])
        why = f"its schemas have {len(body)} bytes, and {MOST_BYTES} are the most"
    except Exception as error:  # its lanes are served, whatever the provider raises here
        why = describe_error(error)
    _log.warning(
        "provider %s is registered without its tools: %s", name, why, extra={"provider": name}
    )
    return ()
