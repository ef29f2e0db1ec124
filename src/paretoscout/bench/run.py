"""Runs of commands: what they took, and what they said. Nothing that they started is left behind."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from . import launcher

#: How long the process that starts commands may take to end one of them, and itself.
PATIENCE = launcher.PATIENCE + 1.0


class LauncherGone(InvalidInput):
    """Nothing can be run any more."""


@dataclass(frozen=True)
class Run:
    """What one run gave."""

    code: int  # exit code; negative: the signal that ended it
    seconds: float  # wall time
    user: float  # CPU seconds, of the command and all it waited for
    system: float
    rss: int  # peak memory in bytes, of the largest process
    stdout: str  # the last of it
    stderr: str  # the last of it
    folder: str
    timed_out: bool = False
    problem: str = ""  # why it could not be run
    least_rss: int = 0  # a peak up to this cannot be told from others
    sizes: Mapping[str, int | str] = field(
        default_factory=dict
    )  # of files, by path, after the run; or why there is none


@dataclass(frozen=True)
class Command:
    """What is to be run, and how."""

    text: str
    shell: bool = False
    stdin: str | None = None
    timeout: float | None = None
    capture: bool = True  # or else what it prints is lost
    measured: bool = True  # whether its memory counts
    may_fail: bool = False  # whether it may end with another exit code than 0
    sizes: tuple[str, ...] = ()  # files whose size counts, after the run

    def __post_init__(self) -> None:
        words(self.text, self.shell)

    def told(self) -> dict[str, Any]:
        """The command as the launcher takes it."""
        kept = {what: getattr(self, what) for what in ("stdin", "timeout", "capture", "measured", "may_fail")}
        return {**kept, "argv": words(self.text, self.shell), "sizes": list(self.sizes)}


@dataclass(frozen=True)
class Job:
    """A command to be measured, and what goes before and after it."""

    command: Command
    setup: Command | None = None  # before all
    prepare: Command | None = None  # before every round
    cleanup: Command | None = None  # after every round
    rounds: int = 1  # only the last one counts

    def told(self) -> dict[str, Any]:
        """The job as the launcher takes it."""
        steps = {what: getattr(self, what) for what in ("setup", "prepare", "command", "cleanup")}
        return {"rounds": self.rounds, **{what: step and step.told() for what, step in steps.items()}}


@dataclass(frozen=True)
class Done:
    """What a job gave: its steps, and how long all of it took."""

    failed: bool  # whether a step did, before the rounds were over
    steps: tuple[tuple[str, Run], ...]  # "setup", "prepare", "command" or "cleanup", in their order
    seconds: float


class Interrupted(KeyboardInterrupt):
    """A block was cut short; what had ended by then is kept."""

    def __init__(self, done: list[Done]) -> None:
        super().__init__()
        self.done = done


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
    """Runs blocks of commands, one command at a time, each in a process group of its own."""

    def __init__(self) -> None:
        self.channel: socket.socket | None = None
        self.process: subprocess.Popen[bytes]

    def _start(self) -> socket.socket:
        channel, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(launcher.__file__)), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # what ends this process group is for us to hand on
            )
        return channel

    def close(self) -> None:
        """End the launcher; nothing of it is left."""
        if self.channel is None:
            return
        self.channel.close()
        self.channel = None
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def block(
        self,
        jobs: Sequence[Job],
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        stop_on_failure: bool = False,
    ) -> list[Done]:
        """Run jobs one after the other and return what they gave; while they run, this process only waits.

        What was not begun because another one failed is left out, at the end.
        """
        where = os.path.abspath(folder or os.getcwd())
        asked = {
            "folder": where,
            "environment": {**os.environ, **(environment or {})},
            "jobs": [job.told() for job in jobs],
            "stop_on_failure": stop_on_failure,
        }
        if self.channel is None:
            self.channel = self._start()
        try:
            launcher.send(self.channel, asked)
            answer = self._answer(self.channel)
        except KeyboardInterrupt:  # nothing goes on running, and nothing that has ended is lost
            with contextlib.suppress(OSError, LauncherGone):
                self.channel.sendall(launcher.LENGTH.pack(0))
                raise Interrupted(_done(self._answer(self.channel), where)) from None
            raise
        except OSError as problem:
            raise LauncherGone(f"the process that starts commands is gone: {problem.strerror}") from None
        return _done(answer, where)

    def run(
        self,
        command: str,
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        **how: Any,
    ) -> Run:
        """Run one command to its end, or to its timeout."""
        (done,) = self.block([Job(Command(command, may_fail=True, **how))], folder=folder, environment=environment)
        ((_, run),) = done.steps
        if run.problem:
            raise InvalidInput(run.problem)
        return run

    def _answer(self, channel: socket.socket) -> Any:
        answer = launcher.receive(channel)
        if answer is None:
            raise LauncherGone("the process that starts commands is gone")
        return answer


def _done(answer: Any, folder: str) -> list[Done]:
    """What the launcher said."""
    return [
        Done(job["failed"], tuple((what, _run(outcome, folder)) for what, outcome in job["steps"]), job["seconds"])
        for job in answer
    ]


def _run(outcome: dict[str, Any], folder: str) -> Run:
    nothing = {"seconds": 0.0, "user": 0.0, "system": 0.0, "rss": 0}
    said = {what: outcome[what].decode(errors="replace") for what in ("stdout", "stderr")}
    return Run(**{**nothing, **outcome, **said, "folder": folder})
