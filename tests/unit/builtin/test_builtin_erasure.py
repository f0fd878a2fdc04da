"""What an erasure takes out of the memory files, and what it says of the rest."""

import msgspec
from builtin_feeding import ME, add, feed, memory_file, provider_at
from memorybus.events import Scope
from memorybus_providers.base import RecallScope

ANN = RecallScope(None, "ann", None)
BOB = msgspec.structs.replace(ME, user="bob")


def test_what_an_agent_noted_of_a_person_goes_with_the_person(tmp_path):
    """An agent's notes from a person's sessions are erased; those from others' sessions stay."""
    provider = provider_at(tmp_path)
    provider.open()
    feed(provider, add("ann likes quinces"), add("ann is called ann", "user"))
    feed(provider, add("bob likes pears"), first=3, scope=BOB)

    residue = provider.forget(ANN)

    assert (residue.erased, residue.remains) == (2, ())
    assert memory_file(tmp_path).read_text() == "bob likes pears"
    assert not (tmp_path / "user" / "ann").exists()
    provider.shutdown()


def test_what_an_agent_wrote_of_persons_goes_with_the_agent(tmp_path):
    """An agent's erasure takes its own file, and its entries in the files of persons."""
    provider = provider_at(tmp_path)
    provider.open()
    feed(provider, add("a note"), add("from the coder", "user"))
    cook = Scope(agent="cook", user="ann")
    feed(provider, add("from the cook", "user"), first=3, scope=cook)

    provider.forget(RecallScope(ME.agent, None, None))

    assert not (tmp_path / "memory" / ME.agent).exists()
    assert (tmp_path / "user" / "ann" / "USER.md").read_text() == "from the cook"
    provider.shutdown()


def test_what_was_written_by_hand_is_named(tmp_path):
    """An entry whose writer nobody knows stays in another's file, and the residue counts it."""
    provider = provider_at(tmp_path)
    provider.open()
    feed(provider, add("noted"))
    file = memory_file(tmp_path)
    file.write_text(file.read_text() + "\n§\nby hand")

    residue = provider.forget(ANN)

    assert file.read_text() == "by hand"
    assert ["1 entries" in said for said in residue.remains] == [True]
    provider.shutdown()


def test_files_of_others_in_a_persons_folder_are_named(tmp_path):
    """A folder with files that are not ours stays, and the residue names it."""
    provider = provider_at(tmp_path)
    provider.open()
    feed(provider, add("noted", "user"))
    folder = tmp_path / "user" / "ann"
    (folder / "USER.md.bak").write_text("noted")

    residue = provider.forget(ANN)

    assert [str(folder) in said for said in residue.remains] == [True]
    provider.shutdown()
