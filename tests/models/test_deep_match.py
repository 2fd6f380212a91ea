"""DeepMatch against the slow reference; its topics, links and contributions; runs that are saved and resumed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from matchloom.data.reader import Reader
from matchloom.data.tokenized import TokenizedTexts
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.matcher import Matcher
from matchloom.models.deep_match import DeepMatch, Links
from matchloom.text.tokenize import Tokenizer
from matchloom.text.topics import Topic
from matchloom.text.vocab import Vocab
from matchloom.training.config import TrainConfig
from tests.models.comparing import assert_same_gradients, assert_same_scores, read
from tests.models.making import PAIRS, VOCAB, embedding, make_model, make_pairs
from tests.reference import deep_match as reference
from tests.refusing import refused
from tests.training.making import colour_pairs, train

SMALL = {"topics": 6, "coarser": 2, "words": 9, "rank": 2}
VARIANTS = [{}, {"units": 3}, {"levels": 1}, {"levels": 2, "links": 3}, {"coarser": 1, "links": 1}, {"rank": 1}]
ARGUMENTS = {"topics": 8, "words": 6, "iterations": 20}
CONFIG = TrainConfig(epochs=4, batch=32, patience=9, workers=1)


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_equals_the_paper_word_pair_by_word_pair(arguments: dict) -> None:
    assert_same_scores(make_model("deep_match", **{**SMALL, **arguments}), reference.deep_match)


@pytest.mark.parametrize("arguments", VARIANTS[:2], ids=str)
def test_gradients_equal_the_reference(arguments: dict) -> None:
    assert_same_gradients(make_model("deep_match", **{**SMALL, **arguments}), reference.deep_match)


def test_each_resolution_has_so_many_times_fewer_topics() -> None:
    model = DeepMatch(embedding(), topics=50, coarser=4, levels=4)
    assert model.counts == [50, 12, 3, 1]
    assert [tuple(layer.targets.shape) for layer in model.layers] == [(50, 2), (12, 2), (3, 1)]


def test_topics_are_linked_to_those_with_which_they_share_most_word_pairs() -> None:
    finer = [Topic([2, 3, 4], [2, 3]), Topic([5, 6], [8, 9]), Topic([], [2])]
    coarser = [Topic([2, 3, 4, 5], [9]), Topic([2, 5, 6], [2, 3, 8]), Topic([3, 4], [2, 3, 9]), Topic([6], [8, 9])]
    layer = Links(3, 4, units=1, links=2)
    layer.connect(finer, coarser)
    # Word pairs: 3*0, 1*2, 2*2, 0*0 of the first; 1*1, 2*1, 0*1, 1*2 of the second; none of the third.
    assert layer.targets.tolist() == [[2, 1], [1, 3], [0, 1]]


def themes(count: int = 4, size: int = 5, pairs: int = 80) -> tuple[TokenizedTexts, TokenizedTexts, np.ndarray, Vocab]:
    """Left words l<theme>_<n> match right words r<theme>_<n> of the same theme; every second pair does not match."""
    rng = np.random.default_rng(0)
    texts: tuple[list[str], list[str]] = ([], [])
    rows = []
    for n in range(pairs):
        match = n % 2 == 0
        for side, letter, theme in ((0, "l", n % count), (1, "r", n % count if match else (n + 2) % count)):
            texts[side].append(" ".join(f"{letter}{theme}{'abcde'[i]}" for i in rng.integers(0, size, 6)))
        rows.append((n, n, int(match)))
    vocab = Vocab.build([text.split() for side in texts for text in side])
    left, right = (Reader(Tokenizer("whitespace"), vocab).read(side) for side in texts)
    return left, right, np.array(rows), vocab


def test_patches_hold_the_words_of_a_theme_on_both_sides() -> None:
    left, right, rows, vocab = themes(count=8)
    model = DeepMatch(WordEmbedding(len(vocab), 2), topics=4, words=9, links=1, coarser=2, iterations=60)
    model.pretrain(left, right, rows, seed=0, progress=False)
    # Only every second pair matches, and so only the even themes are seen.
    seen = set()
    for p in range(4):
        held = []
        for patches in (model.x_patches, model.y_patches):
            words = patches.words[(patches.homes == p) & (patches.words >= 0)]
            held.append({vocab.words[w - 2] for w in words.tolist()})
        (theme,) = {word[1] for side in held for word in side}
        assert all(word.startswith("l") for word in held[0])
        assert all(word.startswith("r") for word in held[1])
        assert len(held[0]) == len(held[1]) == 5
        seen.add(theme)
    assert seen == set("0246")


def test_topics_need_matching_pairs_with_words() -> None:
    left, right, rows, vocab = themes()
    model = DeepMatch(WordEmbedding(len(vocab), 2), **ARGUMENTS)
    rows[:, 2] = 0
    with refused("no_data", "matching", "0"):
        model.pretrain(left, right, rows, seed=0, progress=False)


def test_words_of_no_patch_take_no_part() -> None:
    model = make_model("deep_match", **SMALL)
    empty = model.decide(torch.zeros(1, 6, model.units, dtype=torch.double))
    scores = model(make_pairs(model))
    for n in (5, 6, 7):  # wordless or unknown on one side
        torch.testing.assert_close(scores[n : n + 1], empty)
    assert float((scores[0] - empty).detach().abs()) > 1e-6


@pytest.mark.parametrize("units", [1, 2])
def test_shares_go_through_every_unit_from_where_it_is_without_words(units: int) -> None:
    model = make_model("deep_match", **SMALL, units=units)
    names = [model.channel(n) for n in range(6 * units)]
    assert names[-1] == ("topic 6" if units == 1 else "topic 6, unit 2")
    empty = float(model.decide(torch.zeros(1, 6, units, dtype=torch.double)).detach())
    for (i, j), trace in zip(PAIRS, model.trace(make_pairs(model)), strict=True):
        left, right = read(model, i), read(model, j)
        assert trace.residual == pytest.approx(empty, abs=1e-9)
        assert trace.channels == sorted(trace.channels, key=names.index)
        assert trace.signals or trace.channels == names[:1]  # a map there is also where no topic holds two words
        found = {(names.index(trace.channels[s.channel]), s.left, s.right): s.value for s in trace.signals}
        for n in range(6 * units):
            for x, word in enumerate(left):
                for y, other in enumerate(right):
                    weight = reference.pair_weight(model, n // units, n % units, word, other)
                    expected = 0.0 if weight is None else float(weight.detach())
                    assert found.get((n, x, y), 0.0) == pytest.approx(expected, abs=1e-12)


def test_without_a_hierarchy_a_topic_adds_what_its_decision_changes() -> None:
    model = make_model("deep_match", **SMALL, levels=1, units=2)
    batch = make_pairs(model)
    local = model.local(model.encode(batch.left)[batch.left_rows], model.encode_right(batch.right)[batch.right_rows])
    change = (torch.sigmoid(local + model.b) - torch.sigmoid(model.b)).flatten(1) * model.output.weight
    for trace, expected in zip(model.trace(batch), change.detach(), strict=True):
        found = torch.zeros(12, dtype=torch.double)
        for signal in trace.signals:
            found[[model.channel(n) for n in range(12)].index(trace.channels[signal.channel])] += signal.contribution
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_with_one_unit_in_each_layer_a_share_is_its_part_of_the_whole_change() -> None:
    model = make_model("deep_match", topics=1, words=9, units=1)
    trace = model.trace(make_pairs(model))[0]
    total = sum(signal.value for signal in trace.signals)
    for signal in trace.signals:
        assert signal.contribution == pytest.approx((trace.score - trace.residual) * signal.value / total, abs=1e-9)


def test_learns_saves_and_loads(tmp_path: Path) -> None:
    pairs = colour_pairs(150, seed=1)
    config = TrainConfig(optimizer="adam", learning_rate=0.03, epochs=12, batch=64, workers=1)
    matcher = train(pairs, model="deep_match", arguments=ARGUMENTS, config=config, dimensions=2, folder=tmp_path)
    unseen = colour_pairs(40, seed=2)
    scores = matcher.score(unseen)
    firsts = [int(np.argmax(scores[n : n + 4]) == 0) for n in range(0, len(scores), 4)]
    assert np.mean(firsts) > 0.6  # .25 by chance
    np.testing.assert_array_equal(Matcher.load(tmp_path).score(unseen), scores)
    best = matcher.rank(unseen[0].query, [pair.text for pair in unseen[:4]])
    assert sorted(one.score for one in best) == pytest.approx(sorted(scores[:4].tolist()), abs=1e-5)


def test_a_resumed_run_keeps_its_topics_and_ends_in_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str, epochs: int, resume: bool = False) -> dict[str, torch.Tensor]:
        config = TrainConfig(**{**CONFIG.as_dict(), "epochs": epochs})  # type: ignore[arg-type]
        settings = {"model": "deep_match", "arguments": ARGUMENTS, "config": config, "dimensions": 2}
        return train(colour_pairs(), folder=tmp_path / name, resume=resume, **settings).model.state_dict()  # type: ignore[arg-type]

    whole = run("whole", 4)
    run("components", 2)
    monkeypatch.setattr(DeepMatch, "pretrain", None)  # a resumed run must not come here
    resumed = run("components", 4, resume=True)
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_unfitted_patches_hold_known_words_each_once() -> None:
    model = DeepMatch(embedding(), topics=5, words=9)
    for patches in (model.x_patches, model.y_patches):
        for p in range(5):
            words = patches.words[patches.homes == p].tolist()
            assert len(set(words)) == 9
            assert min(words) >= 2
            assert max(words) < len(VOCAB)


def test_links_follow_what_was_learnt_and_coarser_topics_hold_more_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    # Four fine topics of a word each; the two coarse ones hold them crosswise, not side by side.
    fine, coarse = ([Topic([n + 2], [n + 2]) for n in range(4)], [Topic([3, 5], [3, 5]), Topic([2, 4], [2, 4])])

    def found(documents: object, count: int, words: int, **_: object) -> list[Topic]:
        asked.append((count, words))
        return fine if count == 4 else coarse

    monkeypatch.setattr("matchloom.models.deep_match.paired_topics", found)
    left, right, rows, vocab = themes()
    arguments = {"topics": 4, "levels": 2, "coarser": 2, "words": 3, "links": 1}
    model = DeepMatch(WordEmbedding(len(vocab), 2), **arguments)
    model.pretrain(left, right, rows, seed=0, progress=False)
    assert asked == [(4, 3), (2, 6)]  # as many words in all at each resolution
    assert model.layers[0].targets.flatten().tolist() == [1, 0, 1, 0]
