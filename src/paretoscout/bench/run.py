"""One run of a command: what it took, and what it said. Nothing that it started is left behind."""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidInput

#: What is kept of what a command says: the last part.
STDOUT_TAIL, STDERR_TAIL = 1_000_000, 2_000
#: How long a command that is told to end may take to do so.
PATIENCE = 2.0
LAUNCHER = Path(__file__).with_name("launcher.py")


class LauncherGone(InvalidInput):
    """Nothing can be run any more."""


@dataclass(frozen=True)
class Run:
    """What one run gave."""

    code: int  # exit code; negative: the signal that ended it
    seconds: float  # wall time
    user: float  # CPU seconds, of the command and all it waited for
    system: float
    rss: int  # peak memory in bytes, of the largest process; about ten megabytes at least
    stdout: str  # the last of it
    stderr: str  # the last of it
    folder: str
    timed_out: bool = False


def words(command: str, shell: bool) -> list[str]:
    """Return the command as the operating system takes it."""
    if shell:
        return ["/bin/sh", "-c", command]
    try:
        split = shlex.split(command)
    except ValueError as problem:
        raise InvalidInput(f"command must be words as a shell reads them, but: {problem}: {command!r}") from None
    if not split:
        raise InvalidInput(f"command must not be empty, got {command!r}")
    return split


class Runner:
    """Runs commands, one at a time, each in a process group of its own."""

    def __init__(self) -> None:
        # messages, not a stream: the answers to a short command come close together
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", str(LAUNCHER), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # what ends this process group is for us to hand on
            )

    def close(self) -> None:
        """End the launcher; nothing of it is left."""
        self.channel.close()
        try:
            self.launcher.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.launcher.kill()
            self.launcher.wait()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def run(
        self,
        command: str,
        *,
        shell: bool = False,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout: float | None = None,
        capture: bool = True,
    ) -> Run:
        """Run a command to its end, or to the timeout; without `capture`, stdout is lost."""
        argv, where = words(command, shell), os.path.abspath(folder or os.getcwd())
        told = {**os.environ, **(environment or {})}
        program = shutil.which(argv[0], path=told.get("PATH")) or argv[0]
        try:
            source = os.open(stdin or os.devnull, os.O_RDONLY)
        except OSError as problem:
            raise InvalidInput(f"cannot read {stdin}: {problem.strerror}") from None
        out, err = _Tail(STDOUT_TAIL if capture else 0), _Tail(STDERR_TAIL)
        try:
            socket.send_fds(self.channel, [marshal.dumps((program, argv, where, told))], [source, out.end, err.end])
        except OSError as problem:
            raise InvalidInput(f"cannot run {argv[0]!r} with its environment: {problem.strerror}") from None
        finally:
            for fd in (source, out.end, err.end):
                os.close(fd)
        pid, number, said = self._answer()  # if that is interrupted, the launcher ends the command when it is closed
        if pid < 0:
            out.text(), err.text()
            missing = where if not os.path.isdir(where) else argv[0]
            what = (
                f"no such command or folder: {missing}" if number == errno.ENOENT else f"cannot run {argv[0]!r}: {said}"
            )
            raise InvalidInput(what)
        timer = _Timeout(pid, timeout)
        try:
            code, seconds, user, system, kilobytes = self._answer()
        except BaseException:  # Ctrl-C: nothing goes on running
            _signal(pid, signal.SIGTERM)
            insisting = threading.Timer(PATIENCE, _signal, [pid, signal.SIGKILL])
            insisting.start()
            with contextlib.suppress(LauncherGone):
                self._answer()
            insisting.cancel()
            raise
        finally:
            timer.cancel()
            _signal(pid, signal.SIGKILL)  # what the command left behind
        return Run(code, seconds, user, system, kilobytes * 1024, out.text(), err.text(), where, timer.fired)

    def _answer(self) -> Any:
        data = self.channel.recv(1 << 16)
        if not data:
            raise LauncherGone("the process that starts commands is gone")
        return marshal.loads(data)


class _Tail:
    """Reads all that comes and keeps the last of it: a command may write gigabytes."""

    def __init__(self, most: int) -> None:
        self.most, self.chunks, self.size = most, deque[bytes](), 0
        if most == 0:
            self.end, self.thread = os.open(os.devnull, os.O_WRONLY), None
            return
        read, self.end = os.pipe()
        self.thread = threading.Thread(target=self._read, args=[read], daemon=True)
        self.thread.start()

    def _read(self, fd: int) -> None:
        with contextlib.closing(os.fdopen(fd, "rb", buffering=0)) as pipe:
            while chunk := pipe.read(1 << 16):
                self.chunks.append(chunk)
                self.size += len(chunk)
                while self.size - len(self.chunks[0]) >= self.most:
                    self.size -= len(self.chunks.popleft())

    def text(self) -> str:
        """Return what was kept, once the last one who could write is gone."""
        if self.thread is not None:
            self.thread.join(PATIENCE)  # somebody outside the group may hold the other end
        return b"".join(self.chunks)[-self.most :].decode(errors="replace")


class _Timeout:
    """Ends a command that takes too long: asks first, then insists."""

    def __init__(self, pid: int, seconds: float | None) -> None:
        self.pid, self.fired = pid, False
        self.timers: list[threading.Timer] = []
        if seconds is not None:
            self.timers = [
                threading.Timer(seconds, self._fire, [signal.SIGTERM]),
                threading.Timer(seconds + PATIENCE, self._fire, [signal.SIGKILL]),
            ]
        for timer in self.timers:
            timer.daemon = True
            timer.start()

    def _fire(self, number: int) -> None:
        self.fired = True
        _signal(self.pid, number)

    def cancel(self) -> None:
        """The command has ended."""
        for timer in self.timers:
            timer.cancel()


def _signal(leader: int, number: int) -> None:
    """Send a signal to a command and to all it started, unless they are gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
