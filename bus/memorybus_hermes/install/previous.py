"""Reads which memory providers a Hermes has configured, so that the bus can take them over.

It reads the files that Hermes 0.19.0 and its plugins (``plugins.memory``) read: ``honcho.json``,
``mem0.json`` and ``hindsight/config.json`` in the home, the places that these plugins share with
other programs, and ``.env``. It writes nothing and shows no secret.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from memorybus_hermes.home import PLUGIN, HermesHome, active_provider

_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>.*?)\s*")
_HOST = "hermes"
_HINDSIGHT_CLOUD = "https://api.hindsight.vectorize.io"
_HINDSIGHT = dict.fromkeys(("local_embedded", "local_external"), "http://localhost:8888")
"""The plugin's default address of a server, by mode."""

_UNSAFE = re.compile(r"[^\w-]")


class PreviousProvider(msgspec.Struct, frozen=True):
    """A memory provider that Hermes has configured.

    Attributes:
        settings: those of ``base_url``, ``workspace``, ``bank``, ``user_id`` and ``mode`` that are
            configured.
    """

    plugin: str
    source: str
    active: bool = False
    settings: dict[str, str] = {}
    secrets: dict[str, str] = {}  # secret values by environment variable

    def __repr__(self) -> str:
        """Show the names of secrets, and never their values."""
        return f"PreviousProvider({self.plugin}, {self.source}, {sorted(self.secrets)})"


def read_previous(home: HermesHome, user_home: Path) -> list[PreviousProvider]:
    """Return the memory providers that a Hermes has configured, the active one first.

    Args:
        user_home: the person's home directory, where plugins share settings with other programs.
    """
    active = active_provider(home.config)
    env = _env(home.path / ".env")
    providers = [
        *_honcho(home, user_home, env),
        *_mem0(home, env),
        *_hindsight(home, user_home, env),
    ]
    known = [
        msgspec.structs.replace(provider, active=provider.plugin == active)
        for provider in providers
    ]
    if active not in ("", PLUGIN, *(provider.plugin for provider in known)):
        known.append(PreviousProvider(active, str(home.config), active=True))
    return sorted(known, key=lambda provider: not provider.active)


def _honcho(
    home: HermesHome, user_home: Path, env: Mapping[str, str]
) -> Iterator[PreviousProvider]:
    places = (
        home.path / "honcho.json",
        user_home / ".hermes" / "honcho.json",
        user_home / ".honcho" / "config.json",
    )
    for path in filter(Path.is_file, places):
        raw = _table(path)
        block = _host_block(raw, home.profile)
        if block or raw.get("enabled") is True or path == places[0]:
            facts = {
                "base_url": raw.get("baseUrl") or raw.get("base_url"),
                "workspace": block.get("workspace") or raw.get("workspace"),
                "user_id": block.get("peerName") or raw.get("peerName"),
            }
            key = block.get("apiKey") or raw.get("apiKey") or env.get("HONCHO_API_KEY")
            yield _provider("honcho", path, facts, {"HONCHO_API_KEY": key})
        return  # the first file that exists counts, as in the plugin


def _host_block(raw: Mapping[str, Any], profile: str) -> Mapping[str, Any]:
    """Return the table of a profile in `honcho.json`, as ``resolve_active_host`` finds it."""
    plain = profile in ("", "default", "custom")
    host = str(raw.get("defaultHost") or _HOST) if plain else f"{_HOST}_{_UNSAFE.sub('_', profile)}"
    hosts = raw.get("hosts")
    settings = hosts.get(host) if isinstance(hosts, dict) else None
    return settings if isinstance(settings, dict) else {}


def _mem0(home: HermesHome, env: Mapping[str, str]) -> Iterator[PreviousProvider]:
    path = home.path / "mem0.json"
    raw = _table(path)
    if raw or "MEM0_API_KEY" in env:
        facts = {
            "mode": raw.get("mode") or env.get("MEM0_MODE"),
            "base_url": raw.get("host") or env.get("MEM0_HOST"),
            "user_id": raw.get("user_id") or env.get("MEM0_USER_ID"),
        }
        key = raw.get("api_key") or env.get("MEM0_API_KEY")
        source = path if raw else home.path / ".env"
        yield _provider("mem0", source, facts, {"MEM0_API_KEY": key})


def _hindsight(
    home: HermesHome, user_home: Path, env: Mapping[str, str]
) -> Iterator[PreviousProvider]:
    places = (home.path / "hindsight" / "config.json", user_home / ".hindsight" / "config.json")
    path = next((place for place in places if _table(place)), home.path / ".env")
    raw = _table(path)
    if raw or {"HINDSIGHT_API_KEY", "HINDSIGHT_API_URL"} & env.keys():
        banks = raw.get("banks")
        bank = banks.get(_HOST) if isinstance(banks, dict) else None
        mode = raw.get("mode") or env.get("HINDSIGHT_MODE") or "cloud"
        facts = {
            "mode": mode,
            "base_url": raw.get("api_url")
            or env.get("HINDSIGHT_API_URL")
            or _HINDSIGHT.get(mode, _HINDSIGHT_CLOUD),
            "bank": raw.get("bank_id") or (bank.get("bankId") if isinstance(bank, dict) else ""),
        }
        key = raw.get("apiKey") or raw.get("api_key") or env.get("HINDSIGHT_API_KEY")
        yield _provider("hindsight", path, facts, {"HINDSIGHT_API_KEY": key})


def _provider(
    plugin: str, source: Path, facts: Mapping[str, Any], secrets: Mapping[str, Any]
) -> PreviousProvider:
    return PreviousProvider(plugin, str(source), False, _texts(facts), _texts(secrets))


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in values.items() if isinstance(value, str) and value}


def _table(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty one if the file cannot be read as such."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return {}


def _env(path: Path) -> dict[str, str]:
    """Return the variables of a ``.env`` file; none if the file cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    matches = filter(None, map(_LINE.fullmatch, lines))
    return {one["name"]: one["value"].strip("'\"") for one in matches if one["value"].strip("'\"")}
