"""``memorybus notify``: whether people are told that something is wrong."""

from cyclopts import App

from memorybus.surfaces.cli.options import CARE, DEFAULT, Common


def register(app: App) -> None:
    """Add this group's commands."""
    notify = App(name="notify", help="Tell people that something is wrong.", group=CARE)
    notify.command(run_test, name="test")
    app.command(notify)


def run_test(*, common: Common = DEFAULT) -> int:
    """Send a test notice by the webhook and the command of the settings, and say what became of it.

    Workers tell by themselves once `[notify]` names a way; this shows beforehand that it works. It
    needs no Redis. Exit code 1: a notice did not get through.

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
