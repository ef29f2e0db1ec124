"""All algorithms by their names. The file of each registers it; `__init__.py` has a line for each file."""

from __future__ import annotations

from ..errors import InvalidInput, UnknownName
from .contract import Algorithm, Settings

_algorithms: dict[str, Algorithm] = {}


def register(algorithm: Algorithm) -> None:
    """Make an algorithm known by its name, for your own ones too."""
    known = _algorithms.get(algorithm.name)
    if known is not None and known is not algorithm:
        raise InvalidInput(f"name of an algorithm must be new, got {algorithm.name!r}, which is taken")
    _algorithms[algorithm.name] = algorithm


def available() -> dict[str, str]:
    """Return the names of all algorithms, each with one line on what it does.

    >>> list(available())[:4]
    ['scout', 'multi-pfi', 'uniform', 'pfiwr']
    """
    return {name: algorithm.summary for name, algorithm in _algorithms.items()}


def get(name: str) -> Algorithm:
    """Return the record of an algorithm: its guarantee, its paper, its code.

    >>> get("multi-pfi").paper[:4]
    'Auer'
    """
    if name not in _algorithms:
        raise UnknownName("algorithm", name, _algorithms)
    return _algorithms[name]


def resolve(algorithm: str | Settings, *, noise_given: bool = True) -> tuple[Algorithm, Settings]:
    """Turn a name, or a settings object, into the algorithm and its settings.

    noise_given: whether sigma is known. Where it is not, an algorithm called by its name does without, if it can.
    """
    if isinstance(algorithm, str):
        record = get(algorithm)
        if not noise_given and "noise" in record.settings.__dataclass_fields__:
            return record, record.settings(noise="unknown")  # type: ignore[call-arg]
        return record, record.settings()
    for record in _algorithms.values():
        if type(algorithm) is record.settings:
            return record.under(algorithm), algorithm
    raise InvalidInput(
        f"algorithm must be a name ({', '.join(_algorithms)}) or a settings object such as "
        f"algorithms.MultiPFI(), got {algorithm!r}"
    )
