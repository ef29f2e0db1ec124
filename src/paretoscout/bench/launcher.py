"""A small process that starts commands and says what they took.

The memory that the kernel reports of a command is at least that of the process that started it. This one does nothing
else, so that commands of ten megabytes can be told from those of twenty. It is run as a script, imports next to
nothing, and speaks over a socket: a request comes with the file descriptors for stdin, stdout and stderr.
"""

import marshal
import os
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
        argv, folder, environment = marshal.loads(data)
        try:
            os.chdir(folder)
            actions = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(fds)]
            began = time.perf_counter()
            pid = os.posix_spawnp(
                argv[0], argv, environment, file_actions=actions, setsid=True, setsigmask=[], setsigdef=defaults
            )
        except OSError as problem:
            answer = (-1, problem.errno, problem.strerror or str(problem))
            channel.send(marshal.dumps(answer))
            continue
        finally:
            for fd in fds:
                os.close(fd)
        channel.send(marshal.dumps((pid, 0, "")))
        _, status, usage = os.wait4(pid, 0)
        seconds = time.perf_counter() - began
        code = os.waitstatus_to_exitcode(status)
        channel.send(marshal.dumps((code, seconds, usage.ru_utime, usage.ru_stime, usage.ru_maxrss)))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
