"""``memorybus insights``: figures of what agents did and what memory was worth."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from memorybus_console.cli.answers import shown
from memorybus_console.cli.options import DEFAULT, INSPECT, Common, positive
from memorybus_console.result import Presentation

if TYPE_CHECKING:
    from memorybus.insights.report import Insights


def register(app: App) -> None:
    """Add this command."""
    app.command(run_insights, name="insights", group=INSPECT)


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
    common: Common = DEFAULT,
) -> "Presentation[Insights]":
    """Show what agents did: sessions, tokens, cost, tools, skills, activity, memories.

    It reads the archive and what the log has beyond it. What no event recorded is named, not
    guessed; people who were forgotten and turns that were taken back do not count.

    For example:

    - `memorybus insights --days 7 --user ann`
    - `memorybus insights --json | jq .overview`
    """
    from memorybus.insights.reading import read_insights

    from memorybus_console.views.insights import insights_notes, insights_parts

    insights = read_insights(
        common.settings(), days=days, agent=agent, user=user, platform=platform, zone=zone
    )
    return Presentation(insights, insights_parts(insights), insights_notes(insights))
