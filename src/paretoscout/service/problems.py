"""The one place where an error becomes an answer: `application/problem+json` (RFC 9457), made from the error tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse

from ..errors import (
    Conflict,
    InvalidInput,
    MissingData,
    MissingExtra,
    NameTaken,
    NotAllowed,
    NothingToAsk,
    NotSupported,
    ParetoscoutError,
    SettingsDiffer,
    Stopped,
    StorageUnavailable,
    UnknownName,
    UnreadableFile,
)
from ..shown import line

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:paretoscout:problem:"
#: Errors of pydantic about a body that is not an object at all.
NOT_AN_OBJECT = ("model_attributes_type", "model_type", "dict_type")
#: What pydantic calls one of several forms that a value may have: it is no place in a request.
FORM = re.compile(r"(literal|list|dict|tuple|function-\w+)\[|(Metric|Observations?)Body$|Below$")

#: Answers repeat little of what was sent.
QUOTED = re.compile(r"'[^']{200,}'|\"[^\"]{200,}\"")
LONGEST_DETAIL = 2_000
#: And of those that are no forms of ours.
PLAIN = ("float", "int", "str", "bool", "constrained-float", "constrained-int", "constrained-str")


@dataclass(frozen=True)
class Kind:
    """A kind of problem. retry: after so many seconds it may be another answer; None: not by itself."""

    name: str
    status: int
    title: str
    hint: str
    retry: int | None = None

    @property
    def type(self) -> str:
        """What names it for programs."""
        return PREFIX + self.name


NOT_ALLOWED = Kind("not-allowed", 403, "Not allowed", "Use a token of a wider scope, or one for this study.")
INVALID = Kind("invalid-input", 422, "A value is wrong", "Nothing was changed. The detail says what it must be.")
NAME_TAKEN = Kind(
    "name-taken", 409, "The name is taken", "Choose another name, or send the settings of the study that is there."
)
#: By the class of the error; the first that fits counts.
OF_ERRORS: dict[type[Exception], Kind] = {
    NothingToAsk: Kind(
        "nothing-to-ask", 409, "Nothing to ask yet", "Ask again when open trials are told, or their leases are over.", 1
    ),
    NotSupported: Kind("not-supported", 409, "Not possible in this study", "The detail says what would be."),
    NameTaken: NAME_TAKEN,
    SettingsDiffer: NAME_TAKEN,
    Conflict: Kind("conflict", 409, "It contradicts what is there", "Nothing was changed. The first outcome stays."),
    UnknownName: Kind("unknown-name", 404, "There is nothing of that name", "The detail names what there is."),
    NotAllowed: NOT_ALLOWED,
    InvalidInput: INVALID,
    UnreadableFile: Kind(
        "unreadable", 500, "The study cannot be read", "Run paretoscout db check where the storage is."
    ),
    MissingData: Kind("missing-data", 422, "Data are missing", "The detail says how to get them."),
    MissingExtra: Kind("missing-extra", 501, "A package is missing on the server", "The detail says which."),
    StorageUnavailable: Kind(
        "storage-unavailable", 503, "The storage cannot be reached", "Nothing is lost. Try again with the same key.", 2
    ),
    Stopped: Kind(
        "stopped",
        503,
        "The answer takes too long",
        "Try again: what was read of the study is kept. Or use a command.",
        5,
    ),
    ParetoscoutError: Kind("error", 500, "Something is wrong", "Nothing was changed."),
}
NO_TOKEN = Kind(
    "no-token", 401, "A token is needed", "Send it as: Authorization: Bearer TOKEN. paretoscout token create makes one."
)
MANY_FAILURES = Kind("too-many-failures", 429, "Too many wrong tokens from this address", "Wait a minute.", 60)
TOO_LARGE = Kind("too-large", 413, "The request is too large", "Send it in several parts.")
TOO_SLOW = Kind("too-slow", 408, "The request did not arrive in time", "Send it again.")
TOO_MANY = Kind("too-many", 429, "There are too many of these", "The detail says how many there may be.")
OTHER_SITE = Kind("other-site", 403, "The request came from another site", "Send it from a page of this server.")
KEY_REUSED = Kind(
    "key-reused", 409, "The key was used for another request", "Draw a new Idempotency-Key for each request."
)
BUSY = Kind("busy", 503, "The server is busy", "Nothing was changed. Try again later.", 2)
NOT_FOUND = Kind("not-found", 404, "There is nothing at this address", "/openapi.json lists all addresses.")
NOT_READY = Kind("not-ready", 503, "Not ready yet", "The server has just started. Try again.", 2)
NO_METHOD = Kind("no-method", 405, "This address does not know that method", "/openapi.json lists all methods.")
UNEXPECTED = Kind(
    "unexpected", 500, "Unexpected error", "Please report it, with the number of the request: it is in the log."
)
#: All there are, for the description of the service.
ALL = tuple(
    dict.fromkeys(
        [
            *OF_ERRORS.values(),
            *(NO_TOKEN, MANY_FAILURES, TOO_LARGE, TOO_SLOW, TOO_MANY, BUSY, OTHER_SITE, KEY_REUSED),
            *(NOT_FOUND, NOT_READY, NO_METHOD, UNEXPECTED),
        ]
    )
)


class Refused(ParetoscoutError):
    """A request that is refused by the server itself, not by a study."""

    def __init__(
        self, kind: Kind, detail: str = "", field: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail or kind.title)
        self.kind, self.detail, self.field, self.headers = kind, detail, field, headers


def kind_of(error: Exception) -> Kind:
    """Return the kind of an error of the library."""
    return next(kind for tree, kind in OF_ERRORS.items() if isinstance(error, tree))


def problem(
    kind: Kind, detail: str, request: str, field: str | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the answer to a request that is refused. request: its number."""
    detail = QUOTED.sub(lambda found: f"{found[0][:98]}...{found[0][-98:]}", detail)[:LONGEST_DETAIL]
    body = {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": detail or kind.title,
        "field": field,
        "hint": kind.hint,
        "instance": f"urn:paretoscout:request:{request}",
    }
    more = {} if kind.retry is None else {"Retry-After": str(kind.retry)}
    if kind is NO_TOKEN:
        more["WWW-Authenticate"] = 'Bearer realm="paretoscout"'
    return JSONResponse(body, kind.status, {**more, **(headers or {})}, MEDIA_TYPE)


def of_error(error: Exception, request: str) -> JSONResponse:
    """Return the answer to a request that ended in an error, whatever it is."""
    if isinstance(error, Refused):
        return problem(error.kind, error.detail, request, error.field, error.headers)
    if isinstance(error, ParetoscoutError):
        return problem(kind_of(error), line(str(error)), request, field_of(error))
    return problem(UNEXPECTED, "The server made a mistake. What was acknowledged is kept.", request)


def field_of(error: ParetoscoutError) -> str | None:
    """Return which value is wrong, if the error knows it apart from its sentence."""
    if isinstance(error, UnknownName):
        return str(error.kind).rstrip(":")
    return error.field if isinstance(error, InvalidInput) else None


def of_validation(errors: Sequence[Any], request: str) -> JSONResponse:
    """Return the answer to a request whose body or parameters are not of the described form."""
    meant = _of_one_form(errors)
    first, (where, *others) = meant[0], dict.fromkeys(map(_place, meant))
    if tuple(first["loc"][:1]) == ("body",) and where == "body" and first["type"] in NOT_AN_OBJECT:
        return problem(INVALID, "body must be a JSON object, with Content-Type: application/json", request, "body")
    more = f" (and {len(others)} more)" if others else ""
    where = line(where)[:150]
    return problem(INVALID, line(f"{where}: {first['msg'][:200]}{more}"), request, where)


def _of_one_form(errors: Sequence[Any]) -> Sequence[Any]:
    """Return the errors of that form of a body which fits best by its keys, where there are several forms."""
    forms: dict[str, list[Any]] = {}
    for error in errors:
        form = str(error["loc"][1]) if len(error["loc"]) > 1 else ""
        forms.setdefault(form if FORM.match(form) else "", []).append(error)

    def keys_wrong(form: str) -> int:
        return sum(error["type"] in ("missing", "extra_forbidden") and len(error["loc"]) == 3 for error in forms[form])

    return forms[min(forms, key=keys_wrong)]


def _place(error: Any) -> str:
    """Return where in a request an error is."""
    parts = [str(part) for part in error["loc"][1:] if not FORM.match(str(part))]
    if len(parts) > 1 and parts[-1] in PLAIN:
        parts.pop()
    return ".".join(parts) or str(error["loc"][0])
