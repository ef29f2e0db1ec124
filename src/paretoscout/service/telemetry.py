"""Numbers for Prometheus, and lines for the log."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Telemetry:
    """What a process counts. Where there are several, each answers for all of them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.shared = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        how: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("paretoscout_requests", "Requests that were answered", ["route", "status"], **how)
        self.latency = Histogram(
            "paretoscout_request_seconds", "How long an answer took", ["route"], buckets=BUCKETS, **how
        )
        self.lock_waits = Histogram(
            "paretoscout_lock_wait_seconds", "How long a writer waited for its turn", buckets=BUCKETS, **how
        )
        gauge = {"multiprocess_mode": "livemax", **how}
        self.studies = Gauge("paretoscout_studies", "Studies there are", **gauge)
        self.loaded = Gauge("paretoscout_studies_loaded", "Studies that are loaded, in one process", **gauge)
        self.open_trials = Gauge("paretoscout_open_trials", "Open trials of the studies that are loaded", **gauge)
        both = {"multiprocess_mode": "livesum", **how}
        self.memory = Gauge("paretoscout_memory_bytes", "Memory of all processes", **both)
        self.threads = Gauge("paretoscout_threads_in_use", "Threads that work on requests", **both)
        self.cpu = Counter("paretoscout_cpu_seconds", "Processor time", **how)
        self.wrong_tokens = Counter("paretoscout_wrong_tokens", "Requests with a wrong token", **how)
        self.streams = Gauge("paretoscout_streams", "Readers of live events, in one process", **gauge)

    def text(self) -> bytes:
        """Return all numbers, as Prometheus reads them."""
        if not self.shared:
            return generate_latest(self.registry)
        _forget_the_dead(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
        merged = CollectorRegistry()
        MultiProcessCollector(merged)  # type: ignore[no-untyped-call]
        return generate_latest(merged)


def _forget_the_dead(folder: Path) -> None:
    """Forget what processes that are gone have now: what they counted is kept."""
    for number in {path.stem.rpartition("_")[2] for path in folder.glob("gauge_live*.db")}:
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            mark_process_dead(int(number), str(folder))  # type: ignore[no-untyped-call]


class JsonLines(logging.Formatter):
    """A line of JSON for each thing that happened."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        said = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=True, default=str)


def logger() -> logging.Logger:
    """Return the log of the server: lines of JSON, on standard error."""
    log = logging.getLogger("paretoscout.service")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
    return log


def log_all() -> None:
    """Have everything that this process says on standard error said as lines of JSON, also what others say."""
    root = logging.getLogger()
    if not any(isinstance(handler.formatter, JsonLines) for handler in root.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        handler.setLevel(logging.WARNING)
        root.addHandler(handler)
    logging.captureWarnings(True)

    def unexpected(kind: Any, error: Any, trace: Any) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        root.critical("unexpected end", exc_info=(kind, error, trace))

    sys.excepthook = unexpected
    threading.excepthook = lambda told: unexpected(told.exc_type, told.exc_value, told.exc_traceback)


def say(text: str, warning: bool = False) -> None:
    """Say something on standard error: a sentence in a terminal, else a line of the log."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)
    else:
        logger().log(logging.WARNING if warning else logging.INFO, text)
