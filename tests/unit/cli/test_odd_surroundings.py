"""Commands in odd surroundings end with one clear line, and never with a traceback."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import platformdirs
import pytest
from memorybus.config.settings import FILE_NAME, Settings, load
from memorybus.errors import ConfigError, UnknownSetting


def run(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, before: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command by a shell that first does something else."""
    python = f"exec {sys.executable} -m memorybus {' '.join(words)}"
    line = f"{before}; {python}" if before else python
    around = {"PATH": "/usr/bin:/bin", "MEMORYBUS_DATA_DIR": str(cwd), **(env or {})}
    return subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=cwd,
        env=around,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow(reason="processes with a surrounding of their own")
@pytest.mark.parametrize("columns", ["0", "1", "-5", "abc", "00", "19"])
@pytest.mark.parametrize("words", [("status",), ("status", "--help"), ("--help",)], ids=" ".join)
def test_any_width_will_do(short_dir, columns, words):
    """Whatever COLUMNS and LINES say, a command ends, and not by a mistake of ours."""
    done = run(*words, cwd=short_dir, env={"COLUMNS": columns, "LINES": columns})
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr


@pytest.mark.slow(reason="processes with a surrounding of their own")
@pytest.mark.parametrize(
    "env",
    [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}, {"LANG": "C"}, {}],
    ids=str,
)
def test_a_terminal_of_another_encoding_is_shown_escapes(short_dir, env):
    """What an encoding lacks is escaped; without TERM and HOME a command works, too."""
    done = run("doctor", cwd=short_dir, env=env)
    assert "python" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.slow(reason="processes with a surrounding of their own")
@pytest.mark.parametrize("words", [("status",), ("check",), ("worker",)], ids=" ".join)
def test_a_deleted_working_directory_is_named(short_dir, words):
    """Where no directory is, none can have settings: that is said, in one line."""
    before = "mkdir gone; cd gone; rmdir ../gone"
    done = run(*words, cwd=short_dir, before=before)
    told = (done.stdout + done.stderr).strip()
    assert done.returncode in (2, 3)
    assert "the working directory was deleted" in told
    assert "Traceback" not in told


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch):
    """No directory named ~ is made."""
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda _: "~/.local/share/memorybus")
    with pytest.raises(ConfigError, match="MEMORYBUS_DATA_DIR"):
        Settings()


def test_a_byte_order_mark_is_read_over(tmp_path):
    """A file that an editor begins with a BOM is a file of settings."""
    file = tmp_path / FILE_NAME
    file.write_bytes(b'\xef\xbb\xbfnamespace = "here"\n')
    assert load(environ={}, file=file).namespace == "here"


def test_a_file_that_cannot_be_read_is_named_once(tmp_path):
    """A directory in its place, and another encoding, are named with the file."""
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(ConfigError) as caught:
        load(environ={}, directory=tmp_path)
    assert str(caught.value) == f"{tmp_path / FILE_NAME} cannot be read: Is a directory"
    other = tmp_path / "other.toml"
    other.write_bytes('namespace = "x"\n'.encode("utf-16"))
    with pytest.raises(ConfigError, match="save it as UTF-8"):
        load(environ={}, file=other)


def test_a_renamed_setting_names_its_successor():
    """A setting of a former name is refused with the present one."""
    with pytest.raises(UnknownSetting, match=r"'spool_ballast' is now spool_reserve$"):
        load(environ={"MEMORYBUS_SPOOL_BALLAST": "1"})
