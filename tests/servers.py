"""A real server, in a process of its own, for tests."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conftest import PATIENCE, wait_for

from paretoscout.client import Server, connect

#: The same as `paretoscout serve`, with limits, which has no option for them.
LIMITED = """
import json, sys
from paretoscout.service.settings import Limits, ServerSettings
from paretoscout.service.start import serve

storage, port, limits = sys.argv[1:]
say = lambda address: print("serving at " + address, file=sys.stderr, flush=True)
serve(ServerSettings(storage, port=int(port), limits=Limits(**json.loads(limits))), say)
"""


class Served:
    """A server that runs. It may be killed, and started again at the same address.

    how: options of `paretoscout serve`. limits: in place of the usual ones; there are no other options then.
    """

    def __init__(self, storage: str, *how: str, limits: dict[str, Any] | None = None) -> None:
        self.storage, self.how, self.limits = storage, how, limits
        self.port = 0
        self.lines: list[str] = []
        self.start()

    def start(self) -> None:
        argv = ["-m", "paretoscout", "serve", "--storage", self.storage, "--port", str(self.port), *self.how]
        if self.limits is not None:
            argv = ["-c", LIMITED, self.storage, str(self.port), json.dumps(self.limits)]
        self.process = subprocess.Popen(
            [sys.executable, *argv], stderr=subprocess.PIPE, text=True, env=os.environ | {"PARETOSCOUT_TOKEN": ""}
        )
        self.reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self.reader.start()
        self.url = wait_for("the server to say its address", self._address)
        self.port = int(self.url.rpartition(":")[2])

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr as said:
            for text in said:
                self.lines.append(text)

    def _address(self) -> str | None:
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended: {''.join(self.lines)}")
        found = [re.search(r" at (http://\S+)", text) for text in self.lines]
        return next((each[1] for each in found if each), None)

    def ready(self) -> Served:
        """Wait until it can be used."""
        wait_for("the server to be ready", lambda: self.status("GET", "/readyz") == 200)
        return self

    def children(self) -> list[int]:
        """Return the numbers of the processes that it started."""
        found = []
        for child in Path("/proc").glob("[0-9]*/stat"):
            try:
                number, parent = int(child.parent.name), int(child.read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            if parent == self.process.pid:
                found.append(number)
        return found

    def kill(self) -> None:
        """End it at once, as a power cut would; and all its processes."""
        self.process.send_signal(signal.SIGSTOP)  # it starts no more of them
        for number in self.children():
            os.kill(number, signal.SIGKILL)
        self.kill_parent()

    def kill_parent(self) -> None:
        """End the first of its processes at once, and no other."""
        self.process.kill()
        self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.lines.clear()

    def stop(self) -> int:
        """End it as a system does, and return its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        return code

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request as it is, and return status, headers and body of the answer."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, {k.lower(): v for k, v in answer.headers.items()}, answer.read()

    def status(self, method: str, path: str, body: Any = None, **headers: str) -> int:
        try:
            return self.send(method, path, body, headers)[0]
        except (urllib.error.URLError, OSError):
            return 0

    def json(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """Send a request and return what the answer says."""
        return json.loads(self.send(method, path, body, headers)[2])


class Clients:
    """Clients of servers, which are closed together."""

    def __init__(self) -> None:
        self.open: list[Server] = []

    def connect(self, url: str, **how: Any) -> Server:
        self.open.append(connect(url, **{"patience": PATIENCE, **how}))
        return self.open[-1]

    def close(self) -> None:
        for each in self.open:
            each.close()


@contextmanager
def served(storage: str, *how: str, limits: dict[str, Any] | None = None) -> Iterator[Served]:
    server = Served(storage, *how, limits=limits)
    try:
        yield server.ready()
    finally:
        server.stop()
