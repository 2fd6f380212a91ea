"""Questions ranked against everything: each one meets every text of the collection, not a list of five."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matchloom.data.identity import digest, normalize_text
from matchloom.types import MatchloomError, Pair

MOST = 3_000_000  # pairs that are scored; with more, fewer questions are asked


def full_ranking(
    pairs: Sequence[Pair], texts: Iterable[Pair | str] = (), *, most: int = MOST, seed: int = 0
) -> list[Pair]:
    """Each question of `pairs` with every text: label 1 where a pair is positive, else 0.

    The collection is `texts` (texts, or pairs whose texts and text_ids count) and the positives of the pairs
    themselves. Texts that are the same but for case and spaces, or share a text_id, are one. Where this would make more
    than `most` pairs, as many questions are drawn by their digests as fit.

    Args:
        pairs: Questions with positives (label above 0, or none).
        texts: The collection, where it is larger than the texts of the pairs.
        most: At most this many pairs.
        seed: Of the draw.
    """
    positives = [pair for pair in pairs if pair.is_positive]
    if not positives:
        raise MatchloomError("no pair is positive (label above 0, or none), so that nothing can be ranked")
    given = (one if isinstance(one, Pair) else Pair("", one) for one in texts)
    keys: dict[tuple[str, str], str] = {}  # a text and an id to the id of the one they are
    spelt: dict[str, str] = {}
    for pair in [*given, *positives]:
        same = [("text", normalize_text(pair.text)), *([("id", pair.text_id)] if pair.text_id else [])]
        known = next((keys[key] for key in same if key in keys), None)
        name = known or pair.text_id or digest(normalize_text(pair.text))
        for key in same:
            keys.setdefault(key, name)
        spelt.setdefault(name, pair.text)
    questions: dict[str, tuple[str, set[str]]] = {}
    for pair in positives:
        asked = pair.query_id or digest(normalize_text(pair.query))
        questions.setdefault(asked, (pair.query, set()))[1].add(keys["text", normalize_text(pair.text)])
    fitting = max(1, most // len(spelt))
    drawn = sorted(questions, key=lambda key: digest(str(seed), key))[:fitting]
    return [
        Pair(questions[key][0], text, float(name in questions[key][1]), key, name)
        for key in sorted(drawn)
        for name, text in sorted(spelt.items(), key=lambda item, key=key: digest(key, item[0]))  # type: ignore[misc]
    ]
