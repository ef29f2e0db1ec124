"""Attacks on a server, next to the kills: what callers from outside may send, and how often it got through.

Each attack is a function that takes a folder of its own and returns how often it tried, and how often it succeeded. It
starts a real server (`attacked`), or uses what it needs. `run_all` runs them all. A success is a fault.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.beside_servers import Served
from paretoscout.service.tokens import Tokens
from paretoscout.storage.sql import SQLStorage


@dataclass(frozen=True)
class Counts:
    """The result of an attack: the number of attempts, and of those that did what they must not."""

    tries: int
    succeeded: int
    note: str = ""


@dataclass(frozen=True)
class Attack:
    """An attack. what: a line for the table."""

    what: str
    run: Callable[[Path], Counts]


ATTACKS: list[Attack] = []


def attack(what: str) -> Callable[[Callable[[Path], Counts]], Callable[[Path], Counts]]:
    """Add a function to the attacks."""

    def added(run: Callable[[Path], Counts]) -> Callable[[Path], Counts]:
        ATTACKS.append(Attack(what, run))
        return run

    return added


@contextmanager
def attacked(folder: Path, *how: str, limits: dict[str, Any] | None = None) -> Iterator[Served]:
    """A server with a storage in the folder. how, limits: as those of `Served`."""
    server = Served(f"sqlite:///{folder / 'service.db'}", *how, limits=limits)
    try:
        yield server.ready()
    finally:
        if server.process.poll() is None:
            server.stop()


def tokens_of(folder: Path) -> Tokens:
    """Return the tokens of the storage in a folder."""
    return Tokens(SQLStorage(f"sqlite:///{folder / 'service.db'}"))


def run_all(screen: Console, only: str = "") -> list[dict[str, Any]]:
    """Run all attacks, or those whose line contains a text, and print a table of them."""
    rows: list[dict[str, Any]] = []
    table = Table("attack", "tries", "succeeded", "seconds", "", box=None)
    for each in ATTACKS:
        if only not in each.what:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="paretoscout-attack-") as folder:
            found = each.run(Path(folder))
        met = found.succeeded == 0 and found.tries > 0
        rows.append({"attack": each.what, **vars(found), "seconds": time.monotonic() - began, "met": met})
        said = "ok" if met else "FAILED"
        table.add_row(each.what, f"{found.tries:,}", f"{found.succeeded:,}", f"{rows[-1]['seconds']:.1f}", said)
        if found.note:
            table.add_row(f"  {found.note}")
    if rows:
        screen.print(table)
    return rows


# Who gets in

STUDY: dict[str, Any] = {
    "name": "study",
    "arms": ["a", "b"],
    "metrics": {"quality": "max", "cost": "min"},
    "sigma": 1.0,
}
#: Requests that need a token, and what they would do.
WITHOUT_TOKEN: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/v1/studies", None),
    ("HEAD", "/v1/studies", None),
    ("POST", "/v1/studies", STUDY),
    ("GET", "/v1/studies/there/export", None),
    ("POST", "/v1/studies/there/ask", {}),
    ("DELETE", "/v1/studies/there", None),
    ("GET", "/metrics", None),
    ("GET", "/", None),
)


def without_token(server: Served) -> Counts:
    """Send requests without a token, by all names of this machine, and count those that are let in."""
    tries = succeeded = 0
    for host in ("localhost", "127.0.0.1", "[::1]", "LOCALHOST:80", "127.9.9.9", "front.example"):
        for method, path, body in WITHOUT_TOKEN:
            for more in ({}, {"Authorization": ""}, {"Authorization": "Bearer "}, {"Cookie": "paretoscout_token="}):
                tries += 1
                succeeded += server.send(method, path, body, {"Host": host, **more})[0] not in (401, 403)
    return Counts(tries, succeeded)


@attack("no token is valid any more: the last one expired")
def all_expired(folder: Path) -> Counts:
    tokens_of(folder).create("admin", seconds=0.001)
    with attacked(folder) as server:
        return without_token(server)


@attack("no token is valid any more: the last one was revoked while the server ran")
def all_revoked(folder: Path) -> Counts:
    tokens = tokens_of(folder)
    text = tokens.create("admin")
    with attacked(folder) as server:
        tokens.revoke(text.split("_")[1])
        time.sleep(1.5)
        return without_token(server)


@attack("--https, and no token was ever made")
def https_without_token(folder: Path) -> Counts:
    with attacked(folder, "--https") as server:
        return without_token(server)


@attack("--name-of-server, and no token was ever made")
def named_without_token(folder: Path) -> Counts:
    with attacked(folder, "--name-of-server", "front.example") as server:
        return without_token(server)


# What one request may cost


def quick(server: Served, path: str = "/v1/studies", seconds: float = 3.0, **headers: str) -> bool:
    """True if the server still answers somebody else, within a time that a busy machine keeps, too."""
    began = time.monotonic()
    return server.status("GET", path, None, **headers) == 200 and time.monotonic() - began < seconds


def study_of(**more: Any) -> dict[str, Any]:
    return {**STUDY, **more}


#: Settings of a study that cost minutes or gigabytes, or ended the server.
COSTLY: dict[str, Callable[[], dict[str, Any]]] = {
    "digits as a lease": lambda: study_of(lease="9" * 40_000),
    "digits and a letter as give_up": lambda: study_of(give_up="9" * 40_000 + "x"),
    "blanks in a guard": lambda: study_of(guards=["cost" + " " * 40_000 + "x"]),
    "signs in a guard": lambda: study_of(guards=["<= " * 40_000]),
    "blanks in a trade-off": lambda: study_of(tradeoffs=["1 quality" + " " * 40_000 + "x"]),
    "digits in a trade-off": lambda: study_of(tradeoffs=["1" * 40_000 + " quality <= x"]),
    "digits in an eps": lambda: study_of(metrics={"quality": {"eps": "9" * 40_000 + "x%"}}),
    "digits as a goal": lambda: study_of(goal="9" * 40_000),
    "a number of digits": lambda: study_of(budget=int("9" * 4_000)),
    "1,500 metrics": lambda: study_of(metrics={f"m{k}": "max" for k in range(1_500)}),
    "40,000 metrics": lambda: study_of(metrics={f"m{k}": "max" for k in range(40_000)}),
    "40,000 guards": lambda: study_of(guards=[f"cost <= {k}" for k in range(40_000)]),
    "40,000 trade-offs": lambda: study_of(tradeoffs=["1 quality <= 3 cost"] * 40_000),
    "a trade-off among 99 metrics": lambda: study_of(
        metrics={f"m{k}": {"direction": "max", "eps": 0.1} for k in range(99)}, tradeoffs=["1 m0 <= 3 m1"]
    ),
    "30,000 categories": lambda: study_of(
        arms=[{"arm": f"a{k}", "kind": f"k{k}"} for k in range(30_000)], contexts=["kind"]
    ),
    "100 metrics of 30,000 options": lambda: study_of(
        arms=[f"a{k}" for k in range(30_000)], metrics={f"m{k}": "max" for k in range(100)}
    ),
    "lists in lists": lambda: study_of(arms=nested(900)),
    "a million lists": lambda: study_of(tradeoffs=[[]] * 1_200_000),
}


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@attack("settings of a study that cost minutes or gigabytes")
def costly(folder: Path) -> Counts:
    """More than 5 s of CPU, or 150 MB, or a server that does not answer others, is a success."""
    succeeded, worst = 0, ""
    with attacked(folder) as server:
        assert server.status("POST", "/v1/studies", STUDY) == 201
        for name, body in COSTLY.items():
            before, cpu = memory_of(server), cpu_of(server)
            status = server.status("POST", "/v1/studies", {**body(), "name": "costly"})
            used, grown = cpu_of(server) - cpu, memory_of(server) - before
            server.status("DELETE", "/v1/studies/costly")
            if status not in (201, 413, 422, 429) or used > 5.0 or grown > 150 * 2**20 or not quick(server):
                succeeded += 1
                worst += f"{name}: {status}, {used:.1f} s, {grown / 2**20:.0f} MB; "
    return Counts(len(COSTLY), succeeded, worst)


def memory_of(server: Served) -> int:
    """Bytes of memory of the processes of a server."""
    return sum(
        int(line.split()[1]) * 1024
        for number in (server.process.pid, *server.children())
        for line in Path(f"/proc/{number}/status").read_text().splitlines()
        if line.startswith("VmRSS:")
    )


def cpu_of(server: Served) -> float:
    """Seconds of CPU that the first process of a server used so far."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connected(server: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 10.0)


@attack("1,200 idle connections, and 300 with half a header that goes on and on")
def idle(folder: Path) -> Counts:
    succeeded, connections = 0, []
    with attacked(folder) as server:
        for k in range(1_500):
            connections.append(connected(server))
            if k >= 1_200:
                connections[-1].sendall(b"GET /v1/studies HTTP/1.1\r\nHost: localhost\r\n")
        succeeded += not quick(server)
        began = time.monotonic()
        while time.monotonic() - began < 12.0:
            for each in connections[-20:]:
                with suppress(OSError):
                    each.sendall(b"X-A: b\r\n")
            time.sleep(0.5)
            succeeded += not quick(server)
        for each in connections[-20:]:
            each.settimeout(5.0)
            try:
                while each.recv(1_000):
                    pass
            except TimeoutError:
                succeeded += 1  # it is still open
            except OSError:
                pass
        for each in connections:
            each.close()
    return Counts(len(connections), succeeded)


@attack("150 bodies of 7 MiB without a valid token")
def bodies(folder: Path) -> Counts:
    tokens_of(folder).create("admin")
    succeeded = 0
    head = (
        "POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Authorization: Bearer ps_000000000000_{}\r\nContent-Length: 7340032\r\n\r\n"
    )
    with attacked(folder) as server:
        before, connections = memory_of(server), []
        for k in range(150):
            connections.append(connected(server))
            with suppress(OSError):
                connections[-1].sendall(head.format(str(k % 10) * 43).encode() + b" " * 65_536)
        for each in connections:
            each.settimeout(10.0)
            try:
                answer = each.recv(20)
                succeeded += not answer.startswith((b"HTTP/1.1 401", b"HTTP/1.1 429", b"HTTP/1.1 503"))
            except ConnectionError:
                pass
            except TimeoutError:
                succeeded += 1
            each.close()
        succeeded += memory_of(server) - before > 100 * 2**20
    return Counts(150, succeeded)


@attack("45 slow reads at the same time by one token that may only read, whose callers leave")
def slow_reads(folder: Path) -> Counts:
    """Meanwhile others ask and tell. A read that goes on after its caller left is a success."""
    tokens = tokens_of(folder)
    admin, reader = (bearer(tokens.create(scope)) for scope in ("admin", "read"))
    succeeded = 0
    with attacked(folder) as server:
        server.send("POST", "/v1/studies", study_of(name="long", sigma=1e3), admin)
        for _ in range(6):  # a log that takes long to follow
            asked = server.json("POST", "/v1/studies/long/ask", {"count": 1_000}, admin)["trials"]
            rows = [{"trial": each["trial"], "values": {"quality": 0.5, "cost": 0.5}} for each in asked]
            server.send("POST", "/v1/studies/long/observations", {"observations": rows}, admin)
        last = server.json("GET", "/v1/studies/long/standing", None, admin)["event"]
        request = f"GET /v1/studies/long/standing?at={last} HTTP/1.1\r\nHost: localhost\r\n"
        request += f"Authorization: {reader['Authorization']}\r\n\r\n"
        connections = [connected(server) for _ in range(45)]
        for each in connections:
            each.sendall(request.encode())
        time.sleep(0.2)
        for _ in range(5):
            began = time.monotonic()
            trial = server.json("POST", "/v1/studies/long/ask", {}, admin)["trials"][0]["trial"]
            row = {"trial": trial, "values": {"quality": 0.5, "cost": 0.5}}
            status = server.send("POST", "/v1/studies/long/observations", row, admin)[0]
            succeeded += status != 200 or time.monotonic() - began > 3.0
        for each in connections:
            each.close()
        time.sleep(1.0)
        before = cpu_of(server)
        time.sleep(3.0)
        succeeded += cpu_of(server) - before > 1.0  # somebody is still reading
    return Counts(45 + 5 + 1, succeeded)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@attack("a list of 412 studies, looked at 10 times")
def many_studies(folder: Path) -> Counts:
    succeeded = 0
    with attacked(folder) as server:
        for k in range(412):
            server.send("POST", "/v1/studies", study_of(name=f"s{k}"))
        for _ in range(10):
            succeeded += not quick(server, "/", 2.5)
            server.status("POST", "/v1/studies/s0/ask", {})
    return Counts(10, succeeded)


# What is taken for what it is not


@attack("JSON that is not what it seems: truths and texts as numbers, keys twice, numbers beyond all others")
def seeming(folder: Path) -> Counts:
    values = ("true", '"1.5"', "1e101", "1e400", "NaN", "Infinity", "9" * 200, '"\u0661"', '{"below": true}', "[1]")
    tries = succeeded = 0
    with attacked(folder) as server:
        server.send("POST", "/v1/studies", STUDY)
        trial = server.json("POST", "/v1/studies/study/ask", {})["trials"][0]["trial"]
        bodies = [f'{{"trial": {trial}, "values": {{"quality": {value}, "cost": 1}}}}' for value in values]
        bodies += [f'{{"option": "a", "values": {{"quality": {value}, "cost": 1}}}}' for value in values]
        bodies += [
            f'{{"trial": {trial}, "trial": {trial}, "values": {{"quality": 1, "cost": 1}}}}',
            f'{{"trial": {trial}, "values": {{"quality": 1, "cost": 1, "qu\\u0061lity": 2}}}}',
            '{"trial": false, "values": {"quality": 1, "cost": 1}}',
        ]
        for body in bodies:
            for kind in ("application/json", "application/x+json"):
                tries += 1
                sent = server.send("POST", "/v1/studies/study/observations", body.encode(), {"Content-Type": kind})
                succeeded += sent[0] not in (400, 422)
        succeeded += server.json("GET", "/v1/studies/study/standing")["told"] != 0
    return Counts(tries, succeeded)


@attack("answers that repeat what was sent")
def loud(folder: Path) -> Counts:
    text = "A" * 100_000
    requests: list[tuple[str, str, Any]] = [
        *(("POST", "/v1/studies", study_of(**{key: text})) for key in STUDY),
        *(
            ("POST", "/v1/studies", study_of(**{key: [text]}))
            for key in ("arms", "guards", "tradeoffs", "tags", "blocks")
        ),
        *(("POST", "/v1/studies", study_of(**{key: {text: 1}})) for key in ("metrics", "sigma", "cost", "at_give_up")),
        *(("POST", "/v1/studies", study_of(**{key: "A" * 450})) for key in ("title", "algorithm", "goal", "lease")),
        ("POST", "/v1/studies", {**STUDY, text: 1}),
        ("GET", f"/v1/studies/{text[:5000]}/front", None),
        ("GET", f"/v1/studies/study/explain?option={text[:5000]}", None),
        ("GET", f"/{text[:5000]}", None),
        ("GET", f"/v1/studies/study/standing?at={text[:5000]}", None),
        ("DELETE", f"/v1/studies/study/leases/{text[:5000]}", None),
    ]
    succeeded = 0
    with attacked(folder) as server:
        for method, path, body in requests:
            status, _, answer = server.send(method, path, body)
            if status >= 300:  # what is kept may be shown
                succeeded += b"A" * 201 in answer or len(answer) > 4_000
    return Counts(len(requests), succeeded)


@attack("a stream of live events goes on after its token was revoked")
def streams(folder: Path) -> Counts:
    tokens = tokens_of(folder)
    tokens.create("admin")
    reader = tokens.create("read")
    succeeded = 0
    with attacked(folder) as server:
        connections = []
        for path in ("/events", "/events?after=5"):
            connections.append(connected(server))
            head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {reader}\r\n\r\n"
            connections[-1].sendall(head.encode())
        time.sleep(1.0)
        tokens.revoke(reader.split("_")[1])
        end = time.monotonic() + 5.0
        for each in connections:
            each.settimeout(5.0)
            whole = b""
            try:
                while not whole.endswith(b"0\r\n\r\n") and time.monotonic() < end:
                    whole += each.recv(1_000)
            except TimeoutError:
                pass
            succeeded += not whole.endswith(b"0\r\n\r\n")
            each.close()
    return Counts(2, succeeded)


@attack("210 readers of live events where there may be 200")
def too_many_streams(folder: Path) -> Counts:
    let_in = 0
    with attacked(folder) as server:
        connections = [connected(server) for _ in range(210)]
        for each in connections:
            each.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for each in connections:
            each.settimeout(10.0)
            let_in += each.recv(20).startswith(b"HTTP/1.1 200")
        for each in connections:
            each.close()
    return Counts(210, max(0, let_in - 200), f"{let_in} were let in")


@attack("a token takes the default worker name of another one, and 1,500 names")
def names(folder: Path) -> Counts:
    tokens = tokens_of(folder)
    admin, mine, theirs = (tokens.create(scope) for scope in ("admin", "tell", "tell"))
    succeeded = taken = 0
    with attacked(folder) as server:
        server.send("POST", "/v1/studies", STUDY, bearer(admin))
        name = {"X-Worker": mine.split("_")[1]}
        for _ in range(2):
            succeeded += server.send("POST", "/v1/studies/study/ask", {}, bearer(theirs) | name)[0] != 403
            succeeded += server.send("POST", "/v1/studies/study/ask", {}, bearer(mine))[0] != 200
        for k in range(1_500):
            status = server.send("POST", "/v1/studies/study/ask", {}, bearer(theirs) | {"X-Worker": f"w{k}"})[0]
            taken += status == 200
        succeeded += max(0, taken - 1_000)
    return Counts(1_504, succeeded, f"{taken:,} names were taken")


@attack("a redirect to another host, and keys of a study that is gone")
def redirects(folder: Path) -> Counts:
    succeeded = 0
    with attacked(folder) as server:
        for path in ("/v1/studies/", "/studies/study/", "//evil.example/x", "/v1/studies/study/front/"):
            for host in ("localhost", "evil.example", "localhost:1"):
                each = connected(server)
                each.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda: each.recv(65_536), b""))  # noqa: B023
                succeeded += b"location:" in answer.lower()
                each.close()
        key = {"Idempotency-Key": "one"}
        for _ in range(2):
            server.send("POST", "/v1/studies", STUDY)
            succeeded += "idempotency-replayed" in server.send("POST", "/v1/studies/study/ask", {}, key)[1]
            server.send("DELETE", "/v1/studies/study")
    return Counts(14, succeeded)
