"""A process of ours is spared most of the garbage collector's work."""

import subprocess
import sys


def printed(program: str) -> str:
    """Run a program in a new Python; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_what_is_there_at_the_beginning_is_spared():
    """Objects that a process has when it begins are not looked at by the garbage collector."""
    assert (
        printed(
            "import gc; from memorybus.processes.light_imports import freeze_heap; freeze_heap(); "
            "print(gc.get_freeze_count() > len(gc.get_objects()))"
        )
        == "True"
    )


def test_a_new_process_collects_more_seldom_than_python_does():
    """Only when many more objects were made does a collection begin; it is not switched off."""
    assert (
        printed(
            "import gc; from memorybus.processes.light_imports import collect_seldom; "
            "before = gc.get_threshold(); collect_seldom(); after = gc.get_threshold(); "
            "print(gc.isenabled(), after[0] >= 5 * before[0] > 0, after[1:] == before[1:])"
        )
        == "True True True"
    )


def test_a_process_ends_without_a_last_collection():
    """A circle is left to the system; what was to be done at the end is done."""
    program = (
        "import atexit, gc; from memorybus.processes.light_imports import end_without_collecting\n"
        "class Circle:\n"
        "    def __del__(self): print('collected')\n"
        "atexit.register(print, 'done')\n"
        "{}\n"
        "circle = Circle(); circle.itself = circle; del circle"
    )
    assert printed(program.format("pass")) == "done\ncollected"
    assert printed(program.format("end_without_collecting()")) == "done"
