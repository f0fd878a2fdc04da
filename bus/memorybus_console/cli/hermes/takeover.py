"""``memorybus hermes setup``: takes over the providers that Hermes has."""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from memorybus.errors import ConfigError
from memorybus.text.redact import masked
from memorybus_hermes.home import HermesHome, user_home
from memorybus_hermes.install import install, previous
from memorybus_hermes.install.previous import PreviousProvider

from memorybus_console.cli.options import Common
from memorybus_console.cli.providers.dialogue import Dialogue
from memorybus_console.cli.providers.provider_setup import Setup
from memorybus_console.views.output import Output
from memorybus_console.views.safe import one_line, visible

if TYPE_CHECKING:
    from memorybus.config.settings import Settings
    from memorybus.processes.reports import KindOffer

HOSTED: Final = "hermes:"

_SPELLINGS: Final[Mapping[str, Sequence[str]]] = {
    "base_url": ("base_url", "url", "api_url", "host"),
    "workspace": ("workspace", "workspace_id", "tenant"),
    "bank": ("bank", "bank_id"),
    "user_id": ("user_id", "peer"),
    "mode": ("mode",),
}
"""For each setting of Hermes's plugins the names that a provider's option for it may have."""


class Takeover:
    """Sets up the providers that Hermes had, one after the other.

    Args:
        python: the Python that runs Hermes; None to find it.
        common: the options that lead to the settings.
        output: where results are shown.
    """

    def __init__(
        self, home: HermesHome, python: str | None, common: Common, output: Output
    ) -> None:
        self.home = home
        self._python = python
        self._common = common
        self._output = output

    def run(self, kinds: Sequence[str], dialogue: Dialogue | None) -> list[dict[str, Any]]:
        """Take over the providers that `kinds` name; if there are none, ask a person.

        Raises:
            ConfigError: Hermes has no such provider.
            MemoryBusError: a provider does not work; nothing is written for it.
        """
        found = previous.read_previous(self.home, user_home())
        if kinds:
            return [done for kind in kinds for done in self._take_over(found, kind)]
        return self._ask(found, dialogue) if dialogue else []

    def _ask(self, found: Sequence[PreviousProvider], dialogue: Dialogue) -> list[dict[str, Any]]:
        """Ask for each provider whether and how to take it over, and set it up."""
        from memorybus.processes.commands import list_kinds

        settings = self._common.settings()
        native = {one.kind for one in list_kinds(settings) if not one.missing}
        done = []
        for one in found:
            if _is_taken(settings, one):
                continue
            dialogue.say(describe_previous(one))
            choices = f"{HOSTED}{one.plugin}, " + (
                f"{one.plugin}, " if one.plugin in native else ""
            )
            dialogue.say(
                f"  {HOSTED}{one.plugin} runs Hermes's plugin as it is, with its memories", "dim"
            )
            answer = dialogue.ask(f"Take it over? ({choices}no)", f"{HOSTED}{one.plugin}")
            if answer not in ("no", "n"):
                done += self._take_over(found, answer, dialogue)
        return done

    def _take_over(
        self, found: Sequence[PreviousProvider], kind: str, dialogue: Dialogue | None = None
    ) -> list[dict[str, Any]]:
        """Set up one provider: Hermes's plugin (``hermes:NAME``), or the bus's own provider.

        Raises:
            ConfigError: Hermes has no such provider.
            MemoryBusError: the provider does not work; nothing is written.
        """
        from memorybus_console.operations.providers.setup import Target, find_offers

        one = next((known for known in found if kind in takeover_kinds(known)), None)
        if one is None:
            listed = ", ".join(way for known in found for way in takeover_kinds(known)) or "none"
            raise ConfigError(f"this Hermes has no {kind!r} to take over; there are: {listed}")
        settings, plugin = self._common.settings(), one.plugin
        name = plugin if plugin not in settings.providers else f"hermes-{plugin}"
        flow = Setup(self._common, self._output, dialogue)
        if kind.startswith(HOSTED):
            return flow.run([f"{name}={self._hosted_kind(plugin)}"], self._hosted_options(), ())
        offer = find_offers(settings, [Target(name, kind)])[kind]
        secret = _secret_options(offer, one)
        lines = io.StringIO("\n".join(one.secrets.values()) + "\n")
        return flow.run([f"{name}={kind}"], native_options(offer, one), secret, lines)

    def _hosted_kind(self, plugin: str) -> str:
        own = self.home.path / "plugins" / plugin
        return f"{HOSTED}{own if (own / '__init__.py').is_file() else plugin}"

    def _hosted_options(self) -> list[str]:
        python = self._python or install.hermes_python(lambda _: None) or install.hermes_python()
        options = [f"hermes_home={self.home.path}"]
        return [*options, f"hermes_python={python}"] if python else options


def show_commands(found: Sequence[PreviousProvider], output: Output) -> None:
    """Show each provider that was found, and the command that takes it over."""
    for provider in found:
        output.show(describe_previous(provider))
        command = f"memorybus hermes setup --take-over {HOSTED}{provider.plugin}"
        output.show(visible(f"    {command}"))


def native_kind(one: PreviousProvider) -> str:
    """Return the bus's own kind of provider for the same backend; "" if there is none (pure).

    Only Hermes's plugin reaches Mem0's cloud and its library in Hermes's process.
    """
    if one.plugin == "mem0":
        return "mem0-server" if one.settings.get("base_url") else ""
    return one.plugin if one.plugin in ("hindsight", "honcho") else ""


def takeover_kinds(one: PreviousProvider) -> list[str]:
    """Return the kinds that can take a provider over (pure)."""
    return list(filter(None, (f"{HOSTED}{one.plugin}", native_kind(one))))


def describe_previous(one: PreviousProvider) -> str:
    """Return a provider that Hermes has configured as one line, without secrets."""
    facts = [f"{name} {one_line(masked(value), 100)}" for name, value in one.settings.items()]
    keys = [f"a key ({name})" for name in one.secrets]
    what = "Hermes's memory provider is" if one.active else "Hermes has"
    return visible(f"{what} {one.plugin} ({', '.join([*facts, *keys, one.source])})")


def previous_json(one: PreviousProvider) -> dict[str, Any]:
    """Return a provider that Hermes has configured as ``--json`` shows it, without secrets."""
    return {
        "plugin": one.plugin,
        "source": one.source,
        "active": one.active,
        "settings": {name: masked(value) for name, value in one.settings.items()},
        "secrets": sorted(one.secrets),
    }


def native_options(offer: "KindOffer", one: PreviousProvider) -> list[str]:
    """Return Hermes's settings as options of a provider, with the names of its schema (pure)."""
    keys = {option.key for option in offer.options or ()}
    words = []
    for name, value in one.settings.items():
        key = next((key for key in _SPELLINGS.get(name, ()) if key in keys), None)
        if key:
            words.append(f"{key}={value}")
    return words


def _secret_options(offer: "KindOffer", one: PreviousProvider) -> list[str]:
    options = [option.key for option in offer.options or () if option.secret]
    return options[:1] if one.secrets else []


def _is_taken(settings: "Settings", one: PreviousProvider) -> bool:
    kinds = {settings.provider_kind(name) for name in settings.providers}
    hosted = {kind.removeprefix(HOSTED).rpartition("/")[2] for kind in kinds if HOSTED in kind}
    own = native_kind(one)
    return one.plugin in hosted or (own != "" and own in kinds)
