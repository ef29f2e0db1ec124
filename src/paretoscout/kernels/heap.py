"""A binary heap of arms by a key, least on top, in which each arm's place is known: its key may change.

`arms` (K,) is the heap, `place` (K,) where each arm is in it, `keys` (K,) what it goes by, `size` how many are in it.
"""

from __future__ import annotations

from .arrays import FloatArray, SmallInts
from .compile import kernel


@kernel
def move_up(arms: SmallInts, place: SmallInts, keys: FloatArray, start: int) -> None:
    """Move the arm at a place towards the top, while it belongs above."""
    i, arm = start, arms[start]
    while i > 0:
        above = (i - 1) >> 1
        if keys[arms[above]] <= keys[arm]:
            break
        arms[i] = arms[above]
        place[arms[i]] = i
        i = above
    arms[i] = arm
    place[arm] = i


@kernel
def move_down(arms: SmallInts, place: SmallInts, keys: FloatArray, start: int, size: int) -> None:
    """Move the arm at a place away from the top, while it belongs below."""
    i, arm = start, arms[start]
    while True:
        below = 2 * i + 1
        if below >= size:
            break
        if below + 1 < size and keys[arms[below + 1]] < keys[arms[below]]:
            below += 1
        if keys[arms[below]] >= keys[arm]:
            break
        arms[i] = arms[below]
        place[arms[i]] = i
        i = below
    arms[i] = arm
    place[arm] = i


@kernel
def set_key(arms: SmallInts, place: SmallInts, keys: FloatArray, arm: int, key: float, size: int) -> None:
    """Give an arm of the heap another key."""
    before = keys[arm]
    keys[arm] = key
    if key < before:
        move_up(arms, place, keys, place[arm])
    else:
        move_down(arms, place, keys, place[arm], size)


@kernel
def push(arms: SmallInts, place: SmallInts, keys: FloatArray, arm: int, size: int) -> int:
    """Put an arm into the heap; return how many are in it now."""
    arms[size] = arm
    place[arm] = size
    move_up(arms, place, keys, size)
    return size + 1


@kernel
def remove(arms: SmallInts, place: SmallInts, keys: FloatArray, arm: int, size: int) -> int:
    """Take an arm out of the heap; return how many are left."""
    i, last = place[arm], size - 1
    if i != last:
        moved = arms[last]
        arms[i] = moved
        place[moved] = i
        move_down(arms, place, keys, i, last)
        move_up(arms, place, keys, place[moved])
    return last
