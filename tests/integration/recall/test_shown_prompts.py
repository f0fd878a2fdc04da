"""The flight recorder: what a turn's prompt was given, and would have been, by real workers."""

import msgspec
import pytest
from helpers.redis.log import logged
from helpers.redis.served import served
from helpers.stories.scenario import PATIENT
from helpers.stories.world import World
from helpers.web.pages import looked_at
from memorybus.events import Recalled
from memorybus.history.history import History
from memorybus_console.operations.events.story import PromptShown, PromptWithout

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("shown_prompts")]

PROVIDERS = ("builtin", "holographic")
PROMPT = "What is the parrot called?"
NAME, NEST = "The parrot is called Admiral.", "The parrot nests in the old clock.  "


@pytest.fixture(scope="module", name="world")
def _world(tmp_path_factory):
    options = {"providers": PROVIDERS, "prefetch_wait": 30.0, "partitions": 2}
    with served(tmp_path_factory, "shown", **options) as running:
        yield World(running.settings, running.client, running.spawn)


@pytest.fixture(name="user")
def _user(request):
    """Return a user of this test's own."""
    return str(request.node.name)


def tell(world, user=None):
    """Have a person tell two facts about a parrot, and a note; return the facts' events."""
    with world.bus() as bus:
        session = bus.session("facts", user=user, warm=False)
        facts = [session.turn_completed(fact, "I see.").event_id for fact in (NAME, NEST)]
        session.memory_written("add", "Feed the parrot at noon.")
        assert bus.flush("logged", 10)
    world.wait_applied()
    return facts


def own_world(make_world, **settings):
    """Return a world of the test's own settings, with a worker that has applied the facts."""
    given = {**PATIENT, "prefetch_wait": 30.0, "partitions": 2, **settings}
    world = make_world(providers=PROVIDERS, **given)
    world.worker()
    tell(world)
    return world


def ask(world, *prompts, session="s", user=None):
    """Have turns with memories; return each one's block and event."""
    turns = []
    with world.bus() as bus:
        talk = bus.session(session, user=user, warm=False)
        for prompt in prompts:
            block = talk.prefetch(prompt)
            turns.append((block, talk.turn_completed(prompt, "Let me see.").event_id))
        assert bus.flush("logged", 10)
    world.wait_applied()
    return turns


def records(world: World, user=None):
    """Return the envelopes of all records, or of a person's."""
    history = History.from_settings(world.redis, world.settings)
    events = (event.envelope for event in history.scan())
    found = [envelope for envelope in events if isinstance(envelope.event, Recalled)]
    return [envelope for envelope in found if user in (None, envelope.scope.user)]


def test_the_block_of_a_turn_comes_back_though_facts_changed(world, user):
    """A turn's block comes back byte for byte after its facts changed, and without one fact."""
    name, nest = tell(world, user)
    [(block, turn)] = ask(world, PROMPT, user=user)
    assert NAME in block
    with world.bus() as bus:
        session = bus.session("s", user=user, warm=False)
        session.undo(name)
        session.memory_written("remove", old_text="Feed the parrot")
        assert bus.flush("logged", 10)
    world.wait_applied()

    assert world.run("events", "get", turn, "--shown").stdout == f"{block}\n"
    shown = world.result("events", "get", turn, "--shown")
    assert (shown["turn"], shown["block"]) == (turn, block)
    parts = {part["provider"]: part for part in shown["memories"]}
    assert parts["holographic"]["outcome"] == "fresh"
    assert {name, nest} <= set(parts["holographic"]["events"])
    assert all(score > 0 for score in parts["holographic"]["scores"])

    without = world.result("whatif", turn, "--except", name)
    lines = [line for line in block.split("\n") if NAME not in line]
    msgspec.convert(without, PromptWithout)
    msgspec.convert(shown, PromptShown)
    assert without == {"turn": turn, "block": "\n".join(lines), "removed": 1}
    assert world.run("whatif", turn, "--except", name, nest).stdout.count("parrot") < block.count(
        "parrot"
    )


def test_each_prompt_is_recorded_with_its_own_turn(world, user):
    """A prompt without memories, and one whose turn never came, lend no turn their record."""
    tell(world, user)
    with world.bus() as bus:
        talk = bus.session("s", user=user, warm=False)
        assert talk.prefetch(PROMPT)
        assert talk.prefetch("ok") == ""
        turn = talk.turn_completed("ok", "Yes?").event_id
        assert talk.prefetch(PROMPT)  # its turn is published by another process
    with world.bus() as bus:
        talk = bus.session("s", user=user, warm=False)
        later = talk.turn_completed(PROMPT, "Admiral.").event_id
        again = talk.turn_completed(PROMPT, "Admiral.").event_id
        assert bus.flush("logged", 10)
    assert [record.event.turn for record in records(world, user)] == ["", ""]
    assert world.run("events", "get", turn, "--shown").returncode == 1
    assert NAME in world.result("events", "get", later, "--shown")["block"]
    refused = world.run("events", "get", again, "--shown")
    assert "no record of what the prompt" in refused.stderr
    assert "events ls --type Recalled" in refused.stderr


def test_nobody_is_shown_anothers_prompt(world, user):
    """The same session id of another person has records of its own."""
    tell(world, user)
    ask(world, PROMPT, user=user)
    [(block, turn)] = ask(world, PROMPT, user=f"{user} bob")
    assert NAME not in block
    others = world.run("events", "get", turn, "--shown", "--json")
    assert NAME not in others.stdout


def test_lanes_pass_the_records_and_a_rebuild_has_none(world, user):
    """G8: no provider is given a record, and history applied anew has the digest of live state."""
    tell(world, user)
    ask(world, PROMPT, "Where does the parrot nest?", user=user)
    assert len(records(world, user)) == 2
    for provider in PROVIDERS:
        done = world.run("verify", provider)
        assert done.returncode == 0, done.output
    assert world.run("dlq", "ls", "--json").stdout.count("Recalled") == 0


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_prompts_are_sampled_or_not_recorded(make_world, share):
    """With `recorded_prompts` 0 nothing is recorded, and with a half some prompts are."""
    world = own_world(make_world, recorded_prompts=share)
    turns = ask(world, *[PROMPT] * 24)
    recorded = {record.event.turn for record in records(world)}
    assert recorded <= {turn for _, turn in turns}
    assert (0 < len(recorded) < 24) == bool(share)


def test_the_page_of_a_turn_shows_its_block(world, user):
    """The page of a turn and that of its record show the block, with links to its events."""
    name, _ = tell(world, user)
    [(_, turn)] = ask(world, PROMPT, user=user)
    history = History.from_settings(world.redis, world.settings)
    own = [event for event in history.scan() if event.envelope.scope.user == user]
    shown = [
        event.position
        for event in own
        if event.envelope.id == turn or isinstance(event.envelope.event, Recalled)
    ]
    assert len(shown) == 2
    with looked_at(world.settings) as visitor:
        for place in shown:
            page = visitor.get(f"/events/p{place.partition:02d}:{place.entry}").text
            assert "What its prompt was given" in page
            assert "&lt;memory-context&gt;" in page
            assert f'href="/events?q={name}"' in page


def test_forgetting_a_person_forgets_what_others_were_shown_of_them(make_world):
    """Records of a person go with the person, and those of others that show their memories."""
    world = own_world(make_world, seal_after=0.05, hot_window=600.0, partitions=16)
    with world.bus() as bus:
        hers = bus.session("hers", user="ann", warm=False)
        hers.memory_written("add", "The wolpertinger sleeps by day.")
        hers.turn_completed("I saw a wolpertinger.", "Where?")
        assert bus.flush("logged", 10)
    world.wait_applied()
    [(of_bob, _)] = ask(world, "When does the wolpertinger sleep?", session="his", user="bob")
    ask(world, "Where was the wolpertinger?", session="hers", user="ann")
    assert "by day" in of_bob
    assert {record.scope.user for record in records(world)} == {"ann", "bob"}

    done = world.result("forget", "--user", "ann", "--yes", "--reason", "she asked")

    assert done["problems"] == []
    assert [one for one in logged(world.settings) if isinstance(one.envelope.event, Recalled)] == []
    assert records(world) == []
