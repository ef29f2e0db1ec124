"""Studies on a server, with the face of `Study`: `connect(url, token).study(name)`.

Everything that changes something carries a key that is drawn for it. If the answer does not come, because the server
was restarted or the network is away, the same request is sent again with the same key: it is done once.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, overload
from urllib.parse import quote

from . import checks
from .errors import (
    Conflict,
    InvalidInput,
    MissingData,
    MissingExtra,
    NotAllowed,
    NothingToAsk,
    NotSupported,
    ParetoscoutError,
    SettingsDiffer,
    StorageUnavailable,
    UnknownName,
    UnreadableFile,
)
from .statement import NUMBER, Metric
from .study.heard import Heard
from .study.loop import Measure, Notice, run
from .study.rows import Below
from .study.standing import OpenTrial, Trial, Voided, Waits
from .study.workers import STOPPED, this_process

#: A request that gets no answer is sent again for so many seconds, after pauses that get longer.
PATIENCE, FIRST_PAUSE, LONGEST_PAUSE = 120.0, 0.1, 5.0
#: Answers that mean: not now. Others do if they say when to try again.
NOT_NOW = (408, 502, 503, 504)
TIMEOUT = 60.0
PREFIX = "urn:paretoscout:problem:"


class Unknown(UnknownName):
    """The server knows nothing of that name, and says so in its own words."""

    def __init__(self, said: str) -> None:
        """Take what the server said."""
        Exception.__init__(self, said)
        self.kind, self.name, self.known = "name", "", []


#: What is raised, by the type of the problem that the server names.
ERRORS: dict[str, type[ParetoscoutError]] = {
    "nothing-to-ask": NothingToAsk,
    "not-supported": NotSupported,
    "conflict": Conflict,
    "key-reused": Conflict,
    "unknown-name": Unknown,
    "not-allowed": NotAllowed,
    "no-token": NotAllowed,
    "other-site": NotAllowed,
    "too-many-failures": NotAllowed,
    "invalid-input": InvalidInput,
    "name-taken": SettingsDiffer,
    "too-large": InvalidInput,
    "too-many": NotSupported,
    "unreadable": UnreadableFile,
    "missing-data": MissingData,
    "storage-unavailable": StorageUnavailable,
}


def connect(url: str, token: str | None = None, *, worker: str | None = None, patience: float = PATIENCE) -> Server:
    """Return a server of studies.

    url: such as "http://127.0.0.1:8765". token: as `paretoscout token create` shows it; None: the variable
    PARETOSCOUT_TOKEN, or none. worker: who asks and tells here, kept with each event; None: the name of the machine and
    the number of the process. patience: a request that gets no answer is sent again for so many seconds.
    """
    return Server(url, token, worker, patience)


class Server:
    """A server of studies, see `connect`."""

    def __init__(self, url: str, token: str | None, worker: str | None, patience: float) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtra("a study on a server", "client") from None
        if not url.startswith(("http://", "https://")):
            raise InvalidInput(f"url of a server must begin with http:// or https://, got {url!r}", "url")
        token = token or os.environ.get("PARETOSCOUT_TOKEN")
        self.url, self.patience = url.rstrip("/"), patience
        self.worker = worker or f"{socket.gethostname()}:{os.getpid()}"[-100:]
        headers = {"X-Worker": self.worker.encode("ascii", "replace").decode()}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._lost: tuple[type[Exception], ...] = (httpx2.TransportError,)
        self._http = httpx2.Client(base_url=self.url, headers=headers, timeout=TIMEOUT)

    def __repr__(self) -> str:
        return f"<Server {self.url}>"

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def studies(self) -> list[dict[str, Any]]:
        """Return what there is to know of all studies, oldest first."""
        found: list[dict[str, Any]] = self.call("GET", "/v1/studies")["studies"]
        return found

    def study(self, name: str = "study") -> RemoteStudy:
        """Return a study that is there."""
        return RemoteStudy(self, name)

    def create(self, name: str, arms: Sequence[Any], metrics: Any, **settings: Any) -> RemoteStudy:
        """Make a study, or find it: settings as in `Study`."""
        body = {"name": name, "arms": list(arms), "metrics": _metrics(metrics), **settings}
        self.call("POST", "/v1/studies", body)
        return RemoteStudy(self, name)

    def close(self) -> None:
        """Let go of connections; `with connect(url) as server:` does so at its end."""
        self._http.close()

    def call(self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request, again if need be, and return the answer; a problem is raised as in `Study`."""
        answer = self.send(method, path, body, params)
        return answer.json() if answer.content else None

    def send(self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request until there is an answer, and return it."""
        key = {} if method == "GET" else {"Idempotency-Key": secrets.token_hex(16)}
        end, pause = time.monotonic() + self.patience, FIRST_PAUSE
        while True:
            try:
                answer = self._http.request(method, path, json=body, params=params, headers=key)
            except self._lost as problem:
                if time.monotonic() + pause > end:
                    raise StorageUnavailable(
                        f"server {self.url} does not answer: {problem or type(problem).__name__}. "
                        "What was acknowledged is kept"
                    ) from problem
            else:
                if answer.status_code < 400:
                    return answer
                if not _not_now(answer) or time.monotonic() + pause > end:
                    raise _raised(answer)
            time.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000))
            pause = min(2 * pause, LONGEST_PAUSE)


def _not_now(answer: Any) -> bool:
    """Whether another answer may come later: a limit that is reached stays, too many failures pass."""
    return answer.status_code in NOT_NOW or (answer.status_code == 429 and "Retry-After" in answer.headers)


def _raised(answer: Any) -> ParetoscoutError:
    """Return the error that a problem stands for."""
    try:
        said = answer.json()
        kind, detail = str(said["type"]).removeprefix(PREFIX), str(said["detail"])
    except (ValueError, KeyError, TypeError):
        return StorageUnavailable(f"the server answered with {answer.status_code}, which is no answer of paretoscout")
    return ERRORS.get(kind, ParetoscoutError)(detail)


def _metrics(metrics: Any) -> dict[str, Any]:
    """Return metrics as the server takes them."""
    if isinstance(metrics, Mapping):
        return dict(metrics)
    return {metric.name: _described(metric) if isinstance(metric, Metric) else metric for metric in metrics}


def _described(metric: Metric) -> dict[str, Any]:
    said = {field.name: getattr(metric, field.name) for field in fields(metric) if field.name != "name"}
    if metric.kind == NUMBER:
        del said["kind"]  # an older server does not know it
    return {key: value for key, value in said.items() if value not in (None, "")}


@dataclass(frozen=True)
class RemoteSpec:
    """What whoever measures must know of a study: what an outcome has numbers of, and whether it names a block."""

    columns: tuple[str, ...]
    walk: bool
    rounds: bool = False


@dataclass(frozen=True)
class RemoteStanding:
    """All that is known of a study after one event, as the server told it."""

    known: dict[str, Any]  # the JSON of a `Standing`

    @property
    def event(self) -> int:
        """Number of the last event; -1: there is none yet."""
        return int(self.known["event"])

    @property
    def done(self) -> bool:
        """Whether every option has its verdict."""
        return bool(self.known["done"])

    @property
    def front(self) -> tuple[str, ...]:
        """The options of the front."""
        return tuple(self.known["front"])

    @property
    def waits(self) -> tuple[Waits, ...]:
        """Which pending trials outcomes wait for, the one that holds back most of them first."""
        return tuple(Waits(each["outcomes"], _open_trial(each)) for each in self.known["waits_for"])

    @property
    def options(self) -> tuple[str, ...]:
        """The options that are there."""
        return tuple(option["option"] for option in self.known["options"])

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict on each option."""
        return {option["option"]: option["verdict"] for option in self.known["options"]}

    @property
    def guarantee(self) -> str:
        """What is promised, in words."""
        return str(self.known["guarantee"]["text"])

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as `Standing.as_dict` does."""
        return self.known


class RemoteStudy:
    """A study on a server. Its methods are those of `Study`."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        made = server.call("GET", f"/v1/studies/{quote(name, safe='')}")
        self.spec = RemoteSpec(tuple(made["columns"]), bool(made["blocks"]), made["blocks"] == 0)

    def __repr__(self) -> str:
        return f"<RemoteStudy {self.name!r} on {self.server.url}>"

    def _call(self, method: str, what: str, body: Any = None, **params: Any) -> Any:
        return self.server.call(method, f"/v1/studies/{quote(self.name, safe='')}/{what}", body, params or None)

    @overload
    def ask(self, n: None = None, arm: str | None = None, run: str = "") -> Trial: ...

    @overload
    def ask(self, n: int, arm: str | None = None, run: str = "") -> list[Trial]: ...

    def ask(self, n: int | None = None, arm: str | None = None, run: str = "") -> Trial | list[Trial]:
        """Return the next trial, or a list of up to n of them to be measured at the same time, see `Study.ask`."""
        trials = self._asked({"count": 1 if n is None else n, "option": arm}, run)
        return trials[0] if n is None else trials

    def ask_round(self, arms: Sequence[str] | None = None, run: str = "") -> list[Trial]:
        """Begin a round, see `Study.ask_round`."""
        return self._asked({"round": "all" if arms is None else list(arms)}, run)

    def _asked(self, body: dict[str, Any], run: str) -> list[Trial]:
        said = self._call("POST", "ask", body | ({"run": run} if run else {}))
        return [Trial(each["trial"], each["option"], block=each["block"]) for each in said["trials"]]

    @property
    def in_rounds(self) -> bool:
        """Whether options are measured and compared in rounds."""
        return self.spec.rounds

    def heartbeat(self, run: str = "") -> None:
        """Say that this worker is alive, see `Study.heartbeat`."""
        self._call("POST", "heartbeat", {"run": run, "process": _process()})

    def sign_off(self, run: str = "") -> None:
        """Say that this worker stops, see `Study.sign_off`."""
        self._call("POST", "heartbeat", {"run": run, "over": True})

    def resume(self, run: str, leave_asked: bool = False, older: float = 0.0) -> tuple[Voided, ...]:
        """Send a heartbeat, and void trials that nobody measures any more, see `Study.resume`."""
        what = {"leave_asked": leave_asked, "older": older}
        said = self._call("POST", "heartbeat", {"run": run, "process": _process(), "resume": what})
        return tuple(Voided(_open_trial(each), each["why"]) for each in said["voided"])

    def void(self, trial: Trial | int, why: str = STOPPED, reason: str = "") -> None:
        """Say that nobody measures a trial any more, see `Study.void`."""
        self._call("DELETE", f"leases/{_number(trial)}", reason=str(reason)[:500], why=why)

    def listen_again(self) -> None:
        """Do nothing: the server knows when it could not be reached."""

    def tell(self, trial: Trial | int, values: Mapping[str, Any], *, note: str = "", tags: Sequence[str] = ()) -> None:
        """Take in the outcome of a trial, see `Study.tell`."""
        self._call("POST", "observations", _observation(trial, values) | {"note": note, "tags": list(tags)})

    def tell_many(self, outcomes: Iterable[tuple[Trial | int, Mapping[str, Any]]]) -> int:
        """Take in the outcomes of several trials, all of them or none; return how many were new."""
        told = [_observation(trial, values) for trial, values in outcomes]
        return int(self._call("POST", "observations", {"observations": told})["new"]) if told else 0

    def fail(self, trial: Trial | int, reason: str = "", cut: bool = False) -> None:
        """Say that a measurement failed: it costs no data, and is asked again."""
        self._call("DELETE", f"leases/{_number(trial)}", reason=str(reason)[:500], cut=cut)

    def run(
        self,
        measure: Measure,
        *,
        workers: int | None = None,
        trials: int | None = None,
        timeout: float | None = None,
        callback: Callable[..., None] | None = None,
        catch: type[Exception] | tuple[type[Exception], ...] = (),
        engine: str = "threads",
        leave_asked: bool = False,
        notice: Notice | None = None,
    ) -> RemoteStanding:
        """Ask, measure and tell until every arm has its verdict; see `Study.run`."""
        how: dict[str, Any] = {"workers": workers, "trials": trials, "timeout": timeout, "engine": engine}
        how |= {"leave_asked": leave_asked, "notice": notice}
        return run(self, measure, callback=callback, catch=catch, **how)  # type: ignore[arg-type, return-value]

    def standing(self, at: int | None = None) -> RemoteStanding:
        """Return all that is known, after the last event or after an earlier one."""
        return RemoteStanding(self._call("GET", "standing", **({} if at is None else {"at": at})))

    @property
    def done(self) -> bool:
        """Whether every arm has its verdict."""
        return bool(self._call("GET", "front")["done"])

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to ask for."""
        return bool(self._call("GET", "front")["finished"])

    def front(self) -> list[str]:
        """Return the arms that are proven to be on the front."""
        found: list[str] = self._call("GET", "front")["front"]
        return found

    def says(self) -> str:
        """Return the answer as a sentence."""
        return str(self._call("GET", "front")["says"])

    def explain(self, arm: str) -> str:
        """Say why an arm has its verdict, by how much, and what is still missing."""
        return str(self._call("GET", "explain", option=arm)["text"])

    def against(self, reference: str) -> dict[str, dict[str, dict[str, Any]]]:
        """Return how every other option differs from one of them: by option and metric, see `Standing.against`."""
        found = self._call("GET", "against", option=reference)["options"]
        return {each["option"]: each["metrics"] for each in found}

    def asked_and_told(self) -> dict[str, Heard]:
        """Return what became of the trials of each arm, see `Study.asked_and_told`."""
        names = [field.name for field in fields(Heard)]
        found = self._call("GET", "asked-and-told")["options"]
        return {each["option"]: Heard(**{name: each[name] for name in names}) for each in found}

    @property
    def open(self) -> list[Trial]:
        """Trials that were asked and are neither told nor void, oldest first."""
        found = self._call("GET", "leases")["leases"]
        return [Trial(each["trial"], each["option"], block=each["block"]) for each in found]

    def add_arms(self, arms: Sequence[Any], looked: bool = True, cost: Any = None) -> None:
        """Add arms, see `Study.add_arms`."""
        self._call("POST", "arms", {"arms": list(arms), "looked": looked, "cost": cost})

    def withdraw(self, arm: str, reason: str = "withdrawn", looked: bool = False) -> None:
        """Take an arm out, see `Study.withdraw`."""
        self._call("DELETE", "arms", option=arm, reason=reason, looked=looked)

    def annotate(self, note: str = "", tags: Sequence[str] = (), trial: Trial | int | None = None) -> None:
        """Write something about the study, or about a trial."""
        number = None if trial is None else _number(trial)
        self._call("POST", "note", {"note": note, "tags": list(tags), "trial": number})


def _number(trial: Trial | int) -> int:
    return trial.number if isinstance(trial, Trial) else checks.whole("trial", trial, least=0)


def _open_trial(each: Mapping[str, Any]) -> OpenTrial:
    """Return a pending trial, as the server describes it."""
    return OpenTrial(
        each["trial"],
        each["option"],
        each["asked_at"],
        each.get("overdue", False),
        each["by"] or "",
        block=each.get("block"),
    )


def _process() -> dict[str, Any]:
    """Return the present process, so that a server on the same machine sees when it has ended."""
    return this_process()._asdict()


def _observation(trial: Trial | int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return an outcome as the server takes it; what is no number is refused as a study would."""
    number = _number(trial)
    if not isinstance(values, Mapping):
        raise InvalidInput(f"outcome of trial {number} must be {{metric: number}}, got {checks.got(values)}")

    def plain(name: str, value: Any) -> Any:
        if value is None:
            return None
        known = checks.number(
            f"{name!r} in outcome of trial {number}", value.value if isinstance(value, Below) else value
        )
        return {"below": known} if isinstance(value, Below) else known

    return {"trial": number, "values": {name: plain(name, value) for name, value in values.items()}}
