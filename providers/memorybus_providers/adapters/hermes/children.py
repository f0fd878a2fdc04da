"""The child processes of one instance: one for each HERMES_HOME, and a bounded number at a time."""

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memorybus_providers.adapters.hermes.homes import (
    PluginHome,
    is_of_own_agent,
    make_home,
    mark_of,
    place_of,
    plain_id,
    profile_of,
    user_id_of,
)
from memorybus_providers.adapters.hermes.launch import Launch, find_python, hermes_home
from memorybus_providers.adapters.hermes.link import HostLink
from memorybus_providers.adapters.hermes.options import PluginOptions
from memorybus_providers.adapters.hermes.plugins import KnownPlugin
from memorybus_providers.base import ProviderConfig
from memorybus_providers.errors import Permanent
from memorybus_providers.owners import Owner


class Children:
    """Links to children, which are made when first needed. Belongs to one thread.

    Args:
        options: the options read from it.
        directory: the plugin's directory, if Hermes does not find it by name.
        known: what is known of the plugin.
    """

    def __init__(
        self,
        config: ProviderConfig,
        options: PluginOptions,
        plugin: str,
        directory: str,
        known_plugin: KnownPlugin,
    ) -> None:
        self._clock = config.clock
        self._options = options
        self._plugin = plugin
        self._directory = options.directory or directory
        self._known = known_plugin
        self._links: OrderedDict[PluginHome, HostLink] = OrderedDict()
        self._source = options.home or _home_of(config)
        own = config.home / "hermes" if config.stands_for else self._source
        self.own_place = PluginHome(config.home, own)  # the place of the instance's own owner

    def place_for(self, owner: Owner) -> PluginHome:
        """Return the place at which an owner's memories are kept.

        Raises:
            Permanent: the memories would be mixed with those of another owner.
        """
        if not self.serves(owner):
            raise Permanent(
                f"the plugin {self._plugin} has one memory for everybody, and this instance is "
                f"{_describe_owner(self._options.owner)}: configure one for "
                f"{_describe_owner(owner)} with an account of its own, or set apart = false to "
                "let everybody share"
            )
        placed = {"home": place_of, "profile": profile_of}.get(self._known.separation)
        if placed is None or not self._options.apart:
            return self.own_place
        return placed(self.own_place, owner, self._options.owner)

    def serves(self, owner: Owner) -> bool:
        """Return whether this instance may keep an owner's memories."""
        shared = self._known.separation == "no" and self._options.apart
        return not shared or owner == self._options.owner

    def user_id(self, owner: Owner) -> str:
        """Return the ``user_id`` that the plugin gets for an owner; "" for none."""
        by_plugin = self._known.separation == "plugin" and self._options.apart
        return user_id_of(owner, self._options.owner) if by_plugin else plain_id(owner)

    def refusal(self, owner: Owner, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return why a tool call would reach another person's memories; "" if it would not."""
        if not self._options.apart:
            return ""
        peer = str(arguments.get("peer") or "user")
        if self._known.peers and peer not in self._known.peers:
            return f"peer {peer[:40]!r} is another's; ask for {sorted(self._known.peers)}"
        if tool in self._known.common_tools and owner.user != self._options.user:
            return f"{tool} reaches what all persons share, so it serves this instance's own only"
        return ""

    def owner_for_child(self, owner: Owner) -> dict[str, Any]:
        """Return what the child must know to keep an owner apart; see `child.separation`."""
        if not self._options.apart:
            return {}
        first = self._options.owner
        return {
            "name": _describe_owner(owner),
            "mark": mark_of(owner),
            "stranger": owner.user != first.user,
            "foreign": not is_of_own_agent(owner, first),
        }

    def ask(
        self,
        place: PluginHome,
        request: Mapping[str, Any],
        seconds: float,
        *,
        ends_hung: bool = False,
    ) -> Any:
        """Send a request to the child of a place; see `HostLink.ask`."""
        return self._link(place).ask(request, seconds, ends_hung=ends_hung)

    def close(self) -> None:
        """Close the links to all children."""
        while self._links:
            self._links.popitem()[1].close()

    def _link(self, place: PluginHome) -> HostLink:
        if place not in self._links:
            while len(self._links) >= self._options.processes:
                self._links.popitem(last=False)[1].close()
            make_home(place.home, self._source, self._plugin)
            self._links[place] = HostLink(self._launch(place), self._clock)
        self._links.move_to_end(place)
        return self._links[place]

    def _launch(self, place: PluginHome) -> Launch:
        options = self._options
        return Launch(
            python=find_python(options.hermes_python),
            place=place.directory,
            home=place.home,
            person=options.home or hermes_home(),
            plugin=self._plugin,
            directory=self._directory,
            settle=options.settle,
            instances=options.instances,
            idle=options.idle,
            env=options.env,
        )


def _describe_owner(owner: Owner) -> str:
    where = f" in {owner.workspace!r}" if owner.workspace else ""
    return f"that of {owner.user!r} with {owner.agent!r}{where}"


def _home_of(config: ProviderConfig) -> Path:
    """Return the HERMES_HOME of an instance if its options name none.

    A replay has the configuration of the instance that it replays, but its own memories.
    """
    return config.home.with_name(config.stands_for or config.home.name) / "hermes"
