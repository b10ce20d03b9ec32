"""download.py against a server that breaks off: resumed, checked, and never half-done."""

from __future__ import annotations

import hashlib
import http.server
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sources import download
from sources.checksums import Expected
from sources.mirror import fetch_file
from steps.errors import BadInput
from transformer_plugin.lock import file_lock

DATA = random.Random(3).randbytes(300_000)
SHA256 = hashlib.sha256(DATA).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves `data` under /file; the answers break off after `breaks` bytes, in turn."""

    data, etag, breaks, ranges = DATA, '"one"', [], True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []  # the Range of each request
        self.address = f"http://127.0.0.1:{self.server_address[1]}/file"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server, start = self.server, 0
        wanted = self.headers.get("Range")
        server.asked.append(wanted)
        if self.path != "/file":
            return self.send_error(404)
        if wanted and server.ranges and self.headers.get("If-Range") in (None, server.etag):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(server.data):
                return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(server.data) - start))
        if server.etag:
            self.send_header("ETag", server.etag)
        self.end_headers()
        end = start + server.breaks.pop(0) if server.breaks else None
        self.wfile.write(server.data[start:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    served = Server()
    thread = threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield served
    served.shutdown()
    served.server_close()


KNOWN = Expected(size=len(DATA), sha256=SHA256)


@pytest.mark.parametrize(
    "expected", [KNOWN, Expected(), Expected(md5=hashlib.md5(DATA).hexdigest())]
)
def test_it_goes_on_where_the_line_broke(server, tmp_path, expected):
    server.breaks = [100_000, 1, 50_000]
    download.download(server.address, tmp_path / "f", expected)
    assert (tmp_path / "f").read_bytes() == DATA
    assert server.asked == [None, "bytes=100000-", "bytes=100001-", "bytes=150001-"]
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_it_goes_on_after_the_program_ended(server, tmp_path):
    server.breaks = [120_000] + [0] * download.ATTEMPTS
    with pytest.raises(BadInput, match="cannot be read"):
        download.download(server.address, tmp_path / "f", KNOWN)
    assert not (tmp_path / "f").exists()
    server.asked.clear()
    download.download(server.address, tmp_path / "f", KNOWN)
    assert server.asked == ["bytes=120000-"] and (tmp_path / "f").read_bytes() == DATA


@pytest.mark.parametrize("expected", [KNOWN, Expected()])
def test_a_file_that_changed_in_between_is_not_mixed(server, tmp_path, expected):
    (tmp_path / "f.partial").write_bytes(b"of another version" * 100)
    (tmp_path / "f.version").write_text('"another"')
    download.download(server.address, tmp_path / "f", expected)
    assert (tmp_path / "f").read_bytes() == DATA


def test_without_version_and_checksum_it_starts_again(server, tmp_path):
    server.etag = None
    (tmp_path / "f.partial").write_bytes(b"from somewhere")
    download.download(server.address, tmp_path / "f", Expected())
    assert server.asked == [None] and (tmp_path / "f").read_bytes() == DATA


def test_a_wrong_beginning_is_found_and_fetched_again(server, tmp_path):
    server.etag = None
    (tmp_path / "f.partial").write_bytes(b"x" * 1000)
    download.download(server.address, tmp_path / "f", KNOWN)
    assert server.asked == ["bytes=1000-", None] and (tmp_path / "f").read_bytes() == DATA


def test_a_server_without_ranges_sends_all_of_it_again(server, tmp_path):
    server.ranges, server.breaks = False, [1000]
    download.download(server.address, tmp_path / "f", KNOWN)
    assert (tmp_path / "f").read_bytes() == DATA


def test_a_download_that_was_whole_already_is_taken(server, tmp_path):
    (tmp_path / "f.partial").write_bytes(DATA)
    download.download(server.address, tmp_path / "f", KNOWN)
    assert server.asked == [] and (tmp_path / "f").read_bytes() == DATA


@pytest.mark.parametrize(
    "expected, message",
    [
        (Expected(sha256="0" * 64), f"sha256 {SHA256}, expected 0000"),
        (Expected(size=7), "300,000 bytes, expected 7"),
        (Expected(md5="1" * 32), "md5 .*, expected 1111"),
    ],
)
def test_another_file_is_refused_and_removed(server, tmp_path, expected, message):
    with pytest.raises(BadInput, match=message):
        download.download(server.address, tmp_path / "f", expected)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_not_asked_for_again(server, tmp_path):
    with pytest.raises(BadInput, match="Not Found"):
        download.download(server.address + "s", tmp_path / "f", KNOWN)
    assert len(server.asked) == 1


def test_a_download_waits_for_another_of_the_same_file(server, tmp_path, capfd):
    """Experiments that are started together on one corpus."""
    address = server.address.removesuffix("file")
    manifest = {"addresses": [address], "mirror_folder": "small", "files": {"file": {}}}
    (tmp_path / "small").mkdir()
    with ThreadPoolExecutor() as pool:
        with file_lock(tmp_path / "small/.file.lock", "the first"):
            found = pool.submit(fetch_file, manifest, "file", tmp_path)
            while not (message := capfd.readouterr().err) and not found.done():
                pass
            assert message.startswith(f"[raw] waiting: {tmp_path}/small/.file.lock: locked by the ")
            assert not found.done() and server.asked == []
        assert found.result().read_bytes() == DATA and "waiting" not in capfd.readouterr().err


def test_a_part_that_is_longer_than_the_file_is_fetched_again(server, tmp_path):
    """Of a file whose size is not known: the server answers 416."""
    (tmp_path / "f.partial").write_bytes(DATA + b"more")
    download.download(server.address, tmp_path / "f", Expected(sha256=SHA256))
    assert (tmp_path / "f").read_bytes() == DATA
    assert server.asked == [f"bytes={len(DATA) + 4}-", None]


def test_a_download_that_was_damaged_since_is_fetched_again(server, tmp_path, capfd):
    files = {"file": {"size": len(DATA), "sha256": SHA256}}
    address = server.address.removesuffix("file")
    manifest = {"addresses": [address], "mirror_folder": "small", "files": files}
    path = fetch_file(manifest, "file", tmp_path)
    path.write_bytes(DATA[:-1] + bytes([DATA[-1] ^ 1]))
    assert fetch_file(manifest, "file", tmp_path).read_bytes() == DATA
    assert "fetching it again" in capfd.readouterr().err
    assert fetch_file(manifest, "file", tmp_path) == path and len(server.asked) == 2


def test_a_weak_version_does_not_resume(server, tmp_path):
    """Files of the same weak ETag may differ in their bytes."""
    server.etag, server.breaks = 'W/"one"', [1000]
    download.download(server.address, tmp_path / "f", Expected())
    assert server.asked == [None, None] and (tmp_path / "f").read_bytes() == DATA
