"""Write the best tests of each guarantee into its page: ``guarantee_tests.py [--check]``.

A test holds a guarantee if its docstring names it (G1 to G10). ``docs/guarantees.md`` names for
each guarantee the three that show it best.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pages import write_or_check

ROOT = Path(__file__).parent.parent
GUARANTEES = Path(__file__).with_name("guarantees.md")
MARK = re.compile(r"<!-- shown (G\d+) -->\n.*?<!-- end -->", re.DOTALL)

BEST = {
    "G1": (
        "test_adoption_survives_a_killed_owner",
        "test_a_wiped_redis_is_filled_from_the_spool",
        "test_what_was_replicated_outlives_producer_and_master",
    ),
    "G2": (
        "test_a_lost_acknowledgement_makes_no_duplicate",
        "test_append_skips_a_resend",
        "test_duplicates_are_refused",
    ),
    "G3": (
        "test_order_holds_through_an_outage",
        "test_each_key_keeps_its_order",
        "test_a_lane_goes_on_where_it_was",
    ),
    "G4": (
        "test_a_worker_dies_at_a_named_place",
        "test_workers_are_killed_at_every_point",
        "test_a_store_that_is_locked_for_long_has_one_effect",
    ),
    "G5": (
        "test_a_frozen_owner_that_wakes_changes_nothing",
        "test_the_epoch_grows_over_an_expired_lease",
        "test_workers_stall_past_three_leases",
    ),
    "G6": (
        "test_poison_parks_only_its_key",
        "test_an_unavailable_backend_parks_nothing",
        "test_deadly_events_park_only_their_key",
    ),
    "G7": (
        "test_an_archiver_killed_at_a_point_is_followed",
        "test_a_flipped_bit_of_a_segment_is_named",
        "test_a_checkpoint_that_was_trimmed_goes_on",
    ),
    "G8": (
        "test_a_replay_equals_the_live_state",
        "test_a_killed_rebuild_goes_on",
        "test_a_poisoned_person_goes_and_the_rest_stays",
    ),
    "G9": (
        "test_prefetch_keeps_its_deadline",
        "test_redis_is_frozen_for_a_while",
        "test_a_redis_that_hangs_is_waited_for_once",
    ),
    "G10": (
        "test_a_full_spool_refuses",
        "test_no_key_lives_for_ever_unknown",
        "test_a_frame_too_large_costs_nothing",
    ),
}
"""For each guarantee the three tests that show it best, chosen by people."""


class Held(NamedTuple):
    """One test that holds a guarantee: its file, its name, and the rule it states."""

    file: str
    name: str
    rule: str


class NotShown(Exception):
    """A test that was chosen for a guarantee does not exist, or does not name the guarantee."""


def held() -> dict[str, list[Held]]:
    """Return the tests of each guarantee, by file and name."""
    found: dict[str, list[Held]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT).as_posix()
        for name, doc in sorted(_tests(path)):
            rule = " ".join(doc.split("\n\n", maxsplit=1)[0].split())
            for guarantee in sorted(set(re.findall(r"\bG(?:10|[1-9])\b", doc))):
                found[guarantee].append(Held(file, name, rule))
    return found


def _tests(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def best(guarantee: str, tests: list[Held]) -> list[Held]:
    """Return the three tests that show a guarantee best.

    Raises:
        NotShown: one of them does not exist, or does not name the guarantee.
    """
    by_name = {test.name: test for test in tests}
    missing = [name for name in BEST[guarantee] if name not in by_name]
    if missing:
        raise NotShown(f"{guarantee}: no test of it is called {', '.join(missing)}; see BEST")
    return [by_name[name] for name in BEST[guarantee]]


def _shown(test: Held) -> str:
    rule = re.sub(r"^(?:G\d+(?:, | and )?)+: ", "", test.rule)
    return f"- [`{test.name}`](../{test.file}): {rule}\n"


def with_best(page: str, tests: dict[str, list[Held]]) -> str:
    """Return the page of the guarantees with its marked lists written anew."""

    def fill(mark: re.Match[str]) -> str:
        guarantee = mark.group(1)
        shown = "".join(map(_shown, best(guarantee, tests[guarantee])))
        return f"<!-- shown {guarantee} -->\n{shown}<!-- end -->"

    return MARK.sub(fill, page)


def main() -> int:
    """Write the page, or report that it is not current."""
    tests = held()
    try:
        guarantees = with_best(GUARANTEES.read_text(), tests)
    except NotShown as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return write_or_check(GUARANTEES, guarantees)


if __name__ == "__main__":
    sys.exit(main())
