"""What every storage must do, whatever it is made of: `contract.py` in tests. Back ends inherit it in test_storage.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from paretoscout.errors import Conflict, NameTaken, UnknownName
from paretoscout.storage import Answer, Event, Heartbeat, Listed, Storage
from paretoscout.storage.contract import HEARTBEATS_KEPT

SECONDS = 600.0  # more than enough for anything that does not wait, on any machine


def events_from(first: int, n: int = 1) -> list[Event]:
    return [Event(number, "tell", number, {"values": [float(number)]}, 1.0) for number in range(first, first + n)]


def append(storage: Storage, n: int = 1, name: str = "study") -> None:
    with storage.writing(name) as writer:
        writer.append(events_from(storage.last(name) + 1, n))


def numbers(storage: Storage, name: str = "study", after: int = -1) -> list[int]:
    return [event.number for event in storage.events(name, after)]


class StorageContract:
    """Subclasses say how to open a storage: each call gives a new handle on the same place."""

    @pytest.fixture
    def handles(self) -> Iterator[Callable[[], Storage]]:
        raise NotImplementedError

    @pytest.fixture
    def storage(self, handles: Callable[[], Storage]) -> Storage:
        storage = handles()
        storage.create("study", "a spec")
        return storage

    # Studies

    def test_a_study_has_a_name_and_a_spec(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        storage.create("über 'quoted' \"name\"; --", "{}")
        for each in (storage, handles()):
            assert each.names() == ["study", "über 'quoted' \"name\"; --"]
            assert each.spec("study") == "a spec"
            assert each.specs() == {"study": "a spec", "über 'quoted' \"name\"; --": "{}"}
            assert list(each.specs()) == each.names()
            assert each.last("study") == -1
            assert numbers(each) == []
            assert each.latest_snapshot("study") is None

    def test_a_name_is_taken_once(self, storage: Storage) -> None:
        append(storage)
        with pytest.raises(NameTaken, match="'study' is there already"):
            storage.create("study", "another")
        assert storage.spec("study") == "a spec"
        assert numbers(storage) == [0]

    def test_of_all_who_create_at_once_one_does(self, handles: Callable[[], Storage]) -> None:
        def create(number: int) -> bool:
            try:
                handles().create("new", f"spec {number}")
            except NameTaken:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(create, range(8)))
        assert sum(won) == 1
        assert handles().spec("new") == f"spec {won.index(True)}"

    def test_unknown_studies_are_named(self, storage: Storage) -> None:
        for action in (
            lambda: storage.spec("stuby"),
            lambda: storage.last("stuby"),
            lambda: storage.head("stuby", 3),
            lambda: list(storage.events("stuby")),
            lambda: storage.of_trial("stuby", 0),
            lambda: storage.latest_snapshot("stuby"),
            lambda: storage.heartbeats("stuby"),
            lambda: storage.delete("stuby"),
            lambda: append(storage, name="stuby"),
        ):
            with pytest.raises(UnknownName, match="'stuby'"):
                action()

    def test_deleted_studies_are_gone_and_others_stay(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        storage.create("other", "o")
        append(storage, 3)
        append(storage, 2, "other")
        late = handles()
        assert late.last("study") == 2
        storage.delete("study")
        assert storage.names() == ["other"]
        assert numbers(storage, "other") == [0, 1]
        with pytest.raises(UnknownName), late.writing("study") as writer:
            writer.append(events_from(3))
        storage.create("study", "anew")
        assert storage.last("study") == -1
        assert late.spec("study") == "anew"
        assert numbers(late) == []

    def test_a_study_made_again_has_another_log(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        late = handles()
        first = late.head("study")
        assert first.log
        assert handles().head("study") == first == (first.log, -1, "")
        storage.delete("study")
        storage.create("study", "a spec")
        assert late.head("study").log != first.log
        with late.writing("study") as writer:
            assert writer.head().log == storage.head("study").log

    # Events

    def test_what_was_appended_is_there_for_everybody(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        reader = handles()
        with storage.writing("study") as writer:
            writer.append(events_from(0, 2))
            writer.append(events_from(2))
            writer.append([])
            assert numbers(reader) == []
        for each in (storage, reader, handles()):
            assert list(each.events("study")) == events_from(0, 3)
            assert each.last("study") == 2
            assert numbers(each, after=0) == [1, 2]

    @pytest.mark.parametrize("first", [0, 2, 4, 2**40])
    def test_what_leaves_a_hole_or_comes_twice_is_refused(self, storage: Storage, first: int) -> None:
        append(storage, 3)

        def wrong() -> None:
            with storage.writing("study") as writer:
                writer.append(events_from(first))

        with pytest.raises(Conflict, match=rf"events of study 'study' must go on from number 3, got {first}"):
            wrong()
        with pytest.raises(Conflict, match="got 5 in place of 4"), storage.writing("study") as writer:
            writer.append([*events_from(3), *events_from(5)])
        assert numbers(storage) == [0, 1, 2]
        append(storage)
        assert numbers(storage) == [0, 1, 2, 3]

    def test_marks_tell_events_apart(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        with storage.writing("study") as writer:
            assert writer.head().mark == ""
            writer.append(events_from(0, 3))
            inside = [writer.head(number) for number in (0, 1, 2, 3)]
            assert writer.head() == inside[2]
        outside = [handles().head("study", number) for number in (0, 1, 2, 3)]
        assert inside == outside
        assert len({head.mark for head in outside}) == 4
        assert [(head.last, bool(head.mark)) for head in outside] == [(2, True)] * 3 + [(2, False)]
        assert handles().head("study") == outside[2]

    def test_who_appended_is_kept_with_the_event(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        with storage.writing("study", by="host:7") as writer:
            writer.append([Event(0, "ask", 0), Event(1, "ask", 1, by="somebody else")])
        append(storage)
        assert [event.by for event in handles().events("study")] == ["host:7", "somebody else", ""]
        assert [event.by for event in handles().of_trial("study", 0)] == ["host:7"]
        assert Event(0, "ask", 0, by="one") == Event(0, "ask", 0, by="another"), "for people to read"

    @pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt])
    def test_what_an_error_cut_short_is_not_there_at_all(
        self, storage: Storage, handles: Callable[[], Storage], problem: type[BaseException]
    ) -> None:
        append(storage)

        def cut_short() -> None:
            with storage.writing("study") as writer:
                writer.append(events_from(1, 5))
                writer.snapshot(5, b"never")
                raise problem

        with pytest.raises(problem):
            cut_short()
        for each in (storage, handles()):
            assert numbers(each) == [0]
            assert each.latest_snapshot("study") is None
        append(storage)
        assert numbers(handles()) == [0, 1]

    def test_a_writer_sees_everything_up_to_now(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        append(handles(), 3)
        with storage.writing("study") as writer:
            assert writer.events() == events_from(0, 3)
            writer.append([Event(3, "fail", 1)])
            assert [event.number for event in writer.events(1)] == [2, 3]
            assert [event.number for event in writer.events(kinds=("fail",))] == [3]

    def test_values_come_back_as_they_went_in(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        values = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3, None, 123456789.123456789]
        body = {"arm": "ünï\x00\ud800 \"'\\", "values": values, "nested": {"list": [[1, 2], []], "yes": True}}
        event = Event(0, "tell", 7, body, 1767225600.123456)
        with storage.writing("study") as writer:
            writer.append([event])
        (read,) = handles().events("study")
        assert read == event
        assert [str(value) for value in read.body["values"]] == [str(value) for value in values]

    def test_events_can_be_picked(self, storage: Storage) -> None:
        with storage.writing("study") as writer:
            writer.append([Event(0, "ask", 0), Event(1, "ask", 1), Event(2, "expire", 0), Event(3, "tell", 0)])
        assert [event.kind for event in storage.of_trial("study", 0)] == ["ask", "expire", "tell"]
        for nobody in (9, 2**31, 2**62, 2**63, 10**30, -1):
            assert storage.of_trial("study", nobody) == []
        assert [event.number for event in storage.events("study", kinds=("tell", "expire"))] == [2, 3]
        assert [event.number for event in storage.events("study", 2, kinds=("tell", "expire"))] == [3]

    def test_long_logs_come_in_order(self, storage: Storage) -> None:
        append(storage, 20_001)  # longer than what is read at once
        assert numbers(storage) == list(range(20_001))
        assert numbers(storage, after=19_998) == [19_999, 20_000]

    # Snapshots

    def test_the_newest_snapshot_is_found(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        big = bytes(range(256)) * 20_000
        for number, data in enumerate([b"first", b"second", b"third", big]):
            with storage.writing("study") as writer:
                writer.append(events_from(number))
                writer.snapshot(number, data)
            assert handles().latest_snapshot("study") == (number, data)

    # Time

    def test_studies_are_listed_with_where_they_stand(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        storage.create("other", "{}", "me")
        append(storage, 3)
        for each in (storage, handles()):
            assert each.listed() == [Listed("study", "a spec", 2, 1.0, ""), Listed("other", "{}", -1, None, "me")]
            assert each.lasts() == {"study": 2, "other": -1}

    # Answers

    def test_an_answer_is_kept_with_what_was_appended(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        answer = Answer("me", "key", "digest", '{"trials": []}', 5.0)
        with storage.writing("study") as writer:
            writer.append(events_from(0, 2))
            assert [event.number for event in writer.appended] == [0, 1]
            writer.keep(answer)
        for each in (storage, handles()):
            assert each.answer("me", "key") == answer
            assert each.answer("you", "key") is None
            assert each.answer("me", "other") is None

    def test_an_answer_is_not_kept_where_an_error_cut_it_short(self, storage: Storage) -> None:
        def cut_short() -> None:
            with storage.writing("study") as writer:
                writer.append(events_from(0))
                writer.keep(Answer("me", "key", "digest", "text"))
                raise RuntimeError

        with pytest.raises(RuntimeError):
            cut_short()
        assert storage.answer("me", "key") is None
        assert numbers(storage) == []

    def test_a_key_has_one_answer_and_what_comes_with_another_is_not_kept(
        self, storage: Storage, handles: Callable[[], Storage]
    ) -> None:
        with storage.writing("study") as writer:
            writer.keep(Answer("me", "key", "digest", "first", storage.now()))

        def again() -> None:
            with handles().writing("study") as writer:
                writer.append(events_from(0))
                writer.keep(Answer("me", "key", "digest", "second", storage.now()))

        with pytest.raises(Conflict, match="answer to the key 'key' already"):
            again()
        kept = storage.answer("me", "key")
        assert kept is not None
        assert kept.text == "first"
        assert numbers(storage) == []

    # Heartbeats

    def test_heartbeats_are_rows_and_no_events(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        append(storage, 2)
        head = storage.head("study")
        first = Heartbeat("1f", "me", "machine", 7, "12", 1.5)
        other = Heartbeat("2e", "me", at=1.0)  # another run of a worker of the same name
        named = Heartbeat("", "gpu", at=2.0)
        for beat in (first, other, named):
            with storage.writing("study") as writer:
                writer.beat(beat)
        for each in (storage, handles()):
            assert sorted(each.heartbeats("study")) == sorted([first, other, named])
            assert each.head("study") == head
            assert numbers(each) == [0, 1]
        with handles().writing("study") as writer:
            assert sorted(writer.heartbeats()) == sorted([first, other, named])
            writer.beat(first._replace(at=9.0))
            assert first._replace(at=9.0) in writer.heartbeats()
            writer.sign_off("2e", "me")
            writer.sign_off("", "nobody")
        assert sorted(storage.heartbeats("study")) == sorted([first._replace(at=9.0), named])

    def test_a_heartbeat_that_an_error_cut_short_is_not_kept(self, storage: Storage) -> None:
        with storage.writing("study") as writer:
            writer.beat(Heartbeat("1f", "me", at=1.0))

        def cut_short() -> None:
            with storage.writing("study") as writer:
                writer.beat(Heartbeat("1f", "me", at=2.0))
                writer.sign_off("1f", "me")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            cut_short()
        assert storage.heartbeats("study") == [Heartbeat("1f", "me", at=1.0)]

    def test_old_heartbeats_are_dropped_and_those_of_a_deleted_study(self, storage: Storage) -> None:
        storage.create("other", "o")
        late = 1.0 + 2 * HEARTBEATS_KEPT
        for name in ("study", "other"):
            for run, at in (("1f", 1.0), ("2e", late)):
                with storage.writing(name) as writer:
                    writer.beat(Heartbeat(run, "me", at=at))
        assert [each.run for each in storage.heartbeats("study")] == ["2e"]
        storage.delete("study")
        storage.create("study", "anew")
        assert storage.heartbeats("study") == []
        assert [each.run for each in storage.heartbeats("other")] == ["2e"]

    def test_there_is_a_clock(self, storage: Storage) -> None:
        """The server of the tests runs on this machine: its clock is the same."""
        before = time.time()
        assert before - 1.0 <= storage.now() <= time.time() + 1.0

    # Many at once

    def test_writers_take_turns(self, handles: Callable[[], Storage], storage: Storage) -> None:
        each = 25

        def write(_: int) -> None:
            mine = handles()
            for _round in range(each):
                with mine.writing("study") as writer:
                    last = max((event.number for event in writer.events()), default=-1)
                    writer.append(events_from(last + 1))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        assert numbers(storage) == list(range(4 * each))

    def test_threads_may_share_a_handle(self, storage: Storage) -> None:
        def write(_: int) -> None:
            for _round in range(20):
                with storage.writing("study") as writer:
                    writer.append(events_from(len(writer.events())))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        assert numbers(storage) == list(range(80))

    def test_readers_do_not_wait_for_a_writer(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        append(storage)
        reader = handles()
        with ThreadPoolExecutor(1) as pool, storage.writing("study") as writer:
            writer.append(events_from(1))
            assert pool.submit(numbers, reader).result(SECONDS) == [0]
            assert pool.submit(reader.last, "study").result(SECONDS) == 0

    def test_a_writer_does_not_wait_for_readers(self, storage: Storage, handles: Callable[[], Storage]) -> None:
        append(storage, 5)
        slow = handles().events("study")
        assert next(slow).number == 0
        with ThreadPoolExecutor(1) as pool:
            pool.submit(append, storage).result(SECONDS)
        assert [event.number for event in slow][:4] == [1, 2, 3, 4]
        assert numbers(storage) == list(range(6))

    def test_nobody_sees_half_of_what_was_appended_together(
        self, storage: Storage, handles: Callable[[], Storage]
    ) -> None:
        seen: list[int] = []
        over = threading.Event()

        def read() -> None:
            mine = handles()
            while not over.is_set():
                seen.append(len(numbers(mine)))

        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read)
            for _ in range(30):
                append(storage, 3)
            over.set()
            reading.result(SECONDS)
        assert all(count % 3 == 0 for count in seen)

    def test_a_closed_handle_opens_again(self, storage: Storage) -> None:
        append(storage)
        storage.close()
        append(storage)
        assert numbers(storage) == [0, 1]
