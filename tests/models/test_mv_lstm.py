"""MV-LSTM and its special cases against the slow reference."""

from __future__ import annotations

import pytest
import torch

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.models import build_model
from matchloom.text.tokenize import stem
from tests.models.making import PAIRS, TEXTS, TOKENIZER, VOCAB, make_model, make_pairs
from tests.reference import mv_lstm as reference


def word_ids(n: int) -> list[int]:
    return VOCAB.ids(TOKENIZER(TEXTS[n])) or [1]


@pytest.mark.parametrize("interaction", ["cosine", "bilinear", "tensor"])
@pytest.mark.parametrize("k", [1, 5, 40])
def test_equals_the_paper_cell_by_cell(interaction: str, k: int) -> None:
    model = make_model(
        "mv_lstm", lexical=False, normalize=False, interaction=interaction, k=k, hidden=4, slices=3, units=6
    )
    expected = torch.stack([reference.mv_lstm(model, word_ids(i), word_ids(j)) for i, j in PAIRS])
    torch.testing.assert_close(model(make_pairs(model)), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("interaction", ["bilinear", "tensor"])
@pytest.mark.parametrize("given", [{"factored": True}, {"normalize": False, "words": True}, {"words": True}, {}])
def test_what_trials_add_equals_the_reference(interaction: str, given: dict[str, bool]) -> None:
    model = make_model("mv_lstm", lexical=False, interaction=interaction, hidden=4, slices=3, units=6, **given)
    expected = torch.stack([reference.mv_lstm(model, word_ids(i), word_ids(j)) for i, j in PAIRS])
    torch.testing.assert_close(model(make_pairs(model)), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("normalize", [False, True])
def test_gradients_equal_the_reference(normalize: bool) -> None:
    model = make_model("mv_lstm", lexical=False, normalize=normalize, hidden=4, slices=2, k=3, units=6)
    weights = torch.linspace(-1, 1, len(PAIRS), dtype=torch.double)
    ours = torch.autograd.grad((model(make_pairs(model)) * weights).sum(), list(model.parameters()))
    slow = torch.stack([reference.mv_lstm(model, word_ids(i), word_ids(j)) for i, j in PAIRS])
    theirs = torch.autograd.grad((slow * weights).sum(), list(model.parameters()))
    for (name, _), a, b in zip(model.named_parameters(), ours, theirs, strict=True):
        if name == "encoder.embedding.weight":
            a, b = a[1:], b[1:]  # the padding row is never trained
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10, msg=name)


def test_lexical_slices_equal_the_reference() -> None:
    model = make_model("mv_lstm", lexical=True, hidden=4, slices=2, k=3, units=6)
    expected = []
    for i, j in PAIRS:
        left, right = TOKENIZER(TEXTS[i]), TOKENIZER(TEXTS[j])
        words = reference.exact_slices(left, right, VOCAB.idf)
        stems = reference.exact_slices([stem(w) for w in left], [stem(w) for w in right], VOCAB.stem_idf)
        idf_of_start = {w[:4]: VOCAB.stem_idf(stem(w)) for w in reversed(left)}  # that of the first word which has it
        starts = reference.exact_slices([w[:4] for w in left], [w[:4] for w in right], idf_of_start.get)
        idfs = [[value for *_, value in cells] for cells in (words, stems, starts)]
        expected.append(reference.mv_lstm(model, word_ids(i), word_ids(j), idfs))
    # The IDF enters in single precision.
    torch.testing.assert_close(model(make_pairs(model)), torch.stack(expected), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["lstm_rnn", "bi_lstm_rnn"])
@pytest.mark.parametrize("head", ["cosine", "mlp"])
def test_special_cases_equal_the_reference(name: str, head: str) -> None:
    model = make_model(name, hidden=4, head=head)
    expected = torch.stack([reference.lstm_rnn(model, word_ids(i), word_ids(j)) for i, j in PAIRS])
    torch.testing.assert_close(model(make_pairs(model)), expected, rtol=1e-10, atol=1e-10)


def test_forget_gates_start_where_they_are_told() -> None:
    model = build_model("bi_lstm_rnn", {"hidden": 4, "forget": 1.0}, WordEmbedding(3, 2), seed=0)
    for reader in model.readers:
        bias = reader.lstm.bias_ih_l0
        assert (bias[4:8] == 1).all()
        assert (bias[:4].abs() <= 0.1).all()
        assert (bias[8:].abs() <= 0.1).all()


def test_trace_lists_the_k_strongest_cells() -> None:
    model = make_model("mv_lstm", lexical=False, interaction="cosine", k=5)
    trace = model.trace(make_pairs(model, [(0, 1)]))[0]
    cells = sorted(((v, i, j) for (i, j), v in _cells(trace.grid[0])), reverse=True)[:5]
    assert [(s.left, s.right) for s in trace.signals] == [(i, j) for _, i, j in cells]
    assert [s.value for s in trace.signals] == pytest.approx([float(v) for v, *_ in cells])


def _cells(grid):
    return [((i, j), grid[i, j]) for i in range(grid.shape[0]) for j in range(grid.shape[1])]


def test_a_word_that_repeats_is_one_exact_match() -> None:
    model = make_model("mv_lstm", lexical=True)
    trace = model.trace(make_pairs(model, [(4, 4)]))[0]
    words = trace.channels.index("same word")
    assert (trace.grid[words] > 0).sum() == len({w for w in TOKENIZER(TEXTS[4]) if VOCAB.idf(w) > 0})


@pytest.mark.parametrize("precision", [torch.float64, torch.float32])
@pytest.mark.parametrize("interaction", ["cosine", "bilinear", "tensor"])
def test_both_sides_read_at_once_are_what_each_alone_is(interaction: str, precision: torch.dtype) -> None:
    model = make_model("mv_lstm", interaction=interaction).to(precision)
    batch = make_pairs(model)
    assert batch.joined() is not None
    apart = model.match(model.encode(batch.left), model.encode_right(batch.right), batch)
    parameters = [x for x in model.parameters() if x.requires_grad]
    gradients = (torch.autograd.grad(scores.sum(), parameters) for scores in (model(batch), apart))
    torch.testing.assert_close(model(batch), apart)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_sides_of_unlike_length_are_read_apart() -> None:
    words = torch.ones(2, 30, dtype=torch.int64)
    short, long = Texts(words[:, :10], torch.tensor([10, 9])), Texts(words, torch.tensor([30, 2]))
    rows = torch.arange(2)
    assert PairBatch(short, long, rows, rows).joined() is None
    both = PairBatch(long, long.take(rows), rows, rows).joined()
    assert both is not None
    assert both.left is both.right
    assert both.right_rows.tolist() == [2, 3]
    assert both.left.lengths.tolist() == [30, 2, 30, 2]
