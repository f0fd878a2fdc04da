"""What people typed is in the log once, where it belongs, whatever the real Hermes does meanwhile.

Each scenario ends with an account: turns that are lost, doubled or misfiled. There may be none, and
`reconcile` finds nothing to do. One world serves all scenarios, each in sessions of its own.
"""

import base64
from collections.abc import Iterator

import pytest
from helpers.hermes.hermes_account import Account, stored, written
from helpers.hermes.hermes_agent import LONG_WORDS, Hermes
from helpers.hermes.hermes_model import calls, keeps
from helpers.hermes.hermes_world import World
from helpers.processes.waiting import wait_until

pytestmark = [pytest.mark.hermes, pytest.mark.releases, pytest.mark.timeout(240)]

LONG = [f"part {number}: {LONG_WORDS}".strip() for number in range(15)]


@pytest.fixture(scope="module", name="world")
def _world(_hermes_python: None) -> Iterator[World]:
    made = World()
    yield made
    made.close()


@pytest.fixture(name="account")
def _account(world: World) -> Account:
    return Account(world)


@pytest.fixture(scope="module", name="prompt")
def _prompt(world: World) -> Hermes:
    return world.hermes()


@pytest.fixture(name="hermes")
def _hermes(prompt: Hermes, account: Account) -> Iterator[Hermes]:
    """Return the prompt in a session of its own; afterwards the account must be right."""
    if not prompt.session:
        prompt.chat("good morning to all")
    prompt.slash("/new")
    yield prompt
    prompt.do("settle")
    account.settle()


def test_undone_and_retried(account, hermes):
    """``/undo``, then ``/retry`` of what is the last turn now, then the undone words again."""
    account.say(hermes, "the first of undo", "the second of undo", "the third of undo")
    account.undo(hermes)
    if account.retry(hermes):
        account.say(hermes, "the third of undo")
        account.retry(hermes)
        account.undo(hermes)
    account.say(hermes, "the last of undo")


def test_the_same_words_often(account, hermes):
    """Equal words are as many turns as were typed, less those that were taken back."""
    account.say(hermes, "ok", "go on", "ok", "ok", "go on", "ok")
    account.undo(hermes, 2)
    account.say(hermes, "ok", "ok")


def test_a_branch_is_undone_and_left(account, hermes):
    """What is undone in a branch stays in its trunk, to which the person comes back."""
    account.say(hermes, "the trunk, one", "the trunk, two")
    trunk = hermes.session
    hermes.slash("/branch a twig")
    account.say(hermes, "the twig, one", "the twig, two")
    account.undo(hermes)
    account.say(hermes, "the twig, three")
    hermes.slash(f"/resume {trunk}")
    account.say(hermes, "the trunk, three")
    account.undo(hermes)
    account.say(hermes, "the trunk, four")


def test_a_long_loop_of_tools(world, account, hermes):
    """Twenty calls of a tool are one turn, and as many writes."""
    steps = [keeps(f"step {number} of the stairs", name=f"s{number}") for number in range(20)]
    world.model.script("climb the stairs", *steps, "climbed")
    account.say(hermes, "climb the stairs", "and down again")
    hermes.do("settle")
    wait_until(
        lambda: sum("of the stairs" in entry for entry in written(world, "memory")) == 20,
        "all writes are in the log",
        60,
    )


def test_changes_of_entries(world, account, hermes):
    """Added, patched and removed in one call, and edited by hand: the log has the file."""
    account.say(hermes, "before the entries")
    operations = [
        {"action": "add", "content": "the gate code is 4711"},
        {"action": "add", "content": "the cellar is damp"},
        {
            "action": world.change,
            "old_text": "the gate code is 4711",
            "content": "the gate code is 12",
        },
        {"action": "remove", "old_text": "cellar is damp"},
    ]
    batch = calls(("memory", {"target": "memory", "operations": operations}), name="batch")
    world.model.script("change the entries", batch, "changed")
    account.say(hermes, "change the entries")
    hermes.do("settle")
    file = world.home.path / "memories" / "MEMORY.md"
    by_hand = [*stored(world, "MEMORY.md"), "written by hand"]
    file.write_text("\n§\n".join(by_hand))

    def has_file() -> bool:
        account.say(hermes, "after the edit")  # a version is read when it is a second old
        return written(world, "memory") == by_hand

    wait_until(has_file, f"the log has {by_hand}", 60)


def test_a_turn_that_is_stopped(world, account, hermes):
    """Ctrl-C before the answer: that turn is none; those around it are there."""
    account.say(hermes, "before the stop")
    gate = world.model.hold("a turn to stop")
    hermes.do("interrupted", text="a turn to stop", seconds=0.5)
    gate.set()
    account.say(hermes, "after the stop")
    account.undo(hermes)
    account.say(hermes, "after the undo of the stop")


def test_an_answer_that_is_empty(world, account, hermes):
    """The model answers nothing: whatever Hermes makes of it, the turns around it are there."""
    account.say(hermes, "before the silence")
    world.model.script("say nothing at all", *[""] * 9)
    if hermes.do("chat", text="say nothing at all")["answer"]:
        account.note("default", hermes.session, "say nothing at all")
    account.say(hermes, "after the silence")


def test_another_agent_in_between(account, hermes):
    """A change of the model: another instance of the session, in which older turns are undone."""
    account.say(hermes, "to the first agent", "to the first agent, too")
    hermes.do("forget_agent")
    account.say(hermes, "to the second agent")
    account.undo(hermes, 2)
    account.say(hermes, "to whoever is there")


def test_people_on_two_platforms(account, hermes):
    """One person on two platforms and another one: each session has its own turns."""
    for number in range(2):
        account.write(hermes, "mia", "telegram-mia", f"mia here, {number}")
        account.write(hermes, "mia", "discord-mia", f"mia there, {number}", platform="discord")
        account.write(hermes, "noah", "telegram-noah", f"mia here, {number}")
    hermes.do("settle")
    hermes.do("take_back", session="telegram-mia")
    account.stays.remove(("mia", "telegram-mia", "mia here, 1"))
    account.write(hermes, "mia", "telegram-mia", "mia here, 1")
    account.write(hermes, "mia", "telegram-mia", "mia here, 2")


def test_pictures(account, hermes):
    """Messages with a picture: with words they are turns, and the next one is, too."""
    picture = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    image = {"type": "image_url", "image_url": {"url": picture}}
    parts = [{"type": "text", "text": "look at this ship"}, image]
    hermes.do("message", session="s-pia", user="pia", text=parts)
    account.note("pia", "s-pia", "[1 image] look at this ship")
    account.write(hermes, "pia", "s-pia", "is it not fine")


def test_requests_to_the_api(account, hermes):
    """The API server makes an agent for each request; sessions alternate."""
    for number in range(3):
        for session in ("api-a", "api-b"):
            hermes.do("request", session=session, text=f"request {number}")
            account.note("default", session, f"request {number}")


def test_nothing_is_missing_at_the_end(account, prompt):
    """After all of it: nothing wrong, and nothing to reconcile, also when it is asked twice."""
    prompt.leave()
    account.close()


def test_compressions_a_resume_and_undos(make_hermes_world):
    """Twice compressed in place, resumed by another process, and undone there."""
    world = make_hermes_world()
    account, hermes = Account(world), world.hermes()
    account.say(hermes, *LONG[:12])
    hermes.slash("/compress")
    account.say(hermes, *LONG[12:])
    hermes.slash("/compress")
    hermes.leave()
    resumed = world.hermes(resume=hermes.session)
    account.say(resumed, "after the resume")
    account.undo(resumed, 2)
    account.retry(resumed)
    account.say(resumed, "after the undo")
    resumed.do("settle")
    resumed.leave()
    account.close()


def test_a_rotation_is_undone(make_hermes_world):
    """Compressed into another session, from which turns of the old one are taken back."""
    world = make_hermes_world()
    world.home.config["compression"] = {"in_place": False}
    world.home.write_config()
    account, hermes = Account(world), world.hermes()
    account.say(hermes, *LONG[:12])
    hermes.slash("/compress")
    account.say(hermes, "after the rotation")
    account.undo(hermes, 2)
    account.say(hermes, "after the undo")
    hermes.do("settle")
    hermes.leave()
    account.close()


def test_killed_while_redis_hangs(make_hermes_world):
    """SIGKILL between turn and flush: the next process sends, and its undo finds the turn."""
    world = make_hermes_world()
    account, hermes = Account(world), world.hermes()
    account.say(hermes, "before it hangs")
    hermes.do("settle")
    world.server.freeze()
    account.say(hermes, "while it hangs", "while it hangs, too")
    account.undo(hermes)
    account.say(hermes, "while it hangs, three")
    hermes.do("settle")
    hermes.kill()
    world.server.thaw()
    resumed = world.hermes(resume=hermes.session)
    account.say(resumed, "after the kill")
    account.undo(resumed, 2)
    account.say(resumed, "at last")
    resumed.do("settle")
    resumed.leave()
    account.close()


def test_killed_without_a_redis(make_hermes_world):
    """Redis is not there; the process is killed at once after an answer, and the turn is found."""
    world = make_hermes_world()
    world.server.kill()
    account, hermes = Account(world), world.hermes()
    account.say(hermes, "without a redis", "killed after this")
    hermes.kill()
    world.server.start()
    world.reconcile()
    account.close()
