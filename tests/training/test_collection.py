"""Right pairs alone: negatives come from the whole collection, and nothing right is among them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from matchloom.data.identity import normalize_text
from matchloom.data.splits import hold_out_questions
from matchloom.evaluation.measures import measure
from matchloom.matcher import NOTHING_LEARNT, Matcher, ReadPairs
from matchloom.search.lance.collection import LanceCollection
from matchloom.text.tokenize import Tokenizer
from matchloom.training.collection import Collected, CollectionExamples, belongings, collect
from matchloom.training.config import TrainConfig
from matchloom.training.development import NEAREST, WHOLE, ranked
from matchloom.training.losses import softmax
from matchloom.training.run import train as train_as_users_do
from matchloom.types import Pair
from tests.refusing import refused

THINGS = ["loom", "mill", "kiln", "forge", "anvil", "lathe", "plough", "press", "wheel", "saw", "bellows", "churn"]
ASKED = ["how do I mend a {}", "my {} is broken what now", "{} does not work", "repair of the {}"]
COLLECTION = [
    Pair(asked.format(thing), f"Call the {thing} smith and wait.", None, "", thing)
    for thing in THINGS
    for asked in ASKED
]
SMALL = {"hidden": 6, "units": 10}


def examples(pairs: list[Pair], **settings: object) -> tuple[CollectionExamples, Collected]:
    config = TrainConfig(**settings)  # type: ignore[arg-type]
    found = collect(pairs, Tokenizer(), questions=config.questions)
    matcher = train_as_users_do(pairs, model="nbow_mlp", hold_out=0, vectors="random", dimensions=4, epochs=1)
    left, right = matcher.read(found.questions), matcher.read(found.texts)
    nothing = np.zeros(0, dtype=np.int64)
    read = ReadPairs(left, right, nothing, nothing, None)
    return CollectionExamples(found.collection, read, config, shards=1, by_length=True), found


@pytest.mark.parametrize("negatives", [3, 100])
@pytest.mark.parametrize("questions", [True, False])
def test_negatives_are_of_other_answers_and_of_the_same_kind(negatives: int, questions: bool) -> None:
    drawn, found = examples(COLLECTION, negatives=negatives, questions=questions)
    texts, asked = found.texts, found.questions
    thing_of = {pair.query: pair.text_id for pair in COLLECTION} | {pair.text: pair.text_id for pair in COLLECTION}
    kinds = set()
    for step in drawn.steps(0):
        for member in step[0]:
            q, rows = int(member[0]) // len(texts), (member % len(texts)).tolist()
            right, *wrong = (texts[row] for row in rows)
            kinds.add(right in asked)
            assert right != asked[q]
            assert thing_of[right] == thing_of[asked[q]]
            assert len(set(wrong)) == len(wrong)
            assert all(thing_of[text] != thing_of[asked[q]] for text in wrong)
            assert all((text in asked) == (right in asked) for text in wrong)
            whole = len(COLLECTION) - len(ASKED) if right in asked else len(THINGS) - 1
            assert len(wrong) == min(negatives, whole)
    assert kinds == ({True, False} if questions else {False})


def test_texts_of_the_others_in_a_batch_are_compared_with_unless_they_are_right() -> None:
    plain, wider = (examples(COLLECTION, negatives=2, batch=12, in_batch=given)[0] for given in (False, True))
    found = wider.collection
    gained = 0
    for before, after in zip(plain.steps(0), wider.steps(0), strict=True):
        drawn = {int(n) % found.texts for member in before[0] for n in member}
        for own, member in zip(before[0], after[0], strict=True):
            np.testing.assert_array_equal(member[: len(own)], own)
            q, rows = int(own[0]) // found.texts, set((member % found.texts).tolist())
            assert set(member // found.texts) == {q}
            answer = int(own[0]) % found.texts < found.answers
            alike = {n for n in drawn if (n < found.answers) == answer}
            assert rows == {int(own[0]) % found.texts} | (alike - set(found.relevant[q].tolist()))
            assert len(rows) == len(member)
            gained += len(member) - len(own)
    assert gained > 0


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_training_with_the_others_of_a_batch_learns(loss: str) -> None:
    matcher = train_as_users_do(
        COLLECTION, arguments=SMALL, vectors="random", dimensions=8, loss=loss, in_batch=True, epochs=6
    )
    assert NOTHING_LEARNT not in matcher.training


def test_each_epoch_draws_anew_and_the_same_again() -> None:
    drawn, _ = examples(COLLECTION, negatives=2)
    epochs = [[[m.tolist() for m in step[0]] for step in drawn.steps(epoch)] for epoch in (0, 0, 1)]
    assert epochs[0] == epochs[1] != epochs[2]


def test_a_question_with_two_answers_has_neither_as_a_negative() -> None:
    pairs = [Pair("how?", "so"), Pair("how?", "or so"), Pair("when?", "now"), Pair("HOW?", "thus")]
    found = collect(pairs, Tokenizer(), questions=True)
    assert found.questions == ["HOW?", "when?"]
    relevant, answers = found.collection.relevant, found.collection.answers
    [how, when] = [[found.texts[row] for row in rows if row < answers] for rows in relevant]
    assert (how, when) == (["so", "or so", "thus"], ["now"])


def test_softmax_is_the_mean_of_log_likelihoods() -> None:
    scores = torch.randn(7, dtype=torch.double, generator=torch.Generator().manual_seed(0)) * 30
    scores.requires_grad_()
    positive, negative = torch.tensor([0, 0, 3, 3, 3]), torch.tensor([1, 2, 4, 5, 6])
    slow = -torch.log_softmax(scores[:3], 0)[0] - torch.log_softmax(scores[3:], 0)[0]
    torch.testing.assert_close(softmax(scores, positive, negative), slow)
    ours, theirs = (torch.autograd.grad(loss, scores)[0] for loss in (softmax(scores, positive, negative), slow))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_right_pairs_alone_teach_and_the_order_of_lines_plays_no_role(loss: str) -> None:
    runs = []
    for seed in (1, 2):
        shuffled = random.Random(seed).sample(COLLECTION, len(COLLECTION))
        runs.append(
            train_as_users_do(
                shuffled,
                arguments={**SMALL, "lexical": True},
                vectors="random",
                dimensions=6,
                epochs=2,
                batch=32,
                loss=loss,
            )
        )
    one, other = (run.model.state_dict() for run in runs)
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert runs[0].training["best"] | {"seconds": 0, "pairs_per_second": 0} == runs[1].training["best"] | {
        "seconds": 0,
        "pairs_per_second": 0,
    }
    asked = [
        Pair(f"the {thing} stopped", f"Call the {other} smith and wait.", float(thing == other), thing, other)
        for thing in THINGS
        for other in THINGS
    ]
    assert measure(asked, runs[0].score(asked), ("P@1",)).values["P@1"] > 0.5  # chance: 1 of 12


def test_what_is_held_out_leaves_every_answer_a_question() -> None:
    kept, held = hold_out_questions(COLLECTION, 0.25, seed=3)
    assert len(held) == len(COLLECTION) // 4
    assert {pair.text_id for pair in kept} == set(THINGS)
    assert not {normalize_text(pair.query) for pair in kept} & {normalize_text(pair.query) for pair in held}
    one_each = [pair for pair in COLLECTION if pair.query.startswith("how")]
    assert len(hold_out_questions(one_each, 0.25)[1]) == 3


def test_development_questions_meet_everything_or_what_is_near() -> None:
    few = ranked(COLLECTION[:3], COLLECTION, Tokenizer(), 0)
    assert len(few) == 3 * len(THINGS)
    assert sum(pair.label or 0 for pair in few) == 3
    many = [Pair(f"question {n}", f"answer number {n}") for n in range(WHOLE + 1)]
    lists = ranked(many[:5], many, Tokenizer(), 0)
    assert sum(pair.label or 0 for pair in lists) == 5
    assert 5 * NEAREST <= len(lists) <= 5 * (NEAREST + 1)
    judged = [Pair("q", "a", 1.0), Pair("q", "b", 0.0)]
    assert ranked(judged, many, Tokenizer(), 0) == judged


def test_a_matcher_that_learnt_nothing_says_so_and_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "run"
    settings = {"model": "lstm_rnn", "dimensions": 4, "epochs": 1, "learning_rate": 1e-9, "margin": 0.1}
    noise = [Pair(pair.query, f"{n % 7} {n % 5}", float(n % 3 == 0), str(n // 3)) for n, pair in enumerate(COLLECTION)]
    train_as_users_do(noise, noise, vectors="random", folder=folder, **settings)  # type: ignore[arg-type]
    matcher = Matcher.load(folder)
    assert "nothing is learnt yet" in caplog.text
    assert matcher.training[NOTHING_LEARNT] in caplog.text
    with refused("failed", "nothing"):
        LanceCollection.create(tmp_path / "archive", matcher=folder)
    index = LanceCollection.create(tmp_path / "archive")
    index.add(COLLECTION)
    with refused("failed", "matcher"):
        index.search("loom", rerank=matcher)


def test_settings_go_on_top_of_those_that_suit_the_model() -> None:
    matcher = train_as_users_do(COLLECTION, model="cntn", hold_out=0, vectors="random", dimensions=4, epochs=1)
    config = matcher.training["config"]
    assert (config["epochs"], config["optimizer"]) == (1, "adam")
    with refused("unknown_name", "'epoch'"):
        train_as_users_do(COLLECTION, epoch=1)


def test_the_papers_start_is_one_word_away() -> None:
    for paper, diagonal in ((False, 1.0), (True, 0.0)):
        matcher = train_as_users_do(
            COLLECTION[:12], paper=paper, arguments=SMALL, hold_out=0, vectors="random", dimensions=4, epochs=1
        )
        M = matcher.model.interaction.M.detach()  # type: ignore[union-attr]
        assert abs(float(torch.diagonal(M, dim1=1, dim2=2).mean()) - diagonal) < 0.3
        assert matcher.arguments.get("init", "identity") == ("random" if paper else "identity")


def test_a_folder_with_a_matcher_is_not_overwritten_without_a_word(tmp_path: Path) -> None:
    quick = {"model": "nbow_mlp", "hold_out": 0, "vectors": "random", "dimensions": 4, "epochs": 1}
    train_as_users_do(COLLECTION, folder=tmp_path, **quick)  # type: ignore[arg-type]
    with refused("exists", "overwrite"):
        train_as_users_do(COLLECTION, folder=tmp_path, **quick)  # type: ignore[arg-type]
    train_as_users_do(COLLECTION, folder=tmp_path, overwrite=True, **quick)  # type: ignore[arg-type]


def belongings_one_by_one(
    asked: list[int], texts: list[int], homes: list[int], questions: bool
) -> tuple[list[list[int]], list[tuple[int, list[int]]]]:
    """What belongs to each question, pair by pair; and its positives."""
    first = max(texts) + 1
    relevant, positives = [], []
    for q in range(max(asked) + 1):
        mine = sorted({home for home, other in zip(homes, asked, strict=True) if other == q})
        answers = [sorted({a for a, home in zip(texts, homes, strict=True) if home == own}) for own in mine]
        twins = sorted({first + other for other, home in zip(asked, homes, strict=True) if home in mine})
        relevant.append(sorted({a for own in answers for a in own}) + twins)
        positives += [(q, own) for own in answers]
        if questions and len(twins) > 1:
            positives.append((q, [twin for twin in twins if twin != first + q]))
    return relevant, positives


@pytest.mark.parametrize("questions", [True, False])
def test_what_belongs_to_a_question_is_what_a_slow_loop_finds(questions: bool) -> None:
    draw = np.random.default_rng(0)
    for _ in range(100):
        rows = [np.unique(draw.integers(0, 9, 20), return_inverse=True)[1] for _ in range(2)]
        homes = draw.integers(0, 6, 20).tolist()
        found = belongings(*rows, homes, questions=questions)
        relevant, positives = belongings_one_by_one(rows[0].tolist(), rows[1].tolist(), homes, questions)
        assert [own.tolist() for own in found.relevant] == relevant
        assert [(q, own.tolist()) for q, own in found.positives] == positives
        assert found.texts == found.answers + (
            max(rows[0]) + 1 if any(own[0] >= found.answers for _, own in positives) else 0
        )
