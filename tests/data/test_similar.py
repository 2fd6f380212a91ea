"""Clusters of similar questions, and what is held out with them."""

from __future__ import annotations

import random

from matchloom.data.identity import normalize_text
from matchloom.data.similar import similar_questions
from matchloom.data.splits import hold_out_clusters
from matchloom.types import Pair

PAY = ["How do I pay by card?", "how do I pay by cards", "How can I pay by card?", "Are coins taken at the till?"]
SEND = ["When does my parcel come?", "when does my parcel come", "Delivery takes how many days?"]


def pairs() -> list[Pair]:
    return [Pair(q, "Cards are taken.", text_id="pay") for q in PAY] + [Pair(q, "Soon.", text_id="send") for q in SEND]


def test_similar_questions_of_one_answer_are_a_cluster_whatever_their_order() -> None:
    found = similar_questions(pairs())
    own = [found.of[normalize_text(q)] for q in PAY]
    assert own[0] == own[1] == own[2] != own[3]
    assert (found.copies, found.similar, len(found.of)) == (4, 5, 7)
    shuffled = pairs()
    random.Random(1).shuffle(shuffled)
    assert similar_questions(shuffled) == found


def test_a_question_of_another_answer_is_no_copy() -> None:
    found = similar_questions([Pair("Where is the tea?", "Left."), Pair("Where is the tea", "Right.")])
    assert (found.copies, found.similar, len(set(found.of.values()))) == (0, 0, 2)


def test_clusters_go_with_a_held_out_question_and_answers_stay() -> None:
    known, held = [pairs()[n] for n in (0, 1, 3, 4, 6)], [pairs()[2]]
    kept, asked = hold_out_clusters(known, held, similar_questions(pairs()).of, most=0.5)
    assert asked == held
    assert [pair.query for pair in kept] == ["", "", PAY[3], SEND[0], SEND[2]]
    assert [pair.text for pair in kept] == [pair.text for pair in known]


def test_an_answer_keeps_a_question_and_no_more_goes_than_may() -> None:
    clusters = similar_questions(pairs()).of
    only_copies = [pairs()[n] for n in (0, 1, 4)]
    assert hold_out_clusters(only_copies, [pairs()[2]], clusters) == (only_copies, [])
    known = [pairs()[n] for n in (0, 1, 3, 4)]
    assert hold_out_clusters(known, [pairs()[2]], clusters, most=0.3) == (known, [])
    lonely = [pairs()[3]]  # nothing is similar to it
    assert hold_out_clusters([pairs()[0], pairs()[4]], lonely, clusters)[1] == lonely
