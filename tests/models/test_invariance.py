"""A score is a number of its pair alone, to the last bit: no order, batch, thread or way of asking moves it.

What is drawn is hostile: twins that differ in what no model reads, words repeated so that windows and cells tie, texts
without words, texts of unknown words, long beside short.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from matchloom import matcher as scoring
from matchloom.data.identity import with_ids
from matchloom.evaluation.report import evaluate
from matchloom.kernels import native
from matchloom.matcher import Matcher
from matchloom.models import MODELS, build_model, float64_copy
from matchloom.types import Pair
from tests.drawing import examples
from tests.models.making import TOKENIZER, VOCAB, embedding
from tests.representatives import each_variant

WORDS = ["open", "file", "files", "read", "list", "sort", "sorted", "the", "a", "of", "lines", "zzyzx", "Qux"]
# Beside the defaults: what reads more than word ids.
VARIANTS: list[tuple[str, dict[str, int | float | str | bool]]] = [
    *((name, {}) for name in MODELS),
    ("mv_lstm", {"lexical": True, "features": "pair"}),
    *(("mv_lstm", {"interaction": name, "lexical": False}) for name in ("cosine", "bilinear")),
    ("mv_lstm", {"factored": True, "words": True, "lexical": False}),
    ("match_pyramid", {"interaction": "tensor"}),
    ("match_srnn", {"interaction": "cosine"}),
    ("match_srnn", {"interaction": "indicator"}),
    ("m2s_net", {"features": "pair"}),
    ("rae", {"features": "pair"}),
]


def in_single(name: str) -> bool:
    return build_model(name, {}, embedding(seed=0), seed=0).single_precision


def make_matcher(name: str, seed: int, **arguments: int | float | str | bool) -> Matcher:
    """Weights of a size at which scores differ and single precision would show."""
    model = build_model(name, arguments, embedding(seed=seed + 1), seed=seed).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.own_parameters():
            parameter.mul_(4)
            if not parameter.any():  # what starts at 0 would let some models give one score to all
                parameter.uniform_(-0.5, 0.5, generator=generator)
    return Matcher(name, arguments, model, model.encoder.reader(TOKENIZER, VOCAB))


def draw_text(draw: random.Random) -> str:
    kind = draw.randrange(8)
    if kind == 0:
        return draw.choice(["", "?!", "zzyzx", "a"])
    if kind == 1:  # a word or two again and again: equal windows, equal cells, equal merges
        return " ".join(draw.choices(WORDS, k=2) * draw.randint(2, 6))
    return " ".join(draw.choices(WORDS, k=draw.randint(1, 40 if kind == 2 else 9)))


def twin(text: str, draw: random.Random) -> str:
    """Another text of the same words."""
    return draw.choice([f"{text} !", f"  {text}", text.replace(" ", ", "), f"{text}...", f"({text})"])


def draw_pairs(draw: random.Random, lists: int = 5) -> list[Pair]:
    pairs = []
    for n in range(lists):
        query = draw_text(draw)
        texts = [draw_text(draw) for _ in range(4)]
        texts += [twin(text, draw) for text in texts[:2]] + [query]
        pairs += [Pair(query, text, int(k == 0 or draw.random() < 0.2), f"q{n}") for k, text in enumerate(texts)]
        pairs[-1] = pairs[-1]._replace(label=0)
    return list(with_ids(pairs))


@contextmanager
def threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def check(matcher: Matcher, seed: int) -> None:
    draw = random.Random(seed)
    pairs = draw_pairs(draw)
    scores = matcher.score(pairs)
    assert np.isfinite(scores).all()
    assert len(set(scores.tolist())) > 1
    known = {pair: float(score) for pair, score in zip(pairs, scores, strict=True)}

    def same(asked: list[Pair], what: str) -> None:
        assert matcher.score(asked).tolist() == [known[pair] for pair in asked], what

    shuffled = draw.sample(pairs, len(pairs))
    same(shuffled, "order of lines")
    same(pairs[::3], "fewer batch mates")
    for pair in draw.sample(pairs, 5):
        same([pair], "alone")
        other = pair._replace(query=twin(pair.query, draw), text=twin(pair.text, draw))
        assert matcher.score([other]).tolist() == [known[pair]], "a twin alone"
        assert matcher.trace(pair.query, pair.text)[2].score == known[pair], "explained"
    with threads(2):
        same(shuffled, "threads")
    with pytest.MonkeyPatch.context() as patch:
        for batch, cells in ((1, 1 << 20), (7, 1 << 20), (64, 900)):
            patch.setattr(scoring, "_BATCH", batch)
            patch.setattr(scoring, "_CELLS", cells)
            same(shuffled, "batch size")
    listed = [pair for pair in pairs if pair.query_id == pairs[0].query_id]
    for asked in (listed, listed[::-1], listed[1:4]):
        ranked = matcher.rank(listed[0].query, [pair.text for pair in asked])
        assert [(asked[one.index], one.score) for one in ranked] == sorted(
            ((pair, known[pair]) for pair in asked), key=lambda one: (-one[1], one[0].text, asked.index(one[0]))
        ), "score against rank"
    first, again = (evaluate(matcher, given, baselines=False) for given in (pairs, shuffled))
    assert first.measured.values == again.measured.values
    assert first.bounds.tied_queries == again.bounds.tied_queries
    assert first.bounds.low.values == again.bounds.low.values
    assert first.warnings == again.warnings


@pytest.mark.parametrize(("name", "arguments"), each_variant(VARIANTS))
@examples(2)
@given(seed=st.integers(0, 9999))
def test_a_score_is_the_same_number_however_it_is_asked_for(name: str, arguments: dict, seed: int) -> None:
    check(make_matcher(name, seed % 7, **arguments), seed)


@pytest.mark.skipif(native.library() is None, reason="the native kernels are absent or switched off")
@pytest.mark.parametrize(("name", "arguments"), each_variant([one for one in VARIANTS if in_single(one[0])]))
def test_scores_by_the_kernels_are_those_of_double_precision(
    name: str, arguments: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = draw_pairs(random.Random(7))
    by_kernels = make_matcher(name, 3, **arguments).score(pairs)
    monkeypatch.setattr(float64_copy, "library", lambda: None)
    in_double = make_matcher(name, 3, **arguments).score(pairs)
    np.testing.assert_allclose(by_kernels, in_double, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["mv_lstm", "cntn"])
def test_texts_with_the_same_positions_are_encoded_and_scored_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = make_matcher(name, 0)
    seen: list[tuple[int, int, int]] = []
    model = matcher._double.of(matcher.model)
    work = model.match

    def match(left, right, batch):  # type: ignore[no-untyped-def]
        seen.append((len(left), len(right), len(batch)))
        return work(left, right, batch)

    monkeypatch.setattr(model, "match", match)
    matcher.score(
        [Pair("open a file", "read lines"), Pair("open a file!", "read lines."), Pair("Open  a file", "list")]
    )
    matcher.rank("open a file", ["read lines", "read  lines", "Read lines?", "list"])
    assert seen == [(1, 2, 2), (1, 2, 2)]


def test_what_a_model_reads_tells_texts_apart() -> None:
    texts = ["open zzyzx", "open quux", "open  zzyzx"]
    reader = make_matcher("mv_lstm", 0).reader
    assert reader.read(texts).same.tolist() == [0, 0, 0]  # unknown words are one word to the vocabulary
    assert reader.read(texts, lexical=True).same.tolist() == [0, 1, 0]


@pytest.mark.parametrize("model", [("match_srnn", {"interaction": "indicator"}), ("mv_lstm", {"features": "pair"})])
def test_texts_without_words_match_nothing_whichever_line_they_are_on(model: tuple[str, dict]) -> None:
    matcher = make_matcher(model[0], 0, **model[1])
    pair = Pair("", "?")
    alone = matcher.score([pair])[0]
    for before in ([Pair("a", "b")], [Pair("a", "b"), Pair("a", "c"), Pair("", "d")]):
        assert matcher.score([*before, pair])[-1] == alone


def test_scores_follow_changed_weights() -> None:
    matcher = make_matcher("mv_lstm", 0)
    pairs = [Pair("open a file", "read lines")]
    before = matcher.score(pairs)
    for change in (lambda: matcher.model.head.W_s.bias.add_(1), lambda: matcher.model.encoder.embedding.weight.mul_(2)):
        with torch.no_grad():
            change()
        after = matcher.score(pairs)
        assert after != before
        before = after
    state = {name: x * 2 for name, x in matcher.model.state_dict().items()}
    matcher.model.load_state_dict(state)
    assert matcher.score(pairs) != before
