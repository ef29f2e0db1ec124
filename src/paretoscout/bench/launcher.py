"""A small process that starts commands and says what they took.

The memory that the kernel reports of a command is at least that of the process that started it. This one does nothing
else, so that commands of ten megabytes can be told from those of twenty. It is run as a script, imports next to
nothing, and speaks over a socket: a request comes with the file descriptors for stdin, stdout and stderr.
"""

import contextlib
import marshal
import os
import select
import signal
import socket
import sys
import time

#: Longest message: a command with its environment.
MOST = 1 << 20


def serve(channel: socket.socket) -> None:
    """Answer requests until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asks
    defaults = [signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ]
    while True:
        data, fds, _, _ = socket.recv_fds(channel, MOST, 3)
        if not data:
            return
        program, argv, folder, environment = marshal.loads(data)
        try:
            os.chdir(folder)
            actions = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(fds)]
            began = time.perf_counter()
            pid = os.posix_spawnp(
                program, argv, environment, file_actions=actions, setsid=True, setsigmask=[], setsigdef=defaults
            )
        except (OSError, ValueError) as problem:
            answer = (-1, getattr(problem, "errno", 0), getattr(problem, "strerror", None) or str(problem))
            channel.send(marshal.dumps(answer))
            continue
        finally:
            for fd in fds:
                os.close(fd)
        with contextlib.suppress(OSError):  # nobody there: the command is ended below
            channel.send(marshal.dumps((pid, 0, "")))
        end_if_alone(pid, channel)
        _, status, usage = os.wait4(pid, 0)
        seconds = time.perf_counter() - began
        code = os.waitstatus_to_exitcode(status)
        channel.send(marshal.dumps((code, seconds, usage.ru_utime, usage.ru_stime, usage.ru_maxrss)))


def end_if_alone(pid: int, channel: socket.socket) -> None:
    """Wait for a command to end, and end it with all it started if the one who asked for it is gone."""
    try:
        ended = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return  # not a recent Linux: wait4 waits
    try:
        ready, _, _ = select.select([ended, channel.fileno()], [], [])
        if ended not in ready:  # the other side says nothing while a command runs: it has closed
            os.killpg(pid, signal.SIGKILL)
    finally:
        os.close(ended)


if __name__ == "__main__":
    with contextlib.suppress(OSError):  # the other side is gone
        serve(socket.socket(fileno=int(sys.argv[1])))
