"""Numbers for Prometheus, and lines for the log."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

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
        self.streams = Gauge("paretoscout_streams", "Readers of live events, in one process", **gauge)

    def text(self) -> bytes:
        """Return all numbers, as Prometheus reads them."""
        if not self.shared:
            return generate_latest(self.registry)
        merged = CollectorRegistry()
        MultiProcessCollector(merged)  # type: ignore[no-untyped-call]
        return generate_latest(merged)


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
