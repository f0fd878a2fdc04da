"""Reads the fields of a form, up to a bound."""

from urllib.parse import parse_qsl

from starlette.requests import Request

MAX_BYTES = 1 << 20
"""The most bytes of a form that are read."""


async def read(request: Request) -> dict[str, str] | None:
    """Return the fields of a form, each with its last value; None if the form is too large."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BYTES:
            return None
    text = body.decode("utf-8", "replace")
    return dict(parse_qsl(text, keep_blank_values=True))
