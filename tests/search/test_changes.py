"""A collection that is changed while it is asked: added, replaced, removed, fitted anew; in memory and in a folder."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.entries import Entry
from matchloom.search import refitting as module
from matchloom.search.collection import Collection, entries_of
from matchloom.search.learning import Learnt, learn
from matchloom.types import Pair
from tests.drawing import examples
from tests.refusing import refused
from tests.search.collections import ENGLISH, SPARE, as_large, many, pairs_of

ASKED = ["strikethrogh in githb", "how do I close a ticket", "fork", "kettle whistles", "price of thing3"]
TILDES, STARS = ENGLISH[0][1], ENGLISH[3][1]
KETTLE = "Turn the crank twice and let the kettle whistle."


def fitted(**given: Any) -> Collection:
    return Collection.fit(pairs_of(ENGLISH), **given)


@pytest.fixture
def kept(tmp_path: Path) -> Collection:
    """One that lives in a folder."""
    fitted().save(tmp_path / "kept")
    return Collection.open(tmp_path / "kept")


def adds_up(collection: Collection, questions: list[str] = ASKED) -> None:
    """Every score is its explanation's, whatever the entry is and when it came."""
    for question in questions:
        for hit in collection.search(question, top=None, explain=True):
            trace = hit.explanation.trace
            assert trace.score == pytest.approx(hit.score, abs=1e-9), hit
            assert abs(trace.residual) < 1e-9, hit
            assert float(collection.score([Pair(question, hit.text)])[0]) == pytest.approx(hit.score, abs=1e-5)


def same(one: Collection, other: Collection, questions: list[str] = ASKED) -> None:
    assert one.search(questions, top=None) == other.search(questions, top=None)
    assert [hits.known for hits in one.search(questions)] == [hits.known for hits in other.search(questions)]


# ---- add, replace, remove


def test_a_new_answer_is_found_at_once_and_by_others(kept: Collection) -> None:
    other = Collection.open(kept.folder or "")
    assert kept.add([("kettle whistles", KETTLE), ("q", "wrong", 0)]) == (1, 0, 1)
    for one in (kept, other, Collection.open(kept.folder or "")):
        assert len(one) == 7
        assert one.search("kettle", top=1)[0].text == KETTLE
        assert one.status()["changed_since_fit"] == 1
    same(kept, other)
    adds_up(other)
    assert kept.add([("q", "wrong", 0)]) == (0, 0, 1)
    assert kept.status()["changed_since_fit"] == 1


def test_a_question_more_helps_its_answer_and_keeps_the_rest(kept: Collection) -> None:
    before = kept["3fa36e8b63cf30a1"]
    assert before.text == TILDES
    assert kept.add([("scratch words out", TILDES.upper()), (before.questions[0].upper(), TILDES)]) == (0, 1, 0)
    after = kept["3fa36e8b63cf30a1"]
    assert after == before._replace(questions=tuple(sorted([*before.questions, "scratch words out"])))
    first = kept.search("scratch words", top=1)[0]
    assert (first.text, first.question) == (TILDES, "scratch words out")
    assert len(kept) == 6


def test_an_id_that_is_there_takes_the_new_text(kept: Collection) -> None:
    name = kept.search("fork", top=1)[0].id
    kept.add([Pair("branching off", "Press branch.", text_id=name)])
    assert kept[name].text == "Press branch."
    assert "copy someone else's repository" in kept[name].questions
    assert name in [hit.id for hit in kept.search("branching off", top=3)]
    assert ENGLISH[8][1] not in [hit.text for hit in kept.search("fork", top=None)]


def test_one_call_may_say_two_things_of_one_answer(kept: Collection) -> None:
    name = kept.search("fork", top=1)[0].id
    old = kept[name].text
    kept.add([Pair("new one", "Press branch.", text_id=name), Pair("old one", old)])
    assert {"new one", "old one", "How can I fork a repository?"} <= set(kept[name].questions)
    assert kept[name].text == "Press branch."
    assert len(kept) == 6


def test_other_ids_of_an_answer_stay_its_own() -> None:
    pairs = [Pair("weave", "Use a loom.", text_id="x"), Pair("weaving", "Use a loom.", text_id="z")]
    collection = Collection.fit([*pairs, Pair("grind", "Use a mill.", text_id="y"), Pair("bake", "Use an oven.")])
    assert "z" in collection
    collection.add([Pair("loom work", "Use a loom.")])
    assert collection["z"].id == "x"
    collection.add([Pair("more", "something else", text_id="z")])
    assert collection["x"].text == "Use a loom."  # one of its other ids is not told to have another text
    assert "more" in collection["x"].questions
    for n in range(12):  # so many that segments are joined
        collection.add([Pair(f"question {n}", f"Answer {n}.", text_id=f"n{n}")])
    assert collection["z"].id == "x"
    collection.refit()
    assert collection["z"].id == "x"
    assert collection.remove(["z", "none"]) == 1
    assert "x" not in collection
    assert "z" not in collection


def test_replace_puts_what_is_given_and_nothing_else(kept: Collection) -> None:
    name = kept.search("fork", top=1)[0].id
    given_ = Entry(name, "Press branch.", ("branching", "branching"), {"topic": "git"})
    assert kept.replace([given_, Entry("new", KETTLE)]) == 2
    for one in (kept, Collection.open(kept.folder or "")):
        assert one[name] == given_._replace(questions=("branching",))
        assert one["new"].questions == ()
        assert one.search("branching", top=1)[0].columns == {"topic": "git"}
    assert kept.replace([]) == 0
    for bad in (Entry("", "text"), Entry("id", " "), Entry("id", None)):  # type: ignore[arg-type]
        with refused("bad_row"):
            kept.replace([bad])
    adds_up(kept)


def test_remove(kept: Collection) -> None:
    ids = [hit.id for hit in kept.search("text", top=None)]
    assert kept.remove([ids[0], ids[0], "none"]) == 1
    assert kept.remove([ids[0]]) == 0
    assert ids[0] not in kept
    assert ids[0] not in [hit.id for hit in Collection.open(kept.folder or "").search("text", top=None)]
    with refused("missing", ids[0]):
        kept[ids[0]]
    with refused("no_data"):
        kept.remove(ids)
    assert len(kept) == 5
    with refused("wrong_type", "ids"):
        kept.remove("abc")
    kept.add([("again", TILDES)])
    assert len(kept) in (5, 6)
    adds_up(kept)


def test_changed_entries_keep_what_classifiers_say_while_they_keep_a_question(kept: Collection) -> None:
    name = "3fa36e8b63cf30a1"
    learnt = [n for n, one in enumerate(kept.fusion.names) if one in ("svm", "softmax", "ridge")]
    assert learnt

    def said() -> np.ndarray:
        view = kept._living.current().view
        scored = view.scored(view.base.reader.read(["strikethrogh in githb"]))[0]
        row = view.row_of(name)
        column: np.ndarray = scored.raw[0, learnt, int(np.flatnonzero(scored.rows == row)[0])]
        return column

    before = said()
    kept.add([("scratch words out", TILDES)])
    assert said().tolist() == before.tolist()
    adds_up(kept)
    kept.replace([Entry(name, "Another text.", ("scratch words out", ENGLISH[0][0]))])
    assert said().tolist() == before.tolist()
    kept.replace([Entry(name, TILDES, ("all new",))])
    assert np.isnan(said()).all()
    adds_up(kept)
    kept.replace([Entry(name, TILDES, (ENGLISH[0][0],))])
    assert np.isnan(said()).all()  # what was once another is learnt anew by the next fit
    assert kept.refit().kept
    assert not np.isnan(said()).any()


# ---- columns


def test_own_columns_are_kept_shown_and_filter(tmp_path: Path) -> None:
    rows = [
        {"question": question, "answer": text, "language": "en" if n < 8 else "de", "url": f"/{n}"}
        for n, (question, text) in enumerate(ENGLISH)
    ]
    made = Collection.create(tmp_path / "kept", rows)
    for collection in (made, Collection.open(tmp_path / "kept")):
        every = collection.search("text in a comment", top=None)
        assert {(hit.columns or {})["language"] for hit in every} == {"en", "de"}
        only = collection.search("text in a comment", top=None, where={"language": "de"})
        assert {(hit.columns or {})["language"] for hit in only} == {"de"}
        assert [hit.id for hit in only] == [hit.id for hit in every if (hit.columns or {})["language"] == "de"] or only
        both = collection.search("text in a comment", top=None, where={"language": ["de", "en"]})
        assert both == every
        assert collection.search("text", where={"language": "fr"}) == []
        assert collection.search("text", where={"language": "de", "url": "/none"}) == []
        with refused("unknown_name", "colour", "language, url"):
            collection.search("text", where={"colour": "red"})
    made.add([{"question": "kettle whistles", "answer": KETTLE, "language": "de"}])
    assert [hit.text for hit in made.search("kettle", where={"language": "de"}, top=1)] == [KETTLE]
    assert KETTLE not in [hit.text for hit in made.search("kettle", where={"language": "en"}, top=None)]
    made.add([{"question": "more", "answer": KETTLE, "url": "/k"}])
    assert made.search("kettle", top=1)[0].columns == {"language": "de", "url": "/k"}
    found = made.search(ASKED, where={"language": "de"}, top=None)
    assert found == [made.search(one, where={"language": "de"}, top=None) for one in ASKED]


# ---- folder


def test_memory_and_folder_are_the_same_to_the_bit_after_any_change(tmp_path: Path) -> None:
    memory = fitted()
    memory.save(tmp_path / "kept")
    opened = Collection.open(tmp_path / "kept")
    for one in (memory, opened):
        one.add([("kettle whistles", KETTLE), ("scratch words out", TILDES)])
        one.remove([one.search("fork", top=1)[0].id])
        one.replace([Entry("new", "A spindle spins yarn.", ("how is yarn spun",))])
    same(memory, opened)
    same(memory, Collection.open(tmp_path / "kept"))
    memory.save(tmp_path / "other")
    same(memory, Collection.open(tmp_path / "other"))
    opened.save(tmp_path / "kept")  # in place of itself
    assert len(list((tmp_path / "kept").glob("index-*"))) == len(list((tmp_path / "kept").glob("changes-*.jsonl"))) == 1
    same(memory, opened)
    opened.add([("one more", "One more answer.")])
    same(opened, Collection.open(tmp_path / "kept"))
    assert bool(Collection.check(tmp_path / "kept"))


def test_saving_in_its_own_folder_loses_nothing_that_another_wrote(kept: Collection) -> None:
    other = Collection.open(kept.folder or "")
    other.add([("kettle whistles", KETTLE)])
    kept.save(kept.folder or "")
    assert KETTLE in [entry.text for entry in (Collection.open(kept.folder or "").entries[n] for n in range(7))]
    other.add([("yarn", "A spindle spins yarn.")])
    assert len(kept) == 8


def test_two_writers_and_their_readers(kept: Collection) -> None:
    others = [Collection.open(kept.folder or "") for _ in range(3)]

    def work(n: int) -> None:
        for i in range(6):
            others[n].add([(f"question {n} {i}", f"Answer {n} {i}.")])
            assert others[n].search(f"question {n} {i}", top=3)

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(work, n) for n in range(3)]:
            done.result()
    assert len(kept) == 6 + 18
    for one in others:
        same(one, kept)


WRITER = """
import sys
from matchloom.search.collection import Collection
kept = Collection.open(sys.argv[1])
for n in range(5):
    kept.add([(f"question {sys.argv[2]} {n}", f"Answer {sys.argv[2]} {n}.")])
"""


@pytest.mark.slow
def test_two_processes_write_and_a_third_reads(kept: Collection) -> None:
    folder = str(kept.folder)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, folder, name]) for name in ("a", "b")]
    while any(writer.poll() is None for writer in writers):
        assert len(kept) >= 6
    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(kept) == 16
    assert kept.search("question a 3", top=1)[0].text == "Answer a 3."


def test_searches_go_on_while_entries_come(kept: Collection) -> None:
    stop, wrong = threading.Event(), []

    def ask() -> None:
        while not stop.is_set():
            try:
                kept.search(["strikethrogh in githb", "zebra crossing number 7", "kvass"], top=3, explain=True)
            except Exception as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(25):
        kept.add([(f"zebra crossing number {n} kvass{n}", f"Mind the zebra {n} of the xylophone{n}.")])
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_full_disk_changes_nothing(kept: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept.search(ASKED, top=None)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with refused("unwritable", "No space left on device"):
            kept.add([("kettle whistles", KETTLE)])
        with refused("unwritable", "No space left on device"):
            kept.remove([kept.entries.ids[0]])
        with pytest.raises(ValueError, match="No space left on device"):
            kept.refit()
    assert kept.search(ASKED, top=None) == before
    same(kept, Collection.open(kept.folder or ""))
    kept.add([("kettle whistles", KETTLE)])
    assert Collection.open(kept.folder or "").search("kettle", top=1)[0].text == KETTLE


def test_a_folder_that_is_gone_is_read_on_and_not_written(kept: Collection) -> None:
    assert kept.folder is not None
    before = kept.search(ASKED, top=None)
    shutil.rmtree(kept.folder)
    assert kept.search(ASKED, top=None) == before
    with refused("missing", str(kept.folder)):
        kept.add([("kettle whistles", KETTLE)])
    assert not kept.folder.exists()


def test_what_a_reader_has_seen_and_could_not_be_kept_is_taken_back(kept: Collection) -> None:
    """A line that another read before the disk refused it."""
    assert kept.folder is not None
    other = Collection.open(kept.folder)
    kept.add([("one more", "One more answer.")])
    files = {path: path.read_bytes() for path in kept.folder.glob("changes-1.*")}
    kept.add([("kettle whistles", KETTLE)])
    assert len(other) == 8
    for path, content in files.items():
        path.write_bytes(content)
    assert len(other) == 7
    other.add([("yarn", "A spindle spins yarn.")])
    assert len(Collection.open(kept.folder)) == 8


def test_a_damaged_journal_is_told_by_every_search_and_a_mended_one_is_whole(kept: Collection) -> None:
    assert kept.folder is not None
    journal = kept.folder / "changes-1.jsonl"
    other = Collection.open(kept.folder)
    kept.add([("one more", "One more answer.")])
    kept.add([("kettle whistles", KETTLE)])
    whole = journal.read_bytes()
    first, second = whole.splitlines(keepends=True)
    journal.write_bytes(first + second.replace(b"crank", b"drank"))
    for _ in range(2):
        with refused("altered", str(journal)):
            other.search("kettle")
    assert not Collection.check(kept.folder)
    journal.write_bytes(first)  # as the message advises
    journal.with_suffix(".confirmed").unlink()
    assert [hit.text for hit in other.search("one more", top=1)] == ["One more answer."]


def test_every_file_counts(kept: Collection, tmp_path: Path) -> None:
    kept.add([("kettle whistles", KETTLE)])
    kept.add([("one more", "One more answer.")])
    assert kept.folder is not None
    for path in sorted(kept.folder.iterdir()):
        content = path.read_bytes()
        for name, damaged in {
            "truncated": content[: len(content) // 2],
            "flipped": content[:40] + bytes([content[40] ^ 4]) + content[41:],
            "replaced": b"{}\n",
            "empty": b"",
        }.items():
            copy = tmp_path / f"{path.name} {name}"
            shutil.copytree(kept.folder, copy)
            (copy / path.name).write_bytes(damaged)
            if path.suffix == ".confirmed":
                assert len(Collection.open(copy)) == 8  # it proves nothing, or what it did
                continue
            with pytest.raises(ValueError, match=path.name) as caught:
                Collection.open(copy)
            assert "\n" not in str(caught.value)
            assert not Collection.check(copy)


def test_a_file_too_large_to_be_compared_when_it_is_opened_is_compared_by_check(
    kept: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept.folder is not None
    monkeypatch.setattr("matchloom.artifact.mapped.COMPARED", 100)
    path = kept.folder / "index-1.safetensors"
    content = bytearray(path.read_bytes())
    at = content.index(b"two tildes")
    content[at] ^= 1
    path.write_bytes(content)
    assert len(Collection.open(kept.folder)) == 6
    checked = Collection.check(kept.folder)
    assert not checked
    assert "index-1.safetensors was altered" in checked.findings[-1].text


# ---- learning anew


WORDS = ["loom", "mill", "kiln", "forge", "press", "lathe", "wheel", "crane"]
QUESTIONS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), max_size=3)


@examples(25)
@given(
    st.lists(st.tuples(st.integers(0, 6), QUESTIONS), min_size=3, max_size=8),
    st.lists(st.tuples(st.integers(0, 9), QUESTIONS), max_size=8),
    st.lists(st.integers(0, 9), max_size=3),
)
def test_adds_and_removes_and_a_refit_equal_one_fit_to_the_bit(
    first: list[tuple[int, Any]], later: list[tuple[int, Any]], gone: list[int]
) -> None:
    def pairs(rows: list[tuple[int, Any]]) -> list[Pair]:
        return [
            Pair(" ".join(words), f"The {WORDS[n % 8]} number {n} turns.", text_id=f"t{n}")
            for n, own in rows
            for words in (own or [("",)])
        ]

    collection = Collection.fit([*pairs(first), Pair("stays", "It stays.", text_id="t99")])
    if later:
        collection.add(pairs(later))
    collection.remove([f"t{n}" for n in gone])
    adds_up(collection, ["loom mill", "number 3"])
    assert collection.refit().kept
    left = [pair for pair in [*pairs(first), *pairs(later)] if int(pair.text_id[1:]) not in gone]
    whole = Collection.fit([*left, Pair("stays", "It stays.", text_id="t99")])
    both = ([one.entries[n] for n in range(len(one))] for one in (collection, whole))
    assert next(both) == next(both)
    assert collection.fusion.weights.tolist() == whole.fusion.weights.tolist()
    assert collection.calibration == whole.calibration
    same(collection, whole, ["loom mill", "number 3", "crane", "stays"])


def test_a_refit_is_kept_in_the_folder_and_followed_by_readers(kept: Collection) -> None:
    assert kept.folder is not None
    reader = Collection.open(kept.folder)
    kept.add([("kettle whistles", KETTLE), ("a whistling kettle", KETTLE)])
    held = reader.search(ASKED, top=None)
    found = kept.refit()
    assert found.kept
    assert (found.entries, found.questions) == (7, 13)
    assert sorted(path.name for path in kept.folder.iterdir()) == [
        "changes-2.confirmed",
        "changes-2.jsonl",
        "collection.json",
        "index-2.safetensors",
    ]
    assert kept.status()["changed_since_fit"] == 0
    same(reader, kept)
    assert held != reader.search(ASKED, top=None)
    whole = Collection.fit([*pairs_of(ENGLISH), Pair("kettle whistles", KETTLE), Pair("a whistling kettle", KETTLE)])
    same(kept, whole)
    reader.add([("yarn", "A spindle spins yarn.")])
    assert len(kept) == 8


def test_changes_that_come_while_it_is_fitted_are_kept(kept: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept.folder is not None
    other = Collection.open(kept.folder)
    gone = kept.search("fork", top=1)[0].id
    kept.report = {"anything": 1}
    kept.add([("before", "Before it.")])

    def slow(*given_: Any, **named: Any) -> Learnt:
        made = learn(*given_, **named)
        other.add([("kettle whistles", KETTLE)])
        other.remove([gone])
        kept.add([("scratch words out", TILDES)])
        return made

    monkeypatch.setattr(module, "learn", slow)
    assert kept.refit().kept
    for one in (kept, other, Collection.open(kept.folder)):
        assert len(one) == 7
        assert gone not in one
        assert one.search("kettle", top=1)[0].text == KETTLE
        assert one.search("scratch words", top=1)[0].question == "scratch words out"
        assert one.status()["changed_since_fit"] == 3
    assert kept.since_report == 1  # what came meanwhile is counted once
    same(kept, Collection.open(kept.folder))
    adds_up(kept)


def test_a_fit_that_another_kept_meanwhile_stays(kept: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Collection.open(kept.folder or "")
    kept.add([("kettle whistles", KETTLE)])

    def slow(*given_: Any, **named: Any) -> Learnt:
        monkeypatch.setattr(module, "learn", learn)
        with refused("busy"):  # who refits is alone; who fits anew is not kept from it
            other.refit()
        assert len(other) == len(kept)
        other.save(other.folder or "")
        return learn(*given_, **named)

    monkeypatch.setattr(module, "learn", slow)
    found = kept.refit()
    assert not found.kept
    assert "another fit" in found.why
    same(kept, other)


def test_a_fit_that_is_worse_is_not_kept(kept: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.add([("kettle whistles", KETTLE)])
    before = kept.search(ASKED, top=None)
    monkeypatch.setattr("matchloom.search.refitting.compare_weights", lambda *_: (0.9, 0.2, True))
    found = kept.refit()
    assert (found.kept, found.before, found.after) == (False, 0.9, 0.2)
    assert "less often" in found.why
    assert kept.search(ASKED, top=None) == before
    assert kept.status()["changed_since_fit"] == 1
    assert sorted(path.name for path in (kept.folder or Path()).glob("index-*")) == ["index-1.safetensors"]


def test_many_small_changes_are_joined_and_say_the_same(kept: Collection) -> None:
    for n in range(20):
        kept.add([(f"zebra {n}", f"Answer of zebra {n}.")])
    assert len(kept._living.current().view.segments) <= 9
    assert len(kept) == 26
    assert kept.search("zebra 13", top=1)[0].text == "Answer of zebra 13."
    adds_up(kept, ["zebra 13", "text"])
    same(kept, Collection.open(kept.folder or ""))


# ---- as large ones are searched


@pytest.fixture
def large() -> Collection:
    with as_large():
        return Collection.fit([*many(330), *SPARE])


def test_large_candidates_and_what_came_later(large: Collection, tmp_path: Path) -> None:
    with as_large():
        large.save(tmp_path / "kept")
        opened = Collection.open(tmp_path / "kept")
        for one in (large, opened):
            assert 0 < len(one.search("cancel thing8", top=None)) <= 20
            one.add([("kettle whistles", KETTLE), ("how is thing8 mended", "With glue.")])
            one.remove([one.search("price of thing6", top=1)[0].id])
            first = one.search("cancel thing8", top=1)[0]
            one.add([("stop thing8", first.text)])  # a changed entry of the fitted segment
            assert one.search("kettle", top=1)[0].text == KETTLE
            assert "thing6 " not in one.search("price of thing6", top=1)[0].text
            assert one.search("cancel thing8", top=1)[0].text == first.text
            adds_up(one, ["cancel thing8", "kettle", "glue for thing8"])
        questions = ["cancel thing8", "kettle", "glue", "price of thing6", "zzz"]
        same(large, opened, questions)
        assert large.search(questions, top=None) == [large.search(one, top=None) for one in questions]
        assert large.search("zzz") == []


@pytest.mark.parametrize("use_questions", [True, False])
def test_large_with_where(use_questions: bool, tmp_path: Path) -> None:
    rows = [
        {"question": pair.query, "answer": pair.text, "part": str(n % 3), "rare": "yes" if n < 5 else "no"}
        for n, pair in enumerate(many(330))
    ]
    with as_large():
        entries = entries_of(rows)
        made = Collection.fit(entries, use_questions=use_questions)
        made.save(tmp_path / "kept")
        for collection in (made, Collection.open(tmp_path / "kept")):
            for where in ({"part": "2"}, {"rare": "yes"}, {"part": ["0", "1"]}):
                found = collection.search("cancel thing2 of the policy", top=None, where=where, explain=True)
                assert found
                for hit in found:
                    assert all((hit.columns or {})[name] in wanted for name, wanted in where.items())
                    assert hit.explanation.trace.score == pytest.approx(hit.score, abs=1e-9)
            assert collection.search("cancel thing2", where={"rare": "yes"}, top=1)[0].text.startswith(
                "the surrender of thing2 "
            )
            assert collection.search("the surrender of thing2", top=1)[0].text.startswith("the surrender of thing2 ")
        made.add([{"question": "cancel kettle", "answer": KETTLE, "part": "7"}])
        assert [hit.text for hit in made.search("cancel", where={"part": "7"}, top=None)] in ([KETTLE], [])
        assert [hit.text for hit in made.search("kettle", where={"part": ["7", "0"]}, top=1)] == [KETTLE]


def test_large_classifiers_still_speak_for_changed_entries() -> None:
    pairs = many(120, questions=2)
    with as_large():
        collection = Collection.fit(pairs)
        assert "ridge" in collection.fusion.names
        first = collection.search("cancel thing8", top=1)[0]
        collection.add([("stop thing8", first.text)])
        view = collection._living.current().view
        row = view.row_of(first.id)
        scored = view.scored(view.base.reader.read(["cancel thing8"]))[0]
        raw = scored.raw[0, :, int(np.flatnonzero(scored.rows == row)[0])]
        assert not np.isnan(raw).any()
        adds_up(collection, ["cancel thing8", "stop thing8"])


def test_a_question_that_was_just_added_finds_its_entry_before_the_refit(kept: Collection) -> None:
    first = kept.search("where is my fork", top=1)[0]
    words = " ".join(f"{one.text} {' '.join(one.questions)}" for one in (kept.entries[n] for n in range(3)))
    near = f"{words} {first.question}"  # by its words it belongs elsewhere
    assert kept.search(near, top=1)[0].text != KETTLE
    kept.add([(near, KETTLE), ("kettle whistles", KETTLE)])
    for asked in (near, f"  {near.upper()} "):
        hits = kept.search(asked, top=None, explain=True)
        assert hits[0].text == KETTLE
        assert hits[0].score > hits[1].score
        assert hits[0].explanation.trace.score == pytest.approx(hits[0].score)
        assert kept.score([Pair(asked, KETTLE)])[0] == pytest.approx(hits[0].score)
        assert kept.trace(asked, KETTLE)[2].score == pytest.approx(hits[0].score)
    adds_up(kept)
    assert kept.search([near, "fork"], top=None)[0] == kept.search(near, top=None)
    other = next(kept.entries[n] for n in range(len(kept)) if kept.entries[n].text != KETTLE)
    kept.add([("what a riddle this is", other.text)])  # one more question of an entry that is fitted
    assert kept.search("What a riddle  this is", top=1)[0].id == other.id
    kept.refit()
    assert kept.search("kettle whistles", top=1)[0].text == KETTLE
