"""A running ``transformer-plugin serve`` for tests."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess

from fairseq_commands import environment

JSON = {"Content-Type": "application/json"}


def arguments(run, *more):
    checkpoint = str(run / "checkpoints/averaged.pt")
    return ["serve", str(run / "data-bin"), "--path", checkpoint, "--cpu", *more]


class Service:
    """A running service."""

    def __init__(self, run, *more):
        words = ["transformer-plugin", *arguments(run, "--port", "0", *more)]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        first = self.process.stdout.readline()
        assert first.startswith("http://127.0.0.1:"), first + self.process.stderr.read()
        self.port = int(first.split()[0].rpartition(":")[2])

    def request(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def translate(self, body):
        body = json.dumps(body) if isinstance(body, dict) else body
        status, answer, _ = self.request("POST", "/translate", body, **JSON)
        return status, json.loads(answer)

    def health(self):
        return json.loads(self.request("GET", "/health")[1])

    def connect(self, sent=b""):
        """A connection on which something has been sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sendall(sent)
        return connection

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors
