"""SQLite files that are replaced, copied, linked or damaged while they are in use: refused in words, and nothing is lost."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from storage_contract import append, numbers

from paretoscout.cli.main import main
from paretoscout.errors import StorageUnavailable
from paretoscout.storage import Event, journal
from paretoscout.storage.sql import SQLStorage
from paretoscout.storage.upkeep import backup, repair

SPEC = '{"format": 1}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


def opened(file: Path) -> SQLStorage:
    return SQLStorage(f"sqlite:///{file}")


def fill(storage: SQLStorage, events: int) -> None:
    """Append large events, each in a transaction of its own, so that the journal is begun again and again."""
    last = storage.last("study")
    for number in range(last + 1, last + 1 + events):
        with storage.writing("study") as writer:
            writer.append([Event(number, "tell", number, {"values": [float(number)], "note": "x" * 30_000}, 1.0)])


def in_use(file: Path, seed: int) -> SQLStorage:
    """Return a storage whose journal was begun again since two copies were made of it: copy.db, and plain.db."""
    storage, chance = opened(file), random.Random(seed)
    storage.create("study", SPEC)
    fill(storage, chance.randint(5, 40))
    backup(storage, file.with_name("copy.db"))
    shutil.copyfile(file, file.with_name("plain.db"))
    fill(storage, chance.randint(150, 250))
    append(storage, 3)
    return storage


def repaired(file: Path) -> str:
    """Run `paretoscout db repair`; the settings of these studies are none that can be read."""
    done = CliRunner().invoke(main, ["db", "repair", "--yes", "--storage", str(file)], catch_exceptions=False)
    return done.output


def moved(file: Path) -> None:
    file.with_name("copy.db").replace(file)


def overwritten(file: Path) -> None:
    shutil.copyfile(file.with_name("copy.db"), file)


def overwritten_by_an_older_state(file: Path) -> None:
    shutil.copyfile(file.with_name("plain.db"), file)


def another_database(file: Path) -> None:
    other = opened(file.with_name("other.db"))
    other.create("study", SPEC)
    fill(other, 5)
    other.close()
    file.with_name("other.db").replace(file)


REPLACED = [moved, overwritten, overwritten_by_an_older_state, another_database]


@pytest.mark.parametrize("replace", REPLACED, ids=lambda each: each.__name__)
def test_a_file_that_was_replaced_is_refused_and_survives(file: Path, replace: Callable[[Path], None]) -> None:
    storage = in_use(file, 1)
    before = numbers(storage)
    replace(file)
    there = file.read_bytes()
    for action in (lambda: append(storage), lambda: numbers(storage), storage.names, lambda: opened(file)):
        with pytest.raises(StorageUnavailable, match=r"was replaced while it was in use.*run: paretoscout db repair"):
            action()
    done = CliRunner().invoke(main, ["db", "check", "--storage", str(file)])
    assert done.exit_code == 2
    assert "was replaced while it was in use" in done.output
    storage.close()
    assert file.read_bytes() == there, "the last connection must not write the journal into it"
    assert "the journal, which belongs to another file, is kept in" in repaired(file)
    again = opened(file)
    if "study" in again.names():  # the older state may be from before it was made
        known = numbers(again)
        assert known == before[: len(known)]
        append(again, 2)
        assert numbers(storage) == [*known, len(known), len(known) + 1], "whoever had it open goes on with the new one"
    again.close()
    if replace in (moved, another_database):  # what was there before is still known to the process that had it open
        (kept,) = file.parent.glob("s.db.replaced-*")
        assert numbers(opened(kept)) == before
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_process_that_ends_without_noticing_writes_no_journal_into_another_file(file: Path) -> None:
    storage = in_use(file, 3)
    overwritten(file)
    there = file.read_bytes()
    storage.close()
    assert file.read_bytes() == there


def test_a_state_that_the_journal_follows_on_is_as_good_as_the_file(file: Path) -> None:
    """A copy of the file from after the journal was begun: the journal has everything since."""
    storage = opened(file)
    storage.create("study", SPEC)
    append(storage, 4)
    shutil.copyfile(file, file.with_name("plain.db"))
    append(storage, 4)
    shutil.copyfile(file.with_name("plain.db"), file)
    append(storage)
    assert numbers(storage) == numbers(opened(file)) == list(range(9))


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "moved"])
def test_a_file_that_is_replaced_together_with_its_journal_is_read_as_it_is(file: Path, in_place: bool) -> None:
    other = in_use(file.with_name("other.db"), 7)
    right = numbers(other)
    file.with_name("copy.db").unlink()
    storage = in_use(file, 8)
    for end in ("", "-wal"):
        source, target = Path(f"{file.with_name('other.db')}{end}"), Path(f"{file}{end}")
        if in_place:
            shutil.copyfile(source, target)
        else:
            shutil.copyfile(source, f"{target}.new")
            os.replace(f"{target}.new", target)
    assert numbers(storage) == right
    append(storage)
    assert numbers(storage) == numbers(opened(file)) == [*right, len(right)]


@pytest.mark.parametrize("ends", [("-wal",), ("-wal", "-shm"), ("-shm",)], ids="".join)
def test_a_journal_that_was_removed_costs_nothing(file: Path, ends: tuple[str, ...]) -> None:
    storage = in_use(file, 4)
    for _ in range(3):
        for end in ends:
            os.unlink(f"{file}{end}")
        append(storage, 2)
        before = numbers(storage)
        assert before == list(range(len(before)))
        for end in ends:
            os.unlink(f"{file}{end}")
        assert numbers(storage) == before
    storage.close()
    assert numbers(opened(file)) == before


def test_a_journal_that_was_removed_in_the_middle_of_a_transaction_costs_nothing(file: Path) -> None:
    storage = in_use(file, 5)
    last = storage.last("study")
    with storage.writing("study") as writer:
        writer.append([Event(last + 1, "tell", 0, {}, 1.0)])
        os.unlink(f"{file}-wal")
    append(storage)
    assert numbers(storage) == numbers(opened(file)) == list(range(last + 3))


#: Tells, one by one, and prints each number that was acknowledged, or why it was not.
TELLER = """
import sys
from paretoscout.errors import StorageUnavailable
from paretoscout.storage import Event
from paretoscout.storage.sql import SQLStorage
storage = SQLStorage("sqlite:///" + sys.argv[1])
for _ in sys.stdin:
    try:
        with storage.writing("study") as writer:
            number = writer.head().last + 1
            writer.append([Event(number, "tell", 0, {"values": [1.0], "note": "x" * 9000}, 1.0)])
        print(number, flush=True)
    except StorageUnavailable as problem:
        print(str(problem)[:300].replace("\\n", " "), flush=True)
"""


def test_other_processes_lose_nothing_when_the_journal_is_removed(file: Path) -> None:
    storage = opened(file)
    storage.create("study", SPEC)
    tellers = [
        subprocess.Popen(
            [sys.executable, "-c", TELLER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    told: list[int] = []

    def tell(which: int) -> None:
        stdin, stdout = tellers[which].stdin, tellers[which].stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("go\n")
        stdin.flush()
        answer = stdout.readline().strip()
        if answer.isdigit():
            told.append(int(answer))

    chance = random.Random(6)
    for step in range(40):
        if step % 10 == 9:
            Path(f"{file}-wal").unlink(missing_ok=True)
        tell(chance.randrange(2))
    for teller in tellers:
        assert teller.stdin is not None
        teller.stdin.close()
        teller.wait(600)
        assert teller.stdout is not None
        teller.stdout.close()
    assert len(told) >= 30
    assert sorted(set(told)) == sorted(told), "no number was given twice"
    kept = numbers(storage)
    assert set(told) <= set(kept)


# Names


def test_a_second_name_is_refused(file: Path) -> None:
    storage = opened(file)
    storage.create("study", SPEC)
    os.link(file, file.with_name("t.db"))
    with pytest.raises(StorageUnavailable, match=r"has another name \(a hard link\).*paretoscout db backup"):
        opened(file.with_name("t.db"))
    file.with_name("t.db").unlink()
    append(storage)
    assert numbers(opened(file)) == [0]


def test_a_symbolic_link_is_the_file(file: Path) -> None:
    link = file.with_name("link.db")
    storage = opened(file)
    storage.create("study", SPEC)
    link.symlink_to(file)
    other = opened(link)
    for each in (storage, other, storage, other):
        append(each, 30)
    os.unlink(f"{file}-wal")
    append(other)
    append(storage)
    assert numbers(storage) == numbers(other) == list(range(122))
    second = opened(file.with_name("second.db"))
    second.create("study", SPEC)
    link.unlink()
    link.symlink_to(file.with_name("second.db"))
    append(other)
    assert numbers(second) == [0]


# Damage


@pytest.mark.parametrize("seed", range(6))
def test_what_can_be_read_of_a_damaged_file_is_put_into_a_new_one(file: Path, tmp_path: Path, seed: int) -> None:
    storage = opened(file)
    for name in ("study", "other"):
        storage.create(name, SPEC)
        append(storage, 400, name)
    fill(storage, 20 * (seed % 2))  # long texts: each has pages of its own
    before = {name: list(storage.events(name)) for name in storage.names()}
    storage.close()
    chance, size = random.Random(seed), file.stat().st_size
    with file.open("r+b") as damaged:
        if seed == 0:
            damaged.truncate(size * 3 // 4)
        for _ in range(seed):
            damaged.seek(4096 * chance.randrange(16, size // 4096))  # not the tables of tables
            damaged.write(chance.randbytes(4096))
    said = repaired(file)
    assert "is kept in" in said
    assert list(tmp_path.glob("s.db.damaged-*"))
    again = opened(file)
    repair(again, tmp_path / "dropped.jsonl", lambda spec, name: None)
    for name in again.names():
        kept = list(again.events(name))
        assert kept == before[name][: len(kept)]
        append(again, 1, name)
    assert again.names(), "studies themselves were not damaged"


def test_a_file_that_is_damaged_everywhere_is_a_sentence(file: Path) -> None:
    file.write_bytes(b"SQLite format 3\0" + random.Random(0).randbytes(20_000))
    done = CliRunner().invoke(main, ["db", "repair", "--yes", "--storage", str(file)])
    assert done.exit_code in (0, 2), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert list(file.parent.glob("s.db.damaged-*")) or file.read_bytes().startswith(b"SQLite format 3\0")


# Who may read them


def test_files_are_for_their_owner_alone(file: Path) -> None:
    umask = os.umask(0o022)
    try:
        storage = opened(file)
        storage.create("study", SPEC)
        append(storage, 3)
        backup(storage, file.with_name("copy.db"))
        with storage.engine.connect() as connection:
            connection.exec_driver_sql("UPDATE events SET body = '7' WHERE number = 1")
        repair(storage, file.with_name("dropped.jsonl"), lambda spec, name: None)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
    finally:
        os.umask(umask)
    assert set(modes) == {"s.db", "s.db-wal", "s.db-shm", "copy.db", "dropped.jsonl"}
    assert set(modes.values()) == {0o600}


# The parts


def test_locks_survive_a_look_at_the_header(file: Path) -> None:
    """To close a file drops the locks that a process has on it, also those of SQLite."""
    storage = opened(file)
    storage.create("study", SPEC)
    append(storage)
    journal.start_of(str(file))
    child = (
        "import sys; from paretoscout.storage.sql import SQLStorage; "
        "s = SQLStorage('sqlite:///' + sys.argv[1]); s.names(); s.close()"
    )
    subprocess.run([sys.executable, "-c", child, str(file)], check=True)
    assert Path(f"{file}-wal").exists(), "another process believed to be the last one that has it open"
