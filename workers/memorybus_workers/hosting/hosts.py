"""Starts and stops a worker's provider hosts, and removes dropped copies that nobody serves."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
from memorybus.config.settings import Settings
from memorybus.errors import ProviderHung
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Homes, delete_state, home_elsewhere
from memorybus.registry.instances import Instance, Instances, RetryRequests
from memorybus.registry.lanes import LaneKeys
from memorybus.registry.roster import Roster, WorkerInfo
from memorybus.testing import crash_points
from redis import Redis

from memorybus_workers.hosting.host import ProviderHost
from memorybus_workers.lanes.context import InstanceContext, Role, WorkerContext

_log = logging.getLogger("memorybus")


class _Leaving(msgspec.Struct, frozen=True):
    """A host that was stopped, and the time (monotonic) until which it may take to end."""

    host: ProviderHost
    until: float


class Hosts:
    """The hosts of one worker. Belongs to the worker's thread."""

    def __init__(self, worker: WorkerContext, patience: float) -> None:
        self.all: Sequence[ProviderHost] = ()  # the hosts at work
        self._roles: dict[str, Role] = {}
        self._worker = worker
        self._clock = worker.clock
        self._patience = patience
        self._leaving: list[_Leaving] = []

    def serve(self, roles: Mapping[str, Role]) -> None:
        """Serve these instances in these roles, and no others.

        If the role of an instance has changed, its host ends first, and a later call starts a new
        one: two hosts of one instance never run at once. This method does not wait.
        """
        self._drop_ended()
        kept: list[ProviderHost] = []
        gone: list[ProviderHost] = []
        for host in self.all:
            stays = roles.get(host.name) == self._roles[host.name]
            (kept if stays else gone).append(host)
        for host in gone:
            self._stop(host)
        hosts = {host.name: host for host in kept}
        leaving = {one.host.name for one in self._leaving}
        for name, role in roles.items():
            if name not in hosts and name not in leaving:
                hosts[name] = self._start(name, role)
        self.all = [hosts[name] for name in roles if name in hosts]

    def request_redo(self, names: Collection[str]) -> None:
        for host in self.all:
            if host.name in names:
                host.request_redo()

    def retry_now(self, names: Collection[str]) -> None:
        for host in self.all:
            if host.name in names:
                host.retry_now()

    def is_current(self, name: str, role: Role | None) -> bool:
        """Return whether an instance runs in this role; if not, it must not get lanes any more."""
        return self._roles.get(name) == role

    def _start(self, name: str, role: Role) -> ProviderHost:
        crash = crash_points(self._worker.settings.crash_at)
        host = ProviderHost(InstanceContext(self._worker, name, role, crash))
        self._roles[name] = role
        host.start()
        return host

    def _stop(self, host: ProviderHost) -> None:
        host.stop()
        self._leaving.append(_Leaving(host, self._clock.monotonic() + self._patience))

    def _drop_ended(self) -> None:
        now = self._clock.monotonic()
        for one in self._leaving:
            if one.host.alive and now >= one.until:
                one.host.give_up()  # its call hangs; what it still does is fenced (G5)
        self._leaving = [one for one in self._leaving if one.host.alive and now < one.until]

    @property
    def names(self) -> set[str]:
        return {host.name for host in self.all} | {one.host.name for one in self._leaving}

    def watch(self, redis: Redis) -> dict[str, ProviderHung]:
        """Replace what hangs; return the errors of instances with too many hanging threads."""
        spent: dict[str, ProviderHung] = {}
        for host in self.all:
            try:
                host.watch(redis)
            except ProviderHung as error:
                spent[host.name] = error
        return spent

    def stop(self) -> None:
        every = [*self.all, *(one.host for one in self._leaving)]
        for host in every:
            host.stop()
        for host in every:
            host.join()


def remove_dropped(
    settings: Settings,
    redis: Redis,
    dropped: Sequence[Instance],
    running: Collection[str],
    alive: Sequence[WorkerInfo],
) -> None:
    """Remove the dropped copies that no worker serves, and whose state is not on another host."""
    busy = set(running) | {name for worker in alive for name in worker.providers}
    homes = Homes(redis, Keys(settings.namespace)).all() if dropped else {}
    for instance in dropped:
        lanes = LaneKeys(redis, settings)
        owned = any(lane.owned for lane in lanes.states(instance.name))
        if (
            instance.name not in busy
            and not owned
            and home_elsewhere(homes.get(instance.name), settings) is None
        ):
            _remove(settings, redis, lanes, instance)


def _remove(settings: Settings, redis: Redis, lanes: LaneKeys, instance: Instance) -> None:
    """Remove a copy while its record exists: a worker that was suspended harms no later copy."""
    keys, name = Keys(settings.namespace), instance.name
    instances = Instances(redis, keys)
    steps: tuple[Callable[[], object], ...] = (
        lambda: delete_state(settings, name),
        lambda: lanes.remove(name),
        lambda: Roster(redis, keys).forget(name),
        lambda: Homes(redis, keys).forget(name),
        lambda: RetryRequests(redis, keys).forget(name),
        lambda: instances.resume(name),
    )
    for step in steps:
        if instances.get(name) != instance:
            return  # another worker was first, and another copy may have the name by now
        step()
    if instances.remove(name, instance):
        _log.info("copy %s of %s is removed, with its state", name, instance.provider)
