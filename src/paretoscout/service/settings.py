"""What a server is told when it starts, and its limits."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import asdict, dataclass, field

from ..checks import DEEPEST, LARGEST


@dataclass(frozen=True)
class Limits:
    """How much a caller may ask for. What is beyond it is refused, and the answer says so.

    The table of docs/service.md is held against these values by a test.
    """

    body: int = 8 * 2**20  # bytes of a request
    small_body: int = 10_000  # bytes of a request with a token that only reads, and of signing in
    bodies: int = 64 * 2**20  # bytes of all requests that are in memory at the same time, for each process
    header_seconds: float = 10.0  # in which the headers must have arrived
    seconds: float = 30.0  # in which the body must have arrived, and the caller must take a part of the answer
    connections: int = 1_000  # at the same time, for each process
    threads: int = 32  # for short requests, for each process
    long_threads: int = 4  # for reads that take long, for each process
    waiting: int = 128  # requests that wait for a thread
    wait_seconds: float = 5.0  # that a read waits for a thread
    read_seconds: float = 2.0  # of CPU for a read
    depth: int = DEEPEST  # of JSON
    number: float = LARGEST  # size of a number
    text: int = 500  # letters: of notes, titles, limits, trade-offs
    times: int = 20  # letters of a time span
    names: int = 200  # letters of the name of an option, a metric, a block, a tag
    metrics: int = 100
    guards: int = 100
    tradeoffs: int = 100
    contexts: int = 1_000  # features of options, categories counted as they are encoded
    cells: int = 2_000_000  # options times metrics, or options times features
    tags: int = 100
    repeated: int = 200  # letters of what was sent that an answer repeats
    batch: int = 10_000  # observations in one request, and trials in one ask
    arms: int = 100_000
    blocks: int = 100_000
    open_trials: int = 100_000  # of one study
    studies: int = 1_000  # that were made with one token, or without any
    name: int = 100  # letters of the name of a study, of a worker or of a key
    workers: int = 1_000  # names of workers of one token
    streams: int = 200  # readers of live events, for each process
    failures: int = 20  # wrong tokens from one address, in a minute


@dataclass(frozen=True)
class ServerSettings:
    """What a server is told when it starts."""

    storage: str
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1  # processes
    memory: int = 512 * 2**20  # bytes for open studies, for each process
    warm: bool = True  # what studies need is compiled before it says that it is ready
    https: bool = False  # a proxy in front speaks HTTPS: cookies say so
    names: tuple[str, ...] = ()  # by which the server is called from outside
    limits: Limits = field(default_factory=Limits)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def alone(self) -> bool:
        """True if only programs on this machine are to reach it: no other address, no proxy, no name for outside."""
        return self.loopback and not self.https and not self.names

    def text(self) -> str:
        """Return it as text, for the processes that the server starts."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> ServerSettings:
        """Return what `text` was called on."""
        told = json.loads(text)
        return cls(**{**told, "limits": Limits(**told["limits"]), "names": tuple(told["names"])})


def is_loopback(host: str) -> bool:
    """Whether an address is that of this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
