"""``memorybus insights``: figures of what agents did and what memory was worth."""

from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from memorybus import private
from memorybus.errors import ConfigError, install_command

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, Common, positive
from memorybus_console.result import Presentation, Remark

if TYPE_CHECKING:
    from memorybus.insights.report import Insights


@shown
def run_insights(
    *,
    days: Annotated[int, Parameter(validator=positive, help="How many days, from now back.")] = 30,
    agent: Annotated[str | None, Parameter(help="Only this agent.")] = None,
    user: Annotated[str | None, Parameter(help="Only this person.")] = None,
    platform: Annotated[str | None, Parameter(help="Only this platform.")] = None,
    zone: Annotated[
        str, Parameter(help="The time zone of days and hours; by default that of the settings.")
    ] = "",
    html: Annotated[
        Path | None, Parameter(help="Write them into this file, as one page with plots.")
    ] = None,
    common: Common = DEFAULT,
) -> "Presentation[Insights]":
    """Show what agents did: sessions, tokens, cost, tools, skills, activity, memories.

    It reads the archive and what the log has beyond it. What no event recorded is named, not
    guessed; people who were forgotten and turns that were taken back do not count.

    For example:

    - `memorybus insights --days 7 --user ann`
    - `memorybus insights --json | jq .overview`
    - `memorybus insights --html insights.html`
    """
    from memorybus.insights.reading import chosen_zone, read_insights

    from memorybus_console.views.insights import insights_notes, insights_parts

    settings = common.settings()
    insights = read_insights(
        settings, days=days, agent=agent, user=user, platform=platform, zone=zone
    )
    where = chosen_zone(settings, zone)
    notes = insights_notes(insights)
    if html is None:
        return Presentation(insights, insights_parts(insights, where), notes)
    _write_page(html, insights, where)
    return Presentation(insights, (), [*notes, Remark(f"the figures are in {html}")])


def _write_page(file: Path, insights: "Insights", zone: tzinfo) -> None:
    try:
        from memorybus_console.web.insights_file import insights_html
    except ImportError as error:
        raise ConfigError(
            f"a page of insights needs the extra `web`; run: {install_command('web')}"
        ) from error
    try:
        private.write(file, insights_html(insights, zone).encode())
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written ({error.strerror}); name another file"
        ) from error
