"""Starting and ending a server."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from ..errors import InvalidInput
from .app import VARIABLE
from .folders import disposable
from .protocol import Connection
from .settings import ServerSettings
from .telemetry import log_all

APPLICATION = "paretoscout.service.app:make_app"
#: What was acknowledged is finished within so many seconds when the server is told to end.
GRACE_SECONDS = 15
#: Bytes of the headers of a request.
LONGEST_HEADERS = 32_768
#: Files that a process has open besides connections, at most.
OTHER_FILES = 200
#: A process that does not answer the first one for so long is stuck, and replaced. To load everything takes a while, on
#: a slow or busy machine much longer than the 5 seconds that are usual: it would be replaced for ever.
HEALTHY_SECONDS = 120


def serve(settings: ServerSettings, started: Callable[[str], None]) -> None:
    """Serve until told to end. started: is told the address, once it can be reached."""
    os.environ[VARIABLE] = settings.text()
    log_all()
    how: dict[str, Any] = {
        "factory": True,
        "host": settings.host,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": GRACE_SECONDS,
        "http": Connection,  # which limits connections
        "ws": "none",
        "h11_max_incomplete_event_size": LONGEST_HEADERS,
        "timeout_worker_healthcheck": HEALTHY_SECONDS,
    }
    _allow_files(settings.limits.connections + OTHER_FILES)
    bound = _bound(settings)
    port = bound.getsockname()[1]
    started(f"http://{_shown(settings.host)}:{port}")
    if settings.workers == 1:
        # uvicorn ends in good order and then raises the signal once more: this is where it ends up
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        uvicorn.Server(uvicorn.Config(APPLICATION, port=port, **how)).run(sockets=[bound])
        return
    with disposable("paretoscout-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # they count together
        Multiprocess(uvicorn.Config(APPLICATION, port=port, workers=settings.workers, **how), [bound]).run()


def _allow_files(wanted: int) -> None:
    """Let this process and its children have so many files open, if the system allows it."""
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _bound(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # connections inherit it: without, the end of an answer waits 40 ms until the caller confirms its beginning; asyncio
    # sees to it only where the socket says that it speaks TCP
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
    except OSError as problem:
        bound.close()
        raise InvalidInput(
            f"--port must be one that is free on {settings.host}, got {settings.port}: {problem.strerror}"
        ) from None
    bound.listen(2048)
    bound.set_inheritable(True)
    return bound


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
