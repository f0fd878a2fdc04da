"""``memorybus hermes setup``: takes over the providers that Hermes has."""

import io
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from memorybus.errors import ConfigError
from memorybus.text.display import one_line
from memorybus.text.redact import masked
from memorybus_hermes.home import HermesHome, user_home
from memorybus_hermes.install import install, previous
from memorybus_hermes.install.previous import PreviousProvider
from rich.text import Text

from memorybus_console.cli.options import Common
from memorybus_console.cli.providers.dialogue import Dialogue
from memorybus_console.cli.providers.provider_setup import SetUp, Setup
from memorybus_console.views.output import Output
from memorybus_console.views.render import line

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


class HermesHad(msgspec.Struct, frozen=True):
    """A memory provider that Hermes has configured, without its secrets."""

    plugin: str
    source: str
    active: bool
    settings: dict[str, str]
    secrets: list[str]


@dataclass
class Takeover:
    """Sets up the providers that Hermes had, one after the other.

    Args:
        python: the Python that runs Hermes; None to find it.
        output: where questions and trials are shown.
    """

    home: HermesHome
    python: str | None
    common: Common
    output: Output

    def run(
        self, kinds: Sequence[str], dialogue: Dialogue | None
    ) -> Generator[Text, None, list[SetUp]]:
        """Take over the providers that `kinds` name; if there are none, ask a person.

        It yields a line for each, and returns what was set up.
        """
        providers = previous.read_previous(self.home, user_home())
        if not kinds:
            return (yield from self._ask(providers, dialogue)) if dialogue else []
        done = []
        for kind in kinds:
            done += yield from self._take_over(providers, kind)
        return done

    def _ask(
        self, providers: Sequence[PreviousProvider], dialogue: Dialogue
    ) -> Generator[Text, None, list[SetUp]]:
        """Ask for each provider whether and how to take it over, and set it up."""
        from memorybus.processes.commands import list_kinds

        settings = self.common.settings()
        native = {offer.kind for offer in list_kinds(settings) if not offer.missing}
        done = []
        for provider in providers:
            if _is_taken(settings, provider):
                continue
            dialogue.say(describe_previous(provider))
            hosted, own = f"{HOSTED}{provider.plugin}", provider.plugin
            choices = f"{hosted}, " + (f"{own}, " if own in native else "")
            dialogue.say(f"  {hosted} runs Hermes's plugin as it is, with its memories", "dim")
            answer = dialogue.ask(f"Take it over? ({choices}no)", hosted)
            if answer not in ("no", "n"):
                done += yield from self._take_over(providers, answer, dialogue)
        return done

    def _take_over(
        self, providers: Sequence[PreviousProvider], kind: str, dialogue: Dialogue | None = None
    ) -> Generator[Text, None, list[SetUp]]:
        """Set up one provider: Hermes's plugin (``hermes:NAME``), or the bus's own provider."""
        from memorybus_console.operations.providers.setup import Target, find_offers

        chosen = next((each for each in providers if kind in takeover_kinds(each)), None)
        if chosen is None:
            listed = ", ".join(way for each in providers for way in takeover_kinds(each)) or "none"
            raise ConfigError(f"this Hermes has no {kind!r} to take over; there are: {listed}")
        settings, plugin = self.common.settings(), chosen.plugin
        name = plugin if plugin not in settings.providers else f"hermes-{plugin}"
        flow = Setup(self.common, self.output, dialogue)
        if kind.startswith(HOSTED):
            words = [f"{name}={self._hosted_kind(plugin)}"]
            return (yield from flow.run(words, self._hosted_options(), ()))
        offer = find_offers(settings, [Target(name, kind)])[kind]
        secret = _secret_options(offer, chosen)
        lines = io.StringIO("\n".join(chosen.secrets.values()) + "\n")
        options = native_options(offer, chosen)
        return (yield from flow.run([f"{name}={kind}"], options, secret, lines))

    def _hosted_kind(self, plugin: str) -> str:
        own = self.home.path / "plugins" / plugin
        return f"{HOSTED}{own if (own / '__init__.py').is_file() else plugin}"

    def _hosted_options(self) -> list[str]:
        python = self.python or install.hermes_python(lambda _: None) or install.hermes_python()
        options = [f"hermes_home={self.home.path}"]
        return [*options, f"hermes_python={python}"] if python else options


def takeover_lines(providers: Sequence[PreviousProvider]) -> Iterator[Text]:
    """Yield each provider that Hermes has, and the command that takes it over."""
    for provider in providers:
        yield line(describe_previous(provider))
        yield line(f"    memorybus hermes setup --take-over {HOSTED}{provider.plugin}")


def native_kind(provider: PreviousProvider) -> str:
    """Return the bus's own kind of provider for the same backend; "" if there is none (pure).

    Only Hermes's plugin reaches Mem0's cloud and its library in Hermes's process.
    """
    if provider.plugin == "mem0":
        return "mem0-server" if provider.settings.get("base_url") else ""
    return provider.plugin if provider.plugin in ("hindsight", "honcho") else ""


def takeover_kinds(provider: PreviousProvider) -> list[str]:
    return list(filter(None, (f"{HOSTED}{provider.plugin}", native_kind(provider))))


def describe_previous(provider: PreviousProvider) -> str:
    """Return a provider that Hermes has configured as one line, without secrets."""
    facts = [f"{name} {one_line(masked(value), 100)}" for name, value in provider.settings.items()]
    keys = [f"a key ({name})" for name in provider.secrets]
    what = "Hermes's memory provider is" if provider.active else "Hermes has"
    return f"{what} {provider.plugin} ({', '.join([*facts, *keys, provider.source])})"


def without_secrets(provider: PreviousProvider) -> HermesHad:
    """Return a provider that Hermes has configured with the names of its secrets alone."""
    return HermesHad(
        plugin=provider.plugin,
        source=provider.source,
        active=provider.active,
        settings={name: masked(value) for name, value in provider.settings.items()},
        secrets=sorted(provider.secrets),
    )


def native_options(offer: "KindOffer", provider: PreviousProvider) -> list[str]:
    """Return Hermes's settings as options of a provider, with the names of its schema (pure)."""
    keys = {option.key for option in offer.options or ()}
    words = []
    for name, value in provider.settings.items():
        key = next((key for key in _SPELLINGS.get(name, ()) if key in keys), None)
        if key:
            words.append(f"{key}={value}")
    return words


def _secret_options(offer: "KindOffer", provider: PreviousProvider) -> list[str]:
    options = [option.key for option in offer.options or () if option.secret]
    return options[:1] if provider.secrets else []


def _is_taken(settings: "Settings", provider: PreviousProvider) -> bool:
    kinds = {settings.provider_kind(name) for name in settings.providers}
    hosted = {kind.removeprefix(HOSTED).rpartition("/")[2] for kind in kinds if HOSTED in kind}
    own = native_kind(provider)
    return provider.plugin in hosted or (own != "" and own in kinds)
