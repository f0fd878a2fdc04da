"""Runs a hand-written consumer as processes of its own and says how fast they were together."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from redis.exceptions import ResponseError
from stage import WAIT_SECONDS, Stage, environment


def floor_per_s(
    stage: Stage,
    script: str,
    group: str,
    *options: str,
    streams: Sequence[str] = (),
    processes: int = 1,
    missing: int = 0,
) -> float:
    """Return the events per second of one script over the whole log, its streams shared out.

    Args:
        stage: whose log is consumed.
        script: the module beside this one.
        group: names a consumer group nobody used before; it is made before the clock runs.
        options: more words of its command line.
        streams: what is consumed, with as many events as the log; the log itself if none.
        processes: how many at once; the slowest one's time counts.
        missing: events of the log that the script is not given.
    """
    group = f"floor-{group}"  # a provider's own name is the group that mirrors its progress
    partitions = range(stage.settings.partitions)
    streams = streams or [stage.keys.log(partition) for partition in partitions]
    for stream in streams:
        with suppress(ResponseError):
            stage.redis.xgroup_create(stream, group, "0", mkstream=True)
    started = [
        _start(stage, script, group, streams[first::processes], options)
        for first in range(processes)
    ]
    results = [_result(child) for child in started]
    events = sum(int(result["events"]) for result in results)
    if events != sum(stage.heads().values()) - missing:
        raise RuntimeError(f"{script} saw {events} events, not all")
    return events / max(float(result["seconds"]) for result in results)


def _start(
    stage: Stage, script: str, group: str, streams: Sequence[str], options: Sequence[str]
) -> "subprocess.Popen[bytes]":
    command = [
        sys.executable,
        *("-m", f"floors.{script}"),
        *("--socket", str(stage.settings.socket_path)),
        *("--group", group),
        *("--streams", " ".join(streams)),
        *options,
    ]
    return subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _result(child: "subprocess.Popen[bytes]") -> dict[str, float]:
    said, complaint = child.communicate(timeout=WAIT_SECONDS)
    if child.returncode:
        raise RuntimeError(f"the floor failed: {complaint.decode()[-500:]}")
    result: dict[str, float] = json.loads(said)
    return result
