"""``memorybus notify``: test the notices that tell people that something is wrong."""

from cyclopts import App

from memorybus.surfaces.cli.options import CARE, DEFAULT, Common


def register(app: App) -> None:
    """Add this group's commands."""
    notify = App(name="notify", help="Notices to people that something is wrong.", group=CARE)
    notify.command(run_test, name="test")
    app.command(notify)


def run_test(*, common: Common = DEFAULT) -> int:
    """Send a test notice by the webhook and the command of the settings, and show the result.

    Workers send notices once `[notify]` names a webhook or a command; this tests both beforehand.
    It needs no Redis. Exit code 1 if a notice could not be delivered.

    For example:

    - `memorybus notify test`
    - `MEMORYBUS_NOTIFY='{"url": "https://example.org/hook"}' memorybus notify test --json`
    """
    from memorybus.config.settings import load_secrets
    from memorybus.operations.notices import send_test_notice

    output = common.output()
    failed = False
    for sent in send_test_notice(load_secrets(common.settings())):
        failed |= not sent.ok
        if output.json:
            output.json_line(sent)
        elif sent.ok:
            output.show(f"{sent.channel}: taken after {sent.seconds:.1f} s")
        else:
            output.note(
                f"{sent.channel}: not taken after {sent.seconds:.1f} s: {sent.error}", "red"
            )
    return int(failed)
