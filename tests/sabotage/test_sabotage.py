"""Each deliberate bug turns the suite red: the tests that guard a guarantee can fail."""

import pytest
from helpers.stories.sabotage import RED, ROOTS, Copy, Moved, Patch, Sabotage

MACHINE = "tests/integration/model/test_bus_machine.py::test_the_bus_keeps_its_word_whatever_comes"
SET_BACK = "tests/integration/workers/lanes/test_lanes_set_back.py::"
BY_HAND = "tests/integration/workers/lanes/test_lanes_by_hand.py::"
SCRIPTS = "tests/integration/redis/test_scripts.py::"
ARCHIVER = "tests/integration/workers/archiving/test_archiver.py::"
LUA = "bus/memorybus/redis/lua/"
WORKERS = "workers/memorybus_workers/"
SQLITE = "providers/memorybus_providers/holographic/finding/source.py"
POSTGRES = "providers/memorybus_providers/postgres/finding/source.py"
TAKEN_BACK = "tests/integration/postgres/test_facts_of_a_scope.py::"
TAKEN_BACK += "test_an_entry_is_taken_back_in_its_own_store_alone"
SCOPED = "tests/integration/postgres/test_facts_of_a_scope.py::"
SCOPED += "test_a_question_is_answered_from_its_scope_alone[{}-{}]"
OBJECTS = "tests/unit/archive/objects/test_object_store_local.py::"
IN_DOUBT = "tests/integration/workers/apply/test_calls_in_doubt.py::"
HOMES = "tests/integration/registry/test_homes.py::"
FILES = "tests/unit/builtin/test_builtin_store.py::"
DURABLE = "tests/integration/outbox/test_spool_durable.py::"
SYNC = "os.fsync(file.fileno())"

SABOTAGES = (
    Sabotage(
        "commit before apply",
        (
            Patch(
                WORKERS + "lanes/lane.py",
                '        self.crash("lane.after_read")\n',
                '        self.crash("lane.after_read")\n'
                "        if events:\n"
                "            last = events[-1].position\n"
                "            at = Checkpoint(last.entry, last.n)\n"
                "            call = scripts.commit(self._owned, at)\n"
                "            scripts.run(self._redis, call)\n",
            ),
        ),
        (BY_HAND + "test_an_owner_that_dies_between_read_and_commit_loses_nothing", MACHINE),
    ),
    Sabotage(
        "no epoch check in commit",
        (Patch(LUA + "commit.lua", "if was[1] ~= ARGV[1] or", "if"),),
        (SCRIPTS + "test_the_epoch_grows_over_an_expired_lease",),
    ),
    Sabotage(
        "an owner goes on after a restart of Redis",
        (
            Patch(
                LUA + "shared/server_restart.lua", "return now ~= '' and now ~= run", "return false"
            ),
        ),
        (SCRIPTS + "test_after_a_restart_an_owner_is_refused",),
    ),
    Sabotage(
        "what only the archive has counts as never sent",
        (
            Patch(
                "bus/memorybus/history/history.py",
                "return _mark_resent(events, self.set_back_upto(partition))",
                "return events",
            ),
        ),
        (SET_BACK + "test_what_only_the_archive_has_is_in_doubt",),
    ),
    Sabotage(
        "lanes go on with a wiped log's history",
        (
            Patch(
                WORKERS + "hosting/lane_set.py",
                "check_log_id(self._redis, self._keys, self._shared.log_id)",
                "pass",
            ),
        ),
        (SET_BACK + "test_a_wiped_log_takes_along_what_lanes_know_of_it",),
    ),
    Sabotage(
        "an archiver goes on with a wiped log's archive",
        (
            Patch(
                WORKERS + "archiving/sealer.py",
                "check_log_id(context.redis, self._keys, log_id)",
                "pass",
            ),
        ),
        (ARCHIVER + "test_an_archivers_knowledge_ends_with_its_log",),
    ),
    Sabotage(
        "an owner goes on after its lease",
        (
            Patch(
                WORKERS + "lanes/leases.py",
                "if lease.lost or self._clock.monotonic() + room >= lease.until:",
                "if False:",
            ),
        ),
        ("tests/integration/workers/lanes/test_stale_owner.py",),
    ),
    Sabotage(
        "renewal that re-creates a lease",
        (
            Patch(
                LUA + "renew.lua",
                "if held or known[1] ~= epoch or known[2] ~= worker then",
                "if held and not known then",
            ),
        ),
        (
            SCRIPTS + "test_renew_never_makes_anothers_lease",
            "tests/integration/workers/lanes/test_leases.py",
        ),
    ),
    Sabotage(
        "done-set ignored",
        (Patch(WORKERS + "apply/applier.py", "decode_done_above(owned.done, owned.n)", "0"),),
        (BY_HAND + "test_what_is_done_above_the_checkpoint_is_not_called_again", MACHINE),
    ),
    Sabotage(
        "spool row deleted on send",
        (
            Patch(
                "bus/memorybus/outbox/sender.py",
                "            self._move_cursor(rows[-1][0])\n",
                "            self._move_cursor(rows[-1][0])\n"
                "            self.spool.delete_upto(rows[-1][0])\n",
            ),
        ),
        ("tests/integration/outbox/test_sender.py::test_a_lost_tail_is_sent_again",),
    ),
    Sabotage(
        "producer sequence ignored",
        (
            Patch(LUA + "append.lua", "if last < tonumber(ARGV[2]) then", "if false then"),
            Patch(LUA + "append.lua", "  if sequence > last then", "  if true then"),
        ),
        (SCRIPTS + "test_append_tells_that_redis_lost_its_tail",),
    ),
    Sabotage(
        "park without blocking later events",
        (
            Patch(
                WORKERS + "lanes/parking.py",
                "            self.keys.update(key for _, key, _ in records)\n",
                "            self.keys.clear()\n",
            ),
        ),
        ("tests/integration/workers/apply/test_applier.py::test_poison_parks_only_its_key",),
    ),
    Sabotage(
        "trim by length",
        (Patch(LUA + "append.lua", "'XADD', log, '*'", "'XADD', log, 'MAXLEN', '5', '*'"),),
        (
            "tests/integration/log/test_continuity.py::test_a_whole_log_has_no_gap",
            SCRIPTS + "test_append_numbers_densely",
        ),
    ),
    Sabotage(
        "everybody's facts by name, in SQLite",
        (
            Patch(
                SQLITE,
                "kept.scope in ({SCOPES}) and kept.seq is null",
                "kept.seq is null",
            ),
        ),
        (SCOPED.format("sqlite", "facts_by_name"),),
    ),
    Sabotage(
        "everybody's neighbours, in SQLite",
        (Patch(SQLITE, "facts.scope in ({SCOPES}) and facts.id in (", "facts.id in ("),),
        (SCOPED.format("sqlite", "facts_with_neighbours"),),
    ),
    Sabotage(
        "everybody's facts by name, in PostgreSQL",
        (
            Patch(
                POSTGRES,
                "facts.scope = any(%(scopes)s) and facts.name = any(",
                "facts.name = any(",
            ),
        ),
        (SCOPED.format("postgres", "facts_by_name"),),
    ),
    Sabotage(
        "every agent's memory store, in PostgreSQL",
        (
            Patch(
                "providers/memorybus_providers/postgres/writing/notes.py",
                '" and scope in (select id from scopes where agent = %(agent)s)"',
                '""',
            ),
        ),
        (TAKEN_BACK,),
    ),
    Sabotage(
        "every person's store, in PostgreSQL",
        (
            Patch(
                "providers/memorybus_providers/postgres/writing/notes.py",
                '" and scope in (select id from scopes where person = %(person)s)"',
                '""',
            ),
        ),
        (TAKEN_BACK,),
    ),
    Sabotage(
        "an event that is sent again is not asked for",
        (Patch(WORKERS + "apply/applier.py", "known or event.resent or", "known or"),),
        (IN_DOUBT + "test_what_is_sent_again_after_a_loss_is_asked_for",),
    ),
    Sabotage(
        "a durable event without a full sync",
        (
            Patch(
                "bus/memorybus/outbox/spool.py",
                '"pragma synchronous = full"',
                '"pragma synchronous = normal"',
            ),
        ),
        (DURABLE + "test_a_durable_event_is_synced_before_it_is_accepted",),
    ),
    Sabotage(
        "a compression that is not durable",
        (Patch("bus/memorybus/agent/session.py", "event_id, at, durable=True)", "event_id, at)"),),
        (DURABLE + "test_what_leaves_the_context_window_is_durable",),
    ),
    Sabotage(
        "rows that are sent unannounced",
        (
            Patch(
                "bus/memorybus/outbox/spool.py",
                "_write_delivered(self._file, self._announced, durable=True)",
                "_write_delivered(self._file, self._announced, durable=False)",
            ),
        ),
        (DURABLE + "test_rows_are_announced_on_the_disk_before_they_are_sent",),
    ),
    Sabotage(
        "a file of the archive without a sync",
        (Patch("bus/memorybus/archive/objects/local.py", SYNC, "pass"),),
        (OBJECTS + "test_a_file_survives_a_power_loss",),
    ),
    Sabotage(
        "a name in the archive without a sync",
        (
            Patch(
                "bus/memorybus/archive/objects/local.py",
                "        return False\n    _sync_folder(path.parent)\n",
                "        return False\n",
            ),
        ),
        (OBJECTS + "test_a_file_survives_a_power_loss",),
    ),
    Sabotage(
        "a folder of the archive without a sync",
        (
            Patch(
                "bus/memorybus/archive/objects/local.py",
                "    _sync_folder(folder.parent)\n",
                "",
            ),
        ),
        (OBJECTS + "test_new_folders_survive_a_power_loss",),
    ),
    Sabotage(
        "the id of a place without a sync",
        (Patch("bus/memorybus/registry/homes.py", SYNC, "pass"),),
        (HOMES + "test_a_place_is_on_the_disk_before_it_is_used",),
    ),
    Sabotage(
        "a memory file without a sync",
        (
            Patch(
                "providers/memorybus_providers/builtin/files.py",
                "        _sync(token)\n",
                "",
            ),
        ),
        (FILES + "test_a_files_text_is_on_the_disk_before_it_has_its_name",),
    ),
    Sabotage(
        "a death that nobody is suspected of",
        (Patch(LUA + "shared/lane_death.lua", "  if tries then", "  if false then"),),
        (SCRIPTS + "test_what_was_called_at_a_death_is_suspected",),
    ),
    Sabotage(
        "calls of a lane whose owner died are not noted",
        (Patch(WORKERS + "lanes/caution.py", "or n < self._upto", ""),),
        ("tests/unit/workers/lanes/test_caution.py",),
    ),
)
GUARDS = tuple(dict.fromkeys(test for one in SABOTAGES for test in one.tests))

pytestmark = [
    pytest.mark.fault,
    pytest.mark.timeout(700),
]


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda one: one.name)
def test_a_sabotage_turns_the_suite_red(sabotage, tmp_path):
    """G1 to G7: with one deliberate bug at least one of its tests fails, and none cannot run."""
    copy = Copy(tmp_path / "copy")
    for patch in sabotage.patches:
        copy.change(patch)
    done = copy.test(*sabotage.tests)
    assert done.returncode == RED, done.stdout + done.stderr
    assert " failed" in done.stdout, done.stdout
    assert " error" not in done.stdout.splitlines()[-1], done.stdout


def test_the_same_tests_are_green_without_sabotage(tmp_path):
    """What turns red does so for the sabotage: in a copy that nobody changed all of it passes."""
    copy = Copy(tmp_path / "copy")
    done = copy.test(*GUARDS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_copy_is_what_runs(tmp_path):
    """The tests of a copy import the copy, not the sources that are installed."""
    copy = Copy(tmp_path / "copy")
    assert [path.relative_to(copy.directory).parts[0] for path in copy.imported()] == list(ROOTS)


def test_a_table_that_is_out_of_date_is_told(tmp_path):
    """A text that is not in the sources, or there twice, is no sabotage: it is an error."""
    copy = Copy(tmp_path / "copy")
    for old in ("no such words", "redis.call"):
        with pytest.raises(Moved):
            copy.change(Patch(LUA + "commit.lua", old, ""))
