"""What is compared: commands, or one template with variables, all combinations of them."""

from __future__ import annotations

import glob
import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from .. import checks
from ..errors import InvalidInput

PLACE = re.compile(r"\{(\w+)\}")
_NUMBER = r"[-+]?[0-9]+(?:\.[0-9]+)?"
RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?")
#: What somebody meant to be a range: digits, and two dots.
NEARLY_A_RANGE = re.compile(r"(?=.*[0-9])[-+0-9.:]*\.\.[-+0-9.:]*")
MOST_VALUES = 1_000  # of a range
#: Statements of awk that are one word: `awk {print} FILE` is a command, not a variable that is missing.
STATEMENTS = frozenset({"print", "next", "nextfile", "exit", "getline", "return", "break", "continue"})


@dataclass(frozen=True)
class Option:
    """One of the things to choose from: a command, and what goes before and after it."""

    name: str
    command: str
    setup: str | None = None  # once, before the first run
    prepare: str | None = None  # before every run
    cleanup: str | None = None  # after every run
    shell: bool = False  # whether these are for a shell to read; else they are split into words as a shell would
    variables: Mapping[str, str] = field(default_factory=dict)


def variables_of(texts: Sequence[str]) -> dict[str, list[str]]:
    """Read NAME=a,b,c for each variable; FIRST..LAST and FIRST..LAST:STEP are ranges of numbers.

    >>> variables_of(["opt=O1,O2", "lto=,-flto", "n=1..3,10"])
    {'opt': ['O1', 'O2'], 'lto': ['', '-flto'], 'n': ['1', '2', '3', '10']}
    """
    variables: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInput(f"a variable must be written NAME=VALUE,VALUE,..., got {text!r}")
        if name in variables:
            raise InvalidInput(f"variable {name!r} must be given once, got it twice")
        variables[name] = [value for part in values.split(",") for value in _values(name, part)]
        if len(set(variables[name])) < len(variables[name]):
            raise InvalidInput(f"values of variable {name!r} must differ, got {values!r}")
    return variables


def inputs_of(text: str, folder: str | None = None) -> tuple[str, list[str]]:
    """Read NAME=a,b,c, what every option is run on; patterns such as data/*.txt stand for the files that they match."""
    ((name, values),) = variables_of([text]).items()
    found = []
    for value in values:
        matching = sorted(glob.glob(value, root_dir=folder)) if glob.has_magic(value) else [value]
        if not matching:
            raise InvalidInput(f"inputs {name!r} must match a file, got {value!r}, which matches none")
        found += matching
    if "" in found:
        raise InvalidInput(f"inputs {name!r} must not be empty, got {text!r}")
    return name, list(dict.fromkeys(found))


def _values(name: str, text: str) -> list[str]:
    """Return the numbers of a range, exact and without needless zeros; of any other text, itself.

    >>> _values("n", "0.1..0.5:0.2"), _values("n", "10..4:-3"), _values("n", "v1..v2")
    (['0.1', '0.3', '0.5'], ['10', '7', '4'], ['v1..v2'])
    """
    found = RANGE.fullmatch(text)
    if found is None:
        if NEARLY_A_RANGE.fullmatch(text):
            raise InvalidInput(f"range of variable {name!r} must be FIRST..LAST or FIRST..LAST:STEP, got {text!r}")
        return [text]
    first, last, step = (Decimal(number or "1") for number in found.groups())
    if step == 0:
        raise InvalidInput(f"step of variable {name!r} must not be 0, got {text!r}")
    if (last - first) * step < 0:
        turned = f"{found[1]}..{found[2]}:{_plain_number(-step)}"
        raise InvalidInput(f"range of variable {name!r} must lead from FIRST to LAST, as {turned} does, got {text!r}")
    count = int((last - first) / step) + 1
    if count > MOST_VALUES:
        raise InvalidInput(
            f"range of variable {name!r} must have at most {MOST_VALUES:,} values, got {count:,}: {text!r}"
        )
    return [_plain_number(first + k * step) for k in range(count)]


def _plain_number(number: Decimal) -> str:
    return f"{number.normalize() + 0:f}"  # not -0


def options_of(
    commands: Sequence[str],
    variables: Mapping[str, Sequence[str]],
    names: Sequence[str] = (),
    *,
    setup: str | None = None,
    prepare: str | None = None,
    cleanup: str | None = None,
    shell: bool = False,
    given: Mapping[str, str] | None = None,
) -> list[Option]:
    """Return an option for each command and combination of variables.

    given: variables that are the same for all options, and no part of their names: the input on which they are run.

    Values of variables replace their places as text, before the command is split into words or given to a shell. Values
    of `given` are file names and stay parts of one word. An option is named after its values without the empty ones.

    >>> [option.name for option in options_of(["{tool} -c x"], {"tool": ["gzip -1", "bzip2"]})]
    ['tool=gzip -1', 'tool=bzip2']
    """
    if not commands:
        raise InvalidInput("bench must have at least one command, got none")
    texts = [text for text in (*commands, setup, prepare, cleanup) if text is not None]
    for text in texts:
        quotes_of(text)
    for name in set(variables) & set(given or {}):
        raise InvalidInput(f"variable {name!r} must be given once, got it twice")
    for name in (*variables, *(given or {})):
        if not any(re.search(rf"(?<!\$)\{{{name}\}}", text) for text in texts):
            raise InvalidInput(f"variable {name!r} must be used, as {{{name}}}, got: {'; '.join(texts)}")
    for text in texts:
        _check_all_known(text, {**variables, **(given or {})})
    options = []
    for command, values in itertools.product(commands, itertools.product(*variables.values())):
        chosen = dict(zip(variables, values, strict=True))
        described = ",".join(f"{name}={value}" for name, value in chosen.items() if value)
        name = command if not described else described if len(commands) == 1 else f"{command} {described}"
        parts = {
            what: None if text is None else filled(text, chosen, given or {}, shell)
            for what, text in {"command": command, "setup": setup, "prepare": prepare, "cleanup": cleanup}.items()
        }
        options.append(Option(name=_name_of(name), shell=shell, variables=chosen | dict(given or {}), **parts))  # type: ignore[arg-type]
    if names:
        for name in names:
            checks.name("name of an option", name)
        if len(names) != len(options):
            raise InvalidInput(f"names must be one for each option ({len(options)}), got {len(names)}")
        options = [
            Option(name, option.command, option.setup, option.prepare, option.cleanup, shell, option.variables)
            for name, option in zip(names, options, strict=True)
        ]
    shown = [option.name for option in options]
    for name in shown:
        if shown.count(name) > 1:
            raise InvalidInput(f"options must have different names, got {name!r} twice: name them with -n")
    return options


def _name_of(text: str) -> str:
    """Make a name of a command, which may have several lines or be very long."""
    most = checks.LONGEST_NAME
    if not text.isprintable() or text != text.strip():
        text = "".join(letter if letter.isprintable() else "�" for letter in " ".join(text.split()))
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def filled(template: str, values: Mapping[str, str], given: Mapping[str, str], shell: bool) -> str:
    """Put values into the places of a template: first `values` as text, then those of `given` as parts of words.

    Braces that hold no variable, such as {print} or ${HOME}, stay.
    """
    text = _replaced(template, values)
    quotes_of(text)
    if not shell:
        _check_no_shell_needed(text)
    if not values and not given:
        return text
    if shell:
        _check_not_within_quotes(text, given)
        return _replaced(text, {name: value if _plain(value) else shlex.quote(value) for name, value in given.items()})
    words = shlex.split(text)
    filled_in = [_replaced(word, given) for word in words]
    # a word that is nothing but an empty value is no word
    return shlex.join(word for word, place in zip(filled_in, words, strict=True) if word or not PLACE.search(place))


def _replaced(text: str, values: Mapping[str, str]) -> str:
    """Replace the places of some variables; ${NAME} is one of the shell."""

    def value(place: re.Match[str]) -> str:
        return place[0] if text[: place.start()].endswith("$") else values.get(place[1], place[0])

    return PLACE.sub(value, text)


def _check_all_known(text: str, variables: Mapping[str, object]) -> None:
    """Refuse a place for a variable that there is none of; braces of code, within quotes, are none."""
    quotes = quotes_of(text)
    for place in PLACE.finditer(text):
        name, before, after = place[1], text[: place.start()], text[place.end() :]
        of_code = before.endswith("$") or after.startswith(("<", ">")) or name in STATEMENTS or quotes[place.start()]
        if name not in variables and name.isidentifier() and not of_code:
            known = f"the variables are {', '.join(variables)}" if variables else "there are no variables"
            raise InvalidInput(
                f"`{{{name}}}` is unknown: {known}; add it by -L {name}=A,B,C, or quote it if it is no variable: {text}"
            )


def _check_not_within_quotes(template: str, values: Mapping[str, str]) -> None:
    """Refuse values that need quotes for the shell where there are quotes already."""
    quotes = quotes_of(template)
    for place in PLACE.finditer(template):
        if place[1] in values and not _plain(values[place[1]]) and quotes[place.start()]:
            raise InvalidInput(
                f"value of variable {place[1]!r} must be plain letters within quotes, for a shell, got "
                f"{values[place[1]]!r} in {template}: leave the quotes out, values are quoted"
            )


def _check_no_shell_needed(command: str) -> None:
    """Refuse what somebody meant for a shell, outside of quotes: pipes, wildcards, variables of the environment."""
    starts = {0, *(k + 1 for k, letter in enumerate(command) if letter.isspace())}
    meant = [
        letter
        for k, (letter, quote) in enumerate(zip(command, quotes_of(command), strict=True))
        if not quote and (letter in "();<>|&$`*?" or (letter == "~" and k in starts))
    ]
    meant += re.findall(r"^\s*(\w+=)", command)
    if meant:
        raise InvalidInput(
            f"command must go to a shell to be understood because of {meant[0]!r}: add -S, or quote it: {command}"
        )


def quotes_of(command: str) -> list[str]:
    """Return for each letter of a command by what it is quoted: nothing, one of the two quotes, or a backslash.

    >>> quotes_of("a 'b'")
    ['', '', "'", "'", "'"]
    """
    marks: list[str] = []
    within, escaped = "", False
    for letter in command:
        if escaped or (letter == "\\" and within != "'"):
            marks.append("\\")
            escaped = not escaped
        elif letter in ("'", '"') and within in ("", letter):
            marks.append(letter)
            within = "" if within else letter
        else:
            marks.append(within)
    if within or escaped:
        raise InvalidInput(f"command must have quotes that are closed, got {command}")
    return marks


def _plain(value: str) -> bool:
    """Whether a value means the same to a shell with and without quotes; empty ones vanish, as people expect."""
    return re.fullmatch(r"[\w@%+=:,./-]*", value) is not None


def contexts_of(options: Sequence[Option]) -> dict[str, list[str]]:
    """Return the variables that differ between options, as columns."""
    columns = {name: [option.variables[name] for option in options] for name in options[0].variables}
    return {name: values for name, values in columns.items() if len(set(values)) > 1}
