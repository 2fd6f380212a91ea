"""Topics of paired texts: planted ones are found, with both their sides."""

from __future__ import annotations

import numpy as np
import pytest

from matchloom.text.topics import Topic, paired_topics

THEMES = 3
SIZE = 6  # words of a theme on either side


def theme_words(theme: int) -> range:
    return range(2 + theme * SIZE, 2 + (theme + 1) * SIZE)


@pytest.fixture(scope="module")
def pairs() -> list[tuple[np.ndarray, np.ndarray]]:
    """A left text of one theme goes with a right text of the next one: the same ids mean other things on each side."""
    rng = np.random.default_rng(0)
    return [(rng.choice(theme_words(n % THEMES), 8), rng.choice(theme_words((n + 1) % THEMES), 5)) for n in range(150)]


def find(pairs: list, topics: int = THEMES, words: int = 20, seed: int = 0, progress: bool = False) -> list[Topic]:
    return paired_topics(pairs, topics, words, iterations=45, seed=seed, progress=progress)


def test_planted_topics_are_found_with_the_words_of_both_sides(pairs: list) -> None:
    found = {(frozenset(left), frozenset(right)) for left, right in find(pairs)}
    assert found == {(frozenset(theme_words(t)), frozenset(theme_words((t + 1) % THEMES))) for t in range(THEMES)}


def test_the_likeliest_words_are_kept_first(pairs: list) -> None:
    whole, few = find(pairs), find(pairs, words=2)
    assert few == [Topic(topic.left[:2], topic.right[:2]) for topic in whole]
    often = {side: np.bincount(np.concatenate([pair[side] for pair in pairs])) for side in (0, 1)}
    for topic in whole:
        for side, words in enumerate(topic):
            counts = often[side][words]
            assert counts[0] >= np.median(counts)


def test_a_topic_without_words_of_its_own_holds_none(pairs: list) -> None:
    found = find(pairs[:2], topics=40)
    assert len(found) == 40
    assert Topic([], []) in found
    held = {(side, word) for topic in found for side, words in enumerate(topic) for word in words}
    assert held <= {(side, int(word)) for pair in pairs[:2] for side in (0, 1) for word in pair[side]}


def test_same_seed_same_topics_with_and_without_a_bar(pairs: list) -> None:
    assert find(pairs, topics=5) == find(pairs, topics=5, progress=True)
    assert find(pairs, topics=5) != find(pairs, topics=5, seed=1)


def test_texts_without_words_are_passed_over(pairs: list) -> None:
    empty = np.array([], dtype=np.int64)
    assert find([(empty, empty)]) == [Topic([], [])] * THEMES
    assert find([*pairs, (empty, empty)]) == find(pairs)
