"""The archive in an object store, over HTTP: conditional writes, ranges, lists, errors."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from helpers.archive.archives import LOG, as_logged, entries, pages
from helpers.archive.object_servers import environment, s3_url
from memorybus.archive.archive import Archive
from memorybus.archive.objects import remote
from memorybus.archive.objects.opening import open_objects
from memorybus.archive.objects.remote import RemoteObjects
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveDamaged, ArchiveTaken, ArchiveUnavailable
from memorybus.query.query import Query
from memorybus.query.ranges import Plan

__all__ = ["s3_url"]

pytestmark = [
    pytest.mark.servers,
    pytest.mark.timeout(240),
]  # the stand-in takes megabytes apart in Python


def archive(url: str) -> Archive:
    """Return the archive at a URL, as a process that has never seen it."""
    return Archive.from_settings(Settings(archive=url), LOG)


def test_the_first_writer_of_a_name_wins(s3_url):
    """G5, G7: what the fence rests on: a name is written once; the same bytes again are no harm."""
    objects = open_objects(s3_url, "a/b")
    assert objects.put_new("p00/x", b"1")
    assert objects.put_new("p00/x", b"1")
    assert not objects.put_new("p00/x", b"2")
    assert objects.get("p00/x") == b"1"
    assert objects.get("p00/y") is None
    assert objects.open("p00/y") is None
    assert objects.put_new("p00/deep/z", b"3")
    assert [(one.name, one.size) for one in objects.list("p00")] == [("p00/x", 1)]
    objects.delete("p00/x")
    objects.delete("p00/x")
    assert objects.list("p00") == []
    assert objects.list("nowhere") == []


def test_an_archive_lives_there(s3_url):
    """G7: seal, read, compact and check, as in a directory; of two writers one wins."""
    rows = entries(90)
    writer = archive(s3_url)
    for start in (0, 30, 60):
        writer.publish(0, rows[start : start + 30])
    assert list(pages(archive(s3_url))) == as_logged(rows)
    query = Query(sessions=("s-3",))
    wanted = [one for one in as_logged(rows) if one.envelope.session.id == "s-3"]
    assert list(archive(s3_url).scan(0, Plan(query=query))) == wanted
    stale, known = archive(s3_url), writer.segments(0)
    writer.replace(0, known[:2])
    with pytest.raises(ArchiveTaken):
        stale.replace(0, known[:2])
    assert list(pages(archive(s3_url))) == as_logged(rows)
    assert {one.found for one in archive(s3_url).verify([0])} == {"sound", "unlisted"}


def test_a_large_file_is_read_by_ranges(s3_url):
    """G10: a file too large to be held is read where it is asked for."""
    objects = open_objects(s3_url)
    data = bytes(range(256)) * (9 << 12)
    assert objects.put_new("large", data)
    file = objects.open("large")
    assert file is not None
    file.seek(-300, 2)
    assert file.read(10) == data[-300:-290]
    file.seek(5_000_000)
    assert file.read(2_000_000) == data[5_000_000:7_000_000]
    file.seek(0)
    assert file.read() == data


@pytest.mark.parametrize("answer", [ArchiveDamaged, ArchiveUnavailable], ids=["404", "403"])
def test_a_large_segment_may_be_compacted_away_while_it_is_open(s3_url, monkeypatch, answer):
    """G7: a reader by ranges goes on in the new file, however a store says that the old is gone."""
    monkeypatch.setattr(remote, "WHOLE_BYTES", 0)
    monkeypatch.setattr(remote, "RANGE_BYTES", 4_096)
    part = RemoteObjects.read_range

    def refused(self: RemoteObjects, name: str, start: int, end: int) -> bytes:
        try:
            return part(self, name, start, end)
        except ArchiveDamaged as error:
            raise answer(str(error)) from error

    monkeypatch.setattr(RemoteObjects, "read_range", refused)
    rows, writer, reader = entries(4_000), archive(s3_url), archive(s3_url)
    writer.publish(0, rows[:2_000])
    writer.publish(0, rows[2_000:])
    old, found = writer.segments(0), reader.read(0, count=500)
    scanned = archive(s3_url).scan(0)
    first = next(scanned)
    writer.replace(0, old)
    for one in old:
        writer.objects.delete(f"p00/{one.file}")
    while page := reader.read(0, found[-1].position.entry, 500):
        found += page
    assert found == as_logged(rows)
    assert [first, *scanned] == found


def test_errors_say_where_and_never_with_what(s3_url, monkeypatch):
    """A store that refuses or is away is named; credentials are not."""
    missing = s3_url.replace("archive", "nobucket")
    with pytest.raises(ArchiveUnavailable, match="nobucket") as refused:
        archive(missing).publish(0, entries(1))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(ArchiveUnavailable, match="check the network") as away:
        archive(s3_url).end(0)
    assert "very-secret" not in f"{refused.value} {away.value}"


class Careless(BaseHTTPRequestHandler):
    """A store that answers every request and writes over what is there."""

    def do_PUT(self) -> None:
        """Take a file, whatever the condition."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("ETag", '"x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object, **__: object) -> None:
        """Say nothing."""


def test_a_store_that_writes_over_files_is_refused(monkeypatch):
    """G5, G7: without conditional writes there is no fence: nothing is written, and why is said."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Careless) as server:
        for name, value in environment(f"http://127.0.0.1:{server.server_port}").items():
            monkeypatch.setenv(name, value)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            with pytest.raises(ArchiveUnavailable, match="supports conditional writes"):
                open_objects("s3://archive/memories").put_new("p00/x", b"1")
        finally:
            server.shutdown()
            thread.join()
