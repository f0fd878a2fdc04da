"""``python -m memorybus.notify.webhook``: posts its standard input to the webhook of the settings.

It runs in a separate process, which can be killed whatever hangs: a name server, a handshake, an
answer that comes letter by letter. The address does not appear in any command line or message.
Redirects are not followed, because they could pass the address's secret on.
"""

import http.client
import math
import signal
import sys
from http import HTTPStatus
from importlib.metadata import version
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from memorybus.config.notify import Notify, check_webhook
from memorybus.config.settings import load, read_variable
from memorybus.errors import ConfigError, MemoryBusError


class _RefuseRedirects(HTTPRedirectHandler):
    """Treats redirects as errors."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Return no request, so that the opener raises `HTTPError` for the redirect."""


def read_target(rules: Notify) -> tuple[str, str]:
    """Return the webhook's address, and its token or "".

    Raises:
        ConfigError: a variable that the rules name is not set, or holds no address.
    """
    for name in rules.variables:
        if not read_variable(name).strip():
            raise ConfigError(
                f"notify: the environment variable {name[:100]!r} is not set; set it where the "
                f"workers run, or in the secrets file"
            )
    url = rules.url or read_variable(rules.url_env).strip()
    check_webhook(url)
    return url, read_variable(rules.token_env).strip() if rules.token_env else ""


def post(url: str, token: str, body: bytes, timeout: float) -> str:
    """Post JSON; return why the webhook did not take it, or "". No message quotes the address.

    Args:
        url: the webhook's address.
        token: the bearer token; "" for none.
        body: the JSON.
        timeout: seconds until the answer.
    """
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"memorybus/{version('memorybus')}",
    }
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        request = Request(url, body, headers, method="POST")  # noqa: S310  the scheme was checked
        with build_opener(_RefuseRedirects).open(request, timeout=timeout):
            return ""
    except HTTPError as error:
        error.close()
        return _describe_refusal(error.code)
    except URLError as error:
        return f"it cannot be reached: {error.reason}"
    except TimeoutError:
        return f"no answer within {timeout:g} s"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"the request cannot be sent: {type(error).__name__}"


def _describe_refusal(status: int) -> str:
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return f"it answers {status}: redirects are not followed; configure the final address"
    return f"it answers {status}"


def main() -> int:
    """Post; return 1, with the reason on standard error, if that failed."""
    try:
        rules = load().notify
        signal.alarm(math.ceil(rules.timeout) + 1)  # the process that started us may be gone
        url, token = read_target(rules)
    except MemoryBusError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    failure = post(url, token, sys.stdin.buffer.read(), rules.timeout)
    sys.stderr.write(failure)
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
