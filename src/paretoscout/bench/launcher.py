"""A process that starts commands and says what they took.

It is handed a whole block of commands, runs them one after the other, and reports at the end of the block: while a
command runs, neither the one who asked nor this process does anything. It is run as a script, imports next to nothing,
and speaks over a socket.

A measured command is started by a shell that waits at a gate: all is made ready, then a byte opens the gate, the shell
becomes the command, and the clock runs. This is for the memory. The peak that the kernel reports of a process includes
what it was before it became the command: a child of this process had ten megabytes then. A fork of a shell has less
than one, which nearly all commands exceed. The shell itself is ended before the gate opens, so that its fork belongs to
this process. That takes Linux; elsewhere commands are started directly, and lower peaks than that of this process
cannot be known.
"""

from __future__ import annotations

import contextlib
import fcntl
import marshal
import os
import resource
import select
import signal
import socket
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What is kept of what a command says: the last part.
STDOUT_TAIL, STDERR_TAIL = 1_000_000, 2_000
#: How long a command that is told to end may take to do so.
PATIENCE = 2.0
#: A pipe holds no more than so many pieces that are read at once.
MOST_LEFT = 64
SHELL = "/bin/sh"
#: In a fork of the shell: say who we are, wait at the gate, become the command. What comes after keeps it a fork.
GATE = '(read -r me rest </proc/self/stat; echo "$me" >&8; read -r open <&9 || exit; %s)\n:'
SAYS, OPENS, ABOVE = 8, 9, 10  # numbers of files at the gate; a shell knows those below ten
#: What shells put into the environment of their own accord.
OF_SHELLS = ("PWD", "OLDPWD", "SHLVL")
BECOME_THE_COMMAND = 'exec "$@" 8>&- 9<&-'
#: By how much the memory of a shell at the gate may vary.
VARIES_KB = 64
PR_SET_CHILD_SUBREAPER = 36
#: On macOS the peak is in bytes.
PER_KB = 1024 if sys.platform == "darwin" else 1
DEFAULTS = [signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ]
LENGTH = struct.Struct("!Q")


class Stopped(Exception):
    """The one who asked wants no more, or is gone."""


class Launcher:
    """Runs blocks of commands for the one at the other end of a socket."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        channel.set_inheritable(False)
        self.adopts = _adopts_orphans()
        self.floors: dict[tuple[tuple[str, str], ...], int] = {}  # by environment: least peak that can be known, in kB
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asks
        # the end of a command wakes us, beside the other things that do
        self.woken, wakes = os.pipe()
        for fd in (self.woken, wakes):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Run blocks until the other side is gone."""
        while (block := receive(self.channel)) is not None:
            self.folder, self.environment = block["folder"], block["environment"]
            done = []
            try:
                for job in block["jobs"]:
                    done.append(self.job(job))
                    if block["stop_on_failure"] and done[-1]["failed"]:
                        break
            except Stopped:
                pass  # what is done is told
            send(self.channel, done)

    def job(self, job: Any) -> dict[str, Any]:
        """Set up, then so many times prepare, run, clean up; what fails ends it."""
        began = time.perf_counter()
        self.steps: list[tuple[str, dict[str, Any]]] = []
        failed = not self.step(job, "setup") or not all(self.round(job) for _ in range(job["rounds"]))
        return {"failed": failed, "steps": self.steps, "seconds": time.perf_counter() - began}

    def round(self, job: Any) -> bool:
        """Once what is to be measured; what was prepared is cleaned up also after a failure."""
        if not self.step(job, "prepare"):
            return False
        good = self.step(job, "command")
        return self.step(job, "cleanup") and good

    def step(self, job: Any, what: str) -> bool:
        """Run one of the commands of a job, if it has that; return whether it did what it should."""
        step = job[what]
        if step is None:
            return True
        outcome = self.run(step)
        self.steps.append((what, outcome))
        return not outcome["problem"] and not outcome["timed_out"] and (outcome["code"] == 0 or step["may_fail"])

    def run(self, step: Any) -> dict[str, Any]:
        """Run a command to its end, or to its timeout."""
        if select.select([self.channel], [], [], 0)[0]:
            raise Stopped
        outcome: dict[str, Any] = {"problem": "", "timed_out": False, "code": 0, "sizes": {}}
        tails: list[Tail] = []
        fds: list[int] = []
        try:
            os.chdir(self.folder)
            fds.append(os.open(step["stdin"] or os.devnull, os.O_RDONLY))
            for most in (STDOUT_TAIL if step["capture"] else 0, STDERR_TAIL):
                tails.append(Tail(most))
                fds.append(tails[-1].end)
            outcome |= self.started(step, fds, tails)
        except (OSError, ValueError) as problem:
            named = getattr(problem, "filename", None)
            outcome["problem"] = (getattr(problem, "strerror", None) or str(problem)) + (f": {named}" if named else "")
        finally:
            for fd in fds:
                os.close(fd)
            outcome |= zip(("stdout", "stderr"), [tail.kept() for tail in tails] or [b"", b""], strict=False)
        outcome["sizes"] = {path: size_of(path) for path in step["sizes"]}
        return outcome

    def started(self, step: Any, fds: list[int], tails: list[Tail]) -> dict[str, Any]:
        """Start a command, wait for its end, end what it left behind, and say what it took."""
        argv = step["argv"]
        program = found(argv[0], self.environment.get("PATH", os.defpath))
        gate = self.gate(argv, fds, BECOME_THE_COMMAND) if step["measured"] and self.may_use_gate() else None
        if gate is None:
            actions = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(fds)]
            began = time.perf_counter()
            pid = group = _spawn(program, argv, self.environment, actions)
        else:
            pid, group, opens = gate
        try:
            if gate is not None:
                began = time.perf_counter()
                os.write(opens, b"\n")
            timed_out, status, usage = self.wait(pid, group, step["timeout"], tails)
            seconds = time.perf_counter() - began
        finally:
            _signal(group, signal.SIGKILL)  # what the command left behind
            if gate is not None:
                os.close(opens)
            self.reap()
        floor = self.floor(fds) if gate else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {
            "timed_out": timed_out,
            "code": os.waitstatus_to_exitcode(status),
            "seconds": seconds,
            "user": usage.ru_utime,
            "system": usage.ru_stime,
            "rss": usage.ru_maxrss * 1024 // PER_KB,
            "least_rss": floor * 1024 // PER_KB,
        }

    def wait(self, pid: int, group: int, timeout: float | None, tails: list[Tail]) -> tuple[bool, int, Any]:
        """Wait for a command to end; ask it to, and then insist, if it takes too long.

        Returns whether it did, its status and what it used. This process sleeps meanwhile, unless the command says
        something.
        """
        due = [] if timeout is None else [(timeout, signal.SIGTERM), (timeout + PATIENCE, signal.SIGKILL)]
        poll, began, stopped, late = select.poll(), time.monotonic(), False, False
        reading = {tail.read: tail for tail in tails if tail.read is not None}
        for fd in (self.woken, self.channel.fileno(), *reading):
            poll.register(fd, select.POLLIN)
        while True:
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                break
            ready = {fd for fd, _ in poll.poll(max(0.0, 1e3 * (began + due[0][0] - time.monotonic())) if due else None)}
            if self.woken in ready:
                os.read(self.woken, 1 << 10)
            for fd in ready & reading.keys():
                if not reading[fd].take():
                    poll.unregister(fd)
            if self.channel.fileno() in ready:  # the other side says nothing while a block runs, but to end it
                poll.unregister(self.channel)
                stopped, now = True, time.monotonic() - began
                due = [(now, signal.SIGTERM), (now + PATIENCE, signal.SIGKILL)]
            while due and time.monotonic() >= began + due[0][0]:
                late = True
                _signal(group, due.pop(0)[1])
        if stopped:
            raise Stopped
        return late, status, usage

    def may_use_gate(self) -> bool:
        """Whether a shell can start the command: it passes on no variables whose names it does not understand."""
        return self.adopts and all(name.isidentifier() and name.isascii() for name in self.environment)

    def gate(self, argv: list[str], fds: list[int], then: str) -> tuple[int, int, int]:
        """Return a command before its start: its number, that of its group, and the file that opens the gate."""
        unset = [name for name in OF_SHELLS if name not in self.environment]
        script = GATE % (f"unset {' '.join(unset)}; {then}" if unset else then)
        (says, said), (opened, opens) = _pipe(), _pipe()
        targets = [*enumerate(fds), (SAYS, said), (OPENS, opened)]
        actions = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in targets]
        try:
            shell = _spawn(SHELL, [SHELL, "-c", script, SHELL, *argv], self.environment, actions)
            os.close(said)
            said = -1
            pid = os.read(says, 100)
            os.kill(shell, signal.SIGKILL)  # its fork is ours from now on
            os.waitpid(shell, 0)
            if not pid:
                raise OSError(0, "cannot start a command", SHELL)
        except OSError:
            os.close(opens)
            raise
        finally:
            for fd in (says, said, opened):
                if fd >= 0:
                    os.close(fd)
        return int(pid), shell, opens

    def floor(self, fds: list[int]) -> int:
        """The memory of a shell at the gate, in kB: below that nothing is known of a command."""
        key = tuple(self.environment.items())
        if key not in self.floors:
            peaks = []
            for _ in range(3):
                pid, _, opens = self.gate([], fds, "exit")
                os.write(opens, b"\n")
                peaks.append(os.wait4(pid, 0)[2].ru_maxrss)
                os.close(opens)
            self.floors = {key: max(peaks) + VARIES_KB}
        return self.floors[key]

    def reap(self) -> None:
        """Take note of the end of what commands left behind, lest they stay in the table of processes."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


class Tail:
    """Reads all that comes and keeps the last of it: a command may write gigabytes."""

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0
        self.chunks: list[bytes] = []
        self.read: int | None = None
        if most == 0:
            self.end = os.open(os.devnull, os.O_WRONLY)
            return
        self.read, self.end = _pipe()
        os.set_blocking(self.read, False)

    def take(self) -> bool:
        """Read some of what is there; return whether there can be more."""
        if self.read is None:
            return False
        try:
            chunk = os.read(self.read, 1 << 16)
        except BlockingIOError:
            return True
        self.chunks.append(chunk)
        self.size += len(chunk)
        if self.size > 2 * self.most + (1 << 20):
            self.chunks = [b"".join(self.chunks)[-self.most :]]
            self.size = len(self.chunks[0])
        return bool(chunk)

    def kept(self) -> bytes:
        """Read the rest and return the last of all."""
        for _ in range(MOST_LEFT):  # somebody outside the group may go on writing
            if not self.take():
                break
        if self.read is not None:
            os.close(self.read)
            self.read = None
        return b"".join(self.chunks)[-self.most :] if self.most else b""


def size_of(path: str) -> int | str:
    """Return the size of a file, or of all files in a folder; or why it cannot be known."""
    try:
        if not os.path.isdir(path):
            return os.stat(path).st_size
        inside = (os.path.join(where, name) for where, _, names in os.walk(path) for name in names)
        return sum(os.stat(name).st_size for name in inside if os.path.isfile(name))
    except OSError as problem:
        return f"{problem.strerror}: {path}"


def found(name: str, path: str) -> str:
    """Return where a program lies."""
    places = [""] if os.sep in name else [os.path.join(place or os.curdir, "") for place in path.split(os.pathsep)]
    for place in places:
        if os.access(place + name, os.X_OK) and not os.path.isdir(place + name):
            return place + name
    there = os.path.exists(name) and os.sep in name
    raise PermissionError(0, "cannot run", name) if there else FileNotFoundError(0, "no such command or folder", name)


def send(channel: socket.socket, what: Any) -> None:
    """Send something to the other side."""
    data = marshal.dumps(what)
    channel.sendall(LENGTH.pack(len(data)) + data)


def receive(channel: socket.socket) -> Any:
    """Return what the other side sent; None if it is gone or wants no more."""
    while True:
        head = _exactly(channel, LENGTH.size)
        if head is None:
            return None
        (length,) = LENGTH.unpack(head)
        if length:
            data = _exactly(channel, length)
            return None if data is None else marshal.loads(data)
        # the end of a block that had ended already


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    parts = []
    while size:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _spawn(program: str, argv: list[str], environment: dict[str, str], actions: list[Any]) -> int:
    """Start a program in a process group of its own, with all signals as usual.

    Not in a session of its own: a busy Linux gives each session its share of the processor, and a new one waits for it.
    """
    return os.posix_spawn(
        program, argv, environment, file_actions=actions, setpgroup=0, setsigmask=[], setsigdef=DEFAULTS
    )


def _pipe() -> list[int]:
    """A pipe whose ends have numbers that are free at the gate."""
    ends = os.pipe()
    try:
        return [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, ABOVE) for end in ends]
    finally:
        for end in ends:
            os.close(end)


def _adopts_orphans() -> bool:
    """Become the one to whom processes belong whose parent is gone; return whether that can be."""
    if not sys.platform.startswith("linux") or not os.path.exists("/proc/self/stat") or not os.access(SHELL, os.X_OK):
        return False
    try:
        import ctypes

        return ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    except (ImportError, OSError, AttributeError):
        return False


def _signal(group: int, number: int) -> None:
    """Send a signal to a command and to all it started, unless they are gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    with contextlib.suppress(OSError):  # the other side is gone
        Launcher(socket.socket(fileno=int(sys.argv[1]))).serve()
