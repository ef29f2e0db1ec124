"""What the routes of a server work with."""

from __future__ import annotations

import threading

from ..errors import Conflict, InvalidInput, UnknownName
from ..storage import Answer, storage_of
from ..storage.sql import SQLStorage
from .access import Access, Who
from .live import Live
from .settings import ServerSettings
from .studies import Key, OpenStudies
from .telemetry import Telemetry
from .threads import Threads
from .tokens import Tokens


class Service:
    """Storage, tokens, open studies and numbers of one process."""

    def __init__(self, settings: ServerSettings) -> None:
        storage = storage_of(settings.storage, later=True)
        if not isinstance(storage, SQLStorage):
            raise InvalidInput("storage of a server must be a file or a database, got 'memory'")
        self.settings, self.storage = settings, storage
        self.telemetry = Telemetry()
        storage.on_wait = self.telemetry.lock_waits.observe
        self.tokens = Tokens(storage)
        self.access = Access(settings, self.tokens)
        self.access.on_failure = self.telemetry.wrong_tokens.inc
        self.studies = OpenStudies(storage, self.access, settings.memory, settings.limits.open_trials)
        self.threads = Threads(settings.limits)
        self.live = Live(storage, self.access, self.threads, settings.limits.streams)
        self.ready = threading.Event()

    def close(self) -> None:
        """Let readers of live events go, and stop long reads: the server ends."""
        self.live.close()
        self.threads.close()

    def keep(self, name: str, who: Who, key: Key, text: str) -> None:
        """Keep an answer to what is done already, and would be the same if it were done again."""
        if key.key is None:
            return
        try:
            digest = f"{key.digest}:{self.storage.head(name).log}"
            with self.storage.writing(name, who.worker) as writer:
                writer.keep(Answer(who.token, key.key, digest, text, self.storage.now()))
        except (Conflict, UnknownName):
            pass  # the same request was faster, elsewhere; or the study is deleted already

    def metrics(self) -> bytes:
        """Return all numbers, as Prometheus reads them."""
        numbers = self.telemetry
        numbers.studies.set(len(self.storage.names()))
        numbers.loaded.set(len(self.studies))
        numbers.open_trials.set(self.studies.open_trials())
        numbers.streams.set(self.live.readers)
        return numbers.text()
