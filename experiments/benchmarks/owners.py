"""Owners who refit with what people judge: HWU64, half of whose training questions arrive over ten rounds.

Run: python -m experiments.benchmarks.owners [--out experiments/results/owners.json]

Half of the training questions, drawn by digests, are the owner's file. The others are asked, a tenth in each round, of
the collection as it is then. People see ten answers: they judge the first one, and where it is wrong and the right one
is among the others, that one too. So many of the judgements, 0 or 10 in a hundred, say the opposite. After each round
`Collection.refit` is given the file of all judgements so far. P@1 and coverage are of the valid questions, which nobody
judged; test questions are not looked at. The data are in the folder MATCHLOOM_DATA, or ../shared/data beside the
project.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import places
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.data.formats import read_pairs
from matchloom.data.identity import digest
from matchloom.evaluation.significance import sign_test
from matchloom.search.collection import Collection
from matchloom.search.feedback import FeedbackFile, Judgement
from matchloom.types import MatchloomError, Pair

ROUNDS, SHOWN, PRECISION = 10, 10, 0.95
WRONG = (0.0, 0.1)


def drawn(share: float, *what: str) -> bool:
    """Whether this share, drawn by digests, has it."""
    return int(digest("owners", *what), 16) / 16**16 < share


def judge(faq: Collection, asked: Sequence[Pair], wrong: float, number: int) -> list[Judgement]:
    """What people say of the answers that they are shown."""
    said = []
    for pair, hits in zip(asked, faq.search([pair.query for pair in asked], top=SHOWN), strict=True):
        names = [hit.id for hit in hits]
        looked_at = [*names[:1], *(name for name in names[1:] if name == pair.text_id)]
        for name in looked_at if names[:1] != [pair.text_id] else names[:1]:
            right = (name == pair.text_id) != drawn(wrong, pair.query, name)
            said.append(Judgement(pair.query, name, right, time=float(number)))
    return said


def right_first(faq: Collection, valid: Sequence[Pair]) -> NDArray[np.bool_]:
    """Whether each question finds its answer first."""
    found = faq.search([pair.query for pair in valid], top=1)
    return np.array([bool(hits) and hits[0].id == pair.text_id for pair, hits in zip(valid, found, strict=True)])


def coverage(faq: Collection, valid: Sequence[Pair]) -> tuple[float, float] | None:
    """The part of the questions that get an answer at the stated precision, and the precision they have."""
    try:
        found = faq.search([pair.query for pair in valid], top=1, precision=PRECISION)
    except MatchloomError:
        return None
    shown = [(hits, pair) for hits, pair in zip(found, valid, strict=True) if hits.answered]
    right = sum(hits[0].id == pair.text_id for hits, pair in shown)
    return len(shown) / len(valid), right / max(1, len(shown))


def rounds(own: Sequence[Pair], asked: Sequence[Pair], valid: Sequence[Pair], wrong: float) -> list[dict[str, Any]]:
    """A row for the owner's file alone, and one for each round."""
    faq = Collection.fit(own)
    first = before = right_first(faq, valid)
    rows = [_row(0, 0, faq, valid, before, before, first)]
    with tempfile.TemporaryDirectory() as folder:
        file = FeedbackFile(Path(folder) / "feedback.jsonl")
        count = 0
        for number in range(1, ROUNDS + 1):
            for one in judge(faq, asked[number - 1 :: ROUNDS], wrong, number):
                file.keep(one)
                count += 1
            report = faq.refit(feedback=file.path).feedback
            assert report is not None
            after = right_first(faq, valid)
            held = {"held_out_before": report.before, "held_out_after": report.after, "learnt": report.learnt}
            rows.append({**_row(number, count, faq, valid, before, after, first), **held})
            before = after
    return rows


def _row(
    number: int,
    judgements: int,
    faq: Collection,
    valid: Sequence[Pair],
    before: NDArray[np.bool_],
    after: NDArray[np.bool_],
    first: NDArray[np.bool_],
) -> dict[str, Any]:
    shown = coverage(faq, valid)
    row = {
        "round": number,
        "judgements": judgements,
        "P@1": round(float(after.mean()), 4),
        "p_to_round_before": _chance(before, after),
        "p_to_file_alone": _chance(first, after),
        "coverage": None if shown is None else round(shown[0], 4),
        "precision": None if shown is None else round(shown[1], 4),
    }
    print("| " + " | ".join(str(value) for value in row.values()) + " |", flush=True)
    return row


def _chance(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> float:
    """Two-sided p of the sign test."""
    return round(sign_test(int((after & ~before).sum()), int((before & ~after).sum())), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=places.RESULTS / "owners.json")
    options = parser.parse_args()
    train, valid = (list(read_pairs(places.DATA / "intents" / f"hwu64_{part}.tsv")) for part in ("train", "valid"))
    train.sort(key=lambda pair: digest("owners", pair.query))
    own, asked = train[: len(train) // 2], train[len(train) // 2 :]
    result: dict[str, Any] = {"commit": commit(), "data": "HWU64, valid", "precision": PRECISION}
    for wrong in WRONG:
        print(f"\n{wrong:.0%} of the judgements are wrong")
        print("| round | judgements | P@1 | p, round before | p, file alone | coverage | precision |")
        print("|---|---|---|---|---|---|---|", flush=True)
        result[f"wrong {wrong:g}"] = rounds(own, asked, valid, wrong)
        with atomic_write(options.out) as file:
            file.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
