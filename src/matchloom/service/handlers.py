"""What requests ask of the library, as work in steps that may block: no HTTP here, and nothing asynchronous.

`by` names what ranks in a system's place: `bm25`, to compare with, or another served system.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from matchloom.explanation import Explanation, explain
from matchloom.explanation.budget import CellBudget
from matchloom.lexical import fit_scorer
from matchloom.search.explaining import with_known_question
from matchloom.search.reranking import bm25_of, by_scores
from matchloom.service.desk.questions import QuestionLog
from matchloom.service.limits import Limits
from matchloom.service.problems import Refused
from matchloom.service.steps import Steps, blocks_of, score_steps
from matchloom.service.systems import BM25, ServedSystem
from matchloom.text.tokenize import Tokenizer
from matchloom.types import (
    Calibrates,
    EncodesCandidates,
    Hit,
    Hits,
    MatchloomError,
    Pair,
    Ranked,
    Scorer,
    Scores,
    Sureness,
)

if TYPE_CHECKING:  # importing it takes a second, which a service without a fitted system need not wait
    from matchloom.search.collection import Collection
    from matchloom.search.entries import Entries

Plain = dict[str, Any]
NOTHING_STATED: Mapping[str, float | None] = {"precision": None, "coverage": None}
_NO_PROMISE = "`precision` and `coverage` work only for a collection that ranks by itself"
T = TypeVar("T")
_AT_ONCE = 32  # questions that are compared in one step
_LONGEST = 100  # answers that are looked through for the one to explain


def scorer_of(system: ServedSystem) -> Scorer:
    """What scores pairs, or a refusal."""
    if system.scorer is None:
        raise Refused(
            422, "cannot_score", f"{system.name} is an archive without a matcher, which scores no given pairs"
        )
    return system.scorer


def probabilities(scorer: Scorer, scores: Scores) -> list[float] | None:
    """How likely pairs with these scores match, where the scorer knows."""
    found = scorer.probabilities(scores) if isinstance(scorer, Calibrates) else None
    return None if found is None else found.tolist()


def rank(
    system: ServedSystem | None,
    query: str,
    candidates: Sequence[str],
    top: int | None,
    explained: Limits | None = None,
    stated: Mapping[str, float | None] = NOTHING_STATED,
) -> Steps[Plain]:
    """Candidates by falling score; without a system by stemmed BM25, whose words are counted in them.

    `stated` is a precision or a coverage, which only a collection knows how to keep.
    """
    collection = None if system is None else system.collection
    if collection is None and any(value is not None for value in stated.values()):
        raise Refused(409, "cannot_promise", _NO_PROMISE)
    scorer, found = yield from ranked(system, query, candidates, top)
    sureness: Sureness | None = None
    likely: Sequence[float | None] | None
    if collection is None:
        likely = probabilities(scorer, np.array([one.score for one in found], np.float32))
    else:
        sureness = collection.sureness(query, [one.text for one in found], **stated)
        likely = sureness.probabilities
        yield
    rows: list[Plain] = [{**one._asdict(), "probability": None, "explanation": None} for one in found]
    if explained is not None:
        reasons = yield from _reasons(scorer, query, [one.text for one in found[:_LONGEST]], explained)
        for row, why in zip(rows, reasons, strict=False):
            row["explanation"] = why
    for row, value in zip(rows, likely or [], strict=False):
        row["probability"] = value
    sure = {name: None if sureness is None else getattr(sureness, name) for name in ("known", "answered", "confident")}
    return {"system": BM25 if system is None else system.name, "scorer": scorer.name, **sure, "ranking": rows}


def _reasons(scorer: Any, query: str, texts: Sequence[str], limits: Limits) -> Steps[list[msgspec.Raw]]:
    """Why texts got their scores, as JSON; refused where the map of the first would be too large."""
    if texts:
        words = _tokenizer_in(scorer)
        limits.check_map(len(words(query)), len(words(texts[0])), channels_of(scorer))
    told = []
    for why in (yield from _explained(scorer, query, texts, CellBudget(limits.cells))):
        told.append(msgspec.Raw(msgspec.json.encode(why.to_dict())))
        yield
    return told


def _explained(scorer: Any, query: str, texts: Sequence[str], budget: CellBudget) -> Steps[list[Explanation]]:
    """Why texts got their scores, the first ones first, while there are cells left."""
    words, channels = _tokenizer_in(scorer), channels_of(scorer)
    made: list[Explanation] = []
    for text in texts:
        yield
        if not budget.allows(len(words(query)), len(words(text)), channels):
            break
        made.append(budget.spend(with_known_question(scorer, explain(scorer, query, text), query, text)))
    return made


def _tokenizer_in(scorer: Any) -> Tokenizer:
    found = getattr(getattr(scorer, "scorer", scorer), "tokenizer", None)
    return found if isinstance(found, Tokenizer) else Tokenizer()


def channels_of(scorer: Any) -> int:
    """Maps that an explanation has: of a collection one for each feature that it fuses."""
    fusion = getattr(getattr(scorer, "scorer", scorer), "fusion", None)  # of a fitted system, its own
    return max(1, len(fusion.names)) if fusion is not None else 1


def ranked(
    system: ServedSystem | None, query: str, candidates: Sequence[str], top: int | None
) -> Steps[tuple[Scorer, list[Ranked]]]:
    """What ranks candidates, and the best of them."""
    if system is None:
        scorer = bm25_of(candidates)
        yield
        return scorer, (yield from _ranked(scorer, query, candidates, top))
    return scorer_of(system), (yield from _ranked_by(system, scorer_of(system), query, candidates, top))


def _ranked_by(
    system: ServedSystem, scorer: Scorer, query: str, texts: Sequence[str], top: int | None
) -> Steps[list[Ranked]]:
    inner = scorer if system.fitted is None else system.fitted.scorer
    kept = system.encoded
    if not isinstance(inner, EncodesCandidates) or kept is None:
        return (yield from _ranked(scorer, query, texts, top))
    found: list[Ranked] = []
    for block in blocks_of([(len(query), len(text)) for text in texts]):
        some = inner.rank(query, kept.of(texts[block]), top=top)
        found.extend(one._replace(index=one.index + block.start) for one in some)
        yield
    return sorted(found, key=lambda one: (-one.score, one.text, one.index))[:top]


def _ranked(scorer: Scorer, query: str, texts: Sequence[str], top: int | None) -> Steps[list[Ranked]]:
    found = yield from score_steps(scorer.score, [Pair(query, text) for text in texts])
    return by_scores(found.tolist(), texts, top)


def search(
    system: ServedSystem,
    question: str,
    by: ServedSystem | str | None,
    options: Mapping[str, Any],
    log: QuestionLog | None = None,
) -> Steps[Plain]:
    """The answers of a system that fit a question best; none for a question of spaces."""
    found = (yield from _found(system, [question], by, options, lambda hits: hits))[0]
    if log is not None and by is None and question.strip():
        log.keep(system.name, question, found)
    return search_answer(system, by, found)


def search_answer(system: ServedSystem, by: ServedSystem | str | None, found: Hits, top: int | None = None) -> Plain:
    """What a client is told of the best of what was found."""
    return {"system": system.name, "kind": system.kind, "by": _name(by), **_answers(found, top)}


def search_many(
    system: ServedSystem,
    questions: Sequence[str],
    by: ServedSystem | str | None,
    options: Mapping[str, Any],
    most: int = Limits.room // 2,
) -> Steps[Plain]:
    """The same for many questions, which a collection compares together.

    What is told of a question is written at once: a hundred thousand answers as objects would be a gigabyte, and
    hold everybody up when they are gone through. More than `most` bytes are refused when they are reached.
    """
    size = 0

    def tell(found: Hits) -> msgspec.Raw:
        nonlocal size
        made = msgspec.json.encode(_answers(found))
        size += len(made)
        if size > most:
            raise Refused(
                422, "too_many_texts", f"the answers have more than {most:,} bytes; ask fewer questions, or a lower top"
            )
        return msgspec.Raw(made)

    results = yield from _found(system, questions, by, options, tell)
    return {"system": system.name, "kind": system.kind, "by": _name(by), "results": results}


def _found(
    system: ServedSystem,
    questions: Sequence[str],
    by: ServedSystem | str | None,
    options: Mapping[str, Any],
    tell: Callable[[Hits], T],
) -> Steps[list[T]]:
    """What is told of each question's answers."""
    if not system.searches:
        raise Refused(422, "cannot_search", f"{system.name} has no answers of its own; rank candidates with it")
    own = system.collection is not None and by is None
    if options.get("where") is not None and not own:
        raise Refused(409, "cannot_filter", "`where` works only for a collection, and without `by`")
    if any(options.get(name) is not None for name in NOTHING_STATED) and not own:
        raise Refused(409, "cannot_promise", _NO_PROMISE)
    asked = [question for question in questions if question.strip()]
    cells = int(options.get("explain") or 0)  # that are left for explanations of all answers
    size = _AT_ONCE if own and not cells else 1
    told: list[T] = []
    for start in range(0, len(asked), size):
        if own:
            some = _found_by_itself(system, asked[start : start + size], {**options, "explain": cells})
        else:
            some = [(yield from _found_otherwise(system, asked[start], by, {**options, "explain": cells}))]
        if cells:
            made = [one.explanation for hits in some for one in hits if one.explanation is not None]
            cells = max(0, cells - sum(max(1, one.trace.grid.size) for one in made))
        told.extend(map(tell, some))
        yield
    following = iter(told)
    return [next(following) if question.strip() else tell(Hits()) for question in questions]


def _found_by_itself(system: ServedSystem, asked: Sequence[str], options: Mapping[str, Any]) -> list[Hits]:
    assert system.collection is not None
    how: Any = {name: options.get(name) for name in ("top", "explain", "where", *NOTHING_STATED)}
    try:
        if len(asked) == 1:
            return [system.collection.search(asked[0], **how)]
        return system.collection.search(asked, **how)
    except MatchloomError as error:
        if error.code == "unknown_name":  # a column that no answer has
            raise Refused(404, "unknown", str(error)) from None
        raise


def _found_otherwise(
    system: ServedSystem, question: str, by: ServedSystem | str | None, options: Mapping[str, Any]
) -> Steps[Hits]:
    """By an archive, or by something else than the collection's own features."""
    if system.index is not None:
        return _archived(system, question, by, options)
    if by == BM25:
        baseline: Any = system.bm25()
        yield
        found = [one for one in baseline.search(question, top=options["top"]) if one.score > 0]
        return (yield from _with_reasons(baseline, question, found, options))
    assert isinstance(by, ServedSystem)
    assert system.collection is not None
    found = yield from _by_another(system.collection.entries, by, question, options["top"])
    return (yield from _with_reasons(scorer_of(by), question, found, options))


def _with_reasons(scorer: Any, question: str, found: Sequence[Hit], options: Mapping[str, Any]) -> Steps[Hits]:
    budget = CellBudget(options.get("explain") or 0)
    reasons = (yield from _explained(scorer, question, [one.text for one in found], budget)) if budget else []
    return Hits(one._replace(explanation=reasons[n]) if n < len(reasons) else one for n, one in enumerate(found))


def _answers(found: Hits, top: int | None = None) -> Plain:
    told = {"known": found.known, "answered": found.answered, "confident": found.confident}
    return {**told, "answers": [_plain(one) for one in found[:top]]}


def _archived(
    system: ServedSystem,
    question: str,
    by: ServedSystem | str | None,
    options: Mapping[str, Any],
) -> Hits:
    assert system.index is not None  # it is an archive
    alpha, rerank = options.get("alpha"), None
    if by == BM25:  # of the question with the answer alone, as a plain search engine would have it
        alpha, rerank = 0.0, system.bm25()
    elif isinstance(by, ServedSystem):
        rerank = scorer_of(by)
    return system.index.search(
        question,
        top=options["top"],
        candidates=max(options["candidates"], options["top"]),
        alpha=alpha,
        rerank=rerank,
        explain=options.get("explain") or False,
    )


def _by_another(answers: Entries, by: ServedSystem, question: str, top: int) -> Steps[list[Hit]]:
    found = yield from _ranked_by(by, scorer_of(by), question, answers.texts, top)
    return [Hit(answers.ids[one.index], one.text, one.score, index=one.index) for one in found]


def _plain(one: Hit) -> Plain:
    """A hit as JSON has it."""
    reason = one.explanation
    # Written at once: an explanation is thousands of small objects, of which no hundreds shall be there together.
    told = None if reason is None else msgspec.Raw(msgspec.json.encode(reason.to_dict()))
    return {**one._asdict(), "explanation": told}


def _name(by: ServedSystem | str | None) -> str | None:
    return by.name if isinstance(by, ServedSystem) else by


def explain_pair(
    system: ServedSystem | None, by: ServedSystem | str | None, asked: Mapping[str, Any], limits: Limits
) -> Explanation:
    """Why a text got its score, or an archived answer, by its id, its place in a search."""
    query, text = asked["query"], asked["text"]
    tokenizer = tokenizer_of(system)
    if system is not None and system.index is not None and asked["id"]:
        return _explained_answer(system, by, {**asked, "explain": limits.cells})
    if system is not None and system.collection is not None and asked["id"]:
        text = _text_of(system.collection, asked["id"], system.name)
    channels = channels_of(system.collection) if system is not None and by is None else 1
    # An answer by its id may be longer than any text that is taken.
    limits.check_map(len(tokenizer(query)), len(tokenizer(text)), channels)
    if system is None:
        return explain(fit_scorer("bm25_stemmed", asked["candidates"] or [text]), query, text)
    scorer = system.bm25() if by == BM25 else scorer_of(by if isinstance(by, ServedSystem) else system)
    return with_known_question(scorer, explain(scorer, query, text), query, text)


def _explained_answer(system: ServedSystem, by: ServedSystem | str | None, asked: Mapping[str, Any]) -> Explanation:
    """The archive explains what it finds: the search is done again, as far as the answer."""
    options = {**asked, "top": min(asked["top"], _LONGEST)}
    for one in _archived(system, asked["query"], by, options) if asked["query"].strip() else []:
        if one.id == asked["id"]:
            why: Explanation | None = one.explanation
            if why is None:
                raise Refused(422, "too_many_words", "the answers before this one are too long to be explained with it")
            return why
    raise Refused(404, "unknown", f"{asked['id'][:80]!r} is not among the first {options['top']} answers")


def _text_of(collection: Collection, name: str, system: str) -> str:
    if name not in collection:
        raise Refused(404, "unknown", f"{system} has no answer with the id {name[:80]!r}")
    return collection[name].text


def tokenizer_of(system: ServedSystem | None) -> Tokenizer:
    """How a system cuts texts; English for BM25 over given candidates."""
    return Tokenizer() if system is None else system.tokenizer
