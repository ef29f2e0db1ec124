"""A network that loses answers: what a client sends reaches the server, and its answer does not come back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Flaky:
    """Stands between a client and a server, on a loopback port of its own.

    lose: is called with the first bytes of each answer, when the server has done what it was asked to; if it says True,
    the answer is lost, and the connection with it.
    """

    def __init__(self, port: int, lose: Callable[[bytes], bool]) -> None:
        self.port, self.lose, self.lost = port, lose, 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Flaky:
        return self

    def __exit__(self, *_: Any) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        """Carry requests there and answers back, until one is lost or either side is gone."""
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                return
            with server:
                threading.Thread(target=_pump, args=(client, server), daemon=True).start()
                with suppress(OSError):
                    while answer := server.recv(65_536):
                        if self.lose(answer):
                            self.lost += 1
                            break
                        client.sendall(answer)
                for each in (client, server):
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)  # closing alone would wait for whoever reads


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
