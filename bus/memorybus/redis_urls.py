"""Redis URLs: refused if unreadable, shown without credentials, compared by where they lead."""

from urllib.parse import parse_qsl, urlencode, urlsplit

from memorybus.errors import ConfigError

_SCHEMES = ("redis://", "rediss://", "unix://")
_SECRETS = ("password", "username")


def check_url(name: str, url: str) -> None:
    """Refuse a URL that the Redis client could not read; its text may hold a password."""
    if url and not url.startswith(_SCHEMES):
        raise ConfigError(f"{name} must begin with {', '.join(_SCHEMES)}")
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ConfigError(
            f"{name}: the port must be a number, and a password must be percent-encoded"
        ) from None


def place_of(url: str) -> str:
    """Return where a URL leads to, without credentials and options, which may change."""
    parts = urlsplit(url)
    return f"{(parts.hostname or '').lower()}:{parts.port or ''}{parts.path}"


def redacted(url: str) -> str:
    """Return a Redis URL without its credentials, wherever they stand."""
    parts = urlsplit(url)
    credentials, _, host = parts.netloc.rpartition("@")
    shown = [(k, "***" if k in _SECRETS else v) for k, v in parse_qsl(parts.query)]
    netloc = f"***@{host}" if credentials else host
    query = urlencode(shown, safe="*/:")
    return f"{parts.scheme}://{netloc}{parts.path}{'?' if query else ''}{query}"
