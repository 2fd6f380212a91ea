"""A collection: it is made and opened, asked (`asked.py`), changed while it is asked, fitted anew, and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from matchloom import artifact
from matchloom.basics.stores import one_place
from matchloom.basics.validation import one_path
from matchloom.data.entries import Entry
from matchloom.data.unanswerable import has_answer
from matchloom.search.changes import added, checked, entries_of, removed, rows_of
from matchloom.search.collection import switching
from matchloom.search.collection.asked import Asked
from matchloom.search.collection.living import LivingState
from matchloom.search.collection.making import LANCE, as_matcher, check_store, created_in_lance
from matchloom.search.entries import Entries
from matchloom.search.features.dense import SentenceVectors
from matchloom.search.folder import refuse_used
from matchloom.search.journal import Change
from matchloom.search.learning import Settings, learn
from matchloom.search.refitting import Refit
from matchloom.search.state import State
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Added, MatchloomError

if TYPE_CHECKING:
    from matchloom.data.formats import PairsLike
    from matchloom.data.formats.columns import Columns
    from matchloom.matcher import Matcher
    from matchloom.search.checkup import CheckUp

_IN_VAIN = 10_000  # questions without an answer that are kept


class Collection(Asked):
    """Answers with their questions. Made by `fit` or `create`, opened by `open`; changed by `add` and `remove`.

    >>> from matchloom import Pair
    >>> pairs = [Pair("how do I weave?", "Use a loom."), Pair("how do I grind corn?", "Use a mill.")]
    >>> faq = Collection.fit(pairs)
    >>> [hit.text for hit in faq.search("griding corn")]
    ['Use a mill.', 'Use a loom.']
    >>> faq.add([("how do I bake?", "Use an oven.")])
    Added(new=1, replaced=0, wrong=0)
    >>> faq.search("baking", top=1)[0].text
    'Use an oven.'
    """

    # ---- making

    @classmethod
    def fit(
        cls,
        pairs: PairsLike | Entries,
        *,
        tokenizer: Tokenizer | None = None,
        sentences: SentenceVectors | None = None,
        words: bool = True,
        use_questions: bool = True,
        learn_weights: bool = True,
        features: Sequence[str] = (),
        baseline: str | None = None,
        unanswerable: Sequence[str] = (),
        tune: bool = False,
        seed: int = 0,
        progress: bool = False,
    ) -> Collection:
        """Learn from pairs of questions and their answers; `Entries.of` says which pairs are of one answer.

        With `sentences`, the vectors of a pretrained encoder are compared, too; without `words`, only the cosine with
        the nearest known text is used, as a baseline. Without `use_questions` a question is compared with the answers'
        texts alone, and known questions only teach the weights. With `baseline`, one of `search/baselines.py` ranks: it
        is kept if nothing learnt is better. `features` names the only ones to make, such as bm25_doc for plain BM25;
        from `unanswerable` questions, which have no answer here, the collection learns when to give none. Nothing is
        drawn at random: `seed` is accepted as in every fit and changes nothing.

        Args:
            pairs: Questions with their answers: Pairs, tuples, dicts, a data frame or the path of a file; or Entries.
            tokenizer: How texts become words.
            sentences: The sentence vectors of a pretrained encoder.
            words: Whether words and characters are compared.
            use_questions: Whether known questions are compared with the one asked.
            learn_weights: Learn the weight of each feature from held-out questions.
            features: The only features to make; all that pay by default.
            baseline: The name of a baseline that ranks in place of features.
            unanswerable: Questions that have no answer here, from which it learns when to give none.
            tune: Tune the last layers of the encoder on the questions, if that improves held-out ones; it takes
                minutes.
            seed: Changes nothing.
            progress: Whether to show a bar.
        """
        entries = pairs if isinstance(pairs, Entries) else entries_of(pairs)
        learns = learn_weights and baseline is None
        settings = Settings(
            tokenizer or Tokenizer(),
            words,
            use_questions,
            learns,
            baseline,
            tuple(features),
            tuple(sorted(set(unanswerable)))[:_IN_VAIN],
        )
        return cls(LivingState(State.of(learn(entries, settings, sentences, tune=tune, progress=progress), settings)))

    @classmethod
    def create(
        cls,
        folder: Path | str,
        pairs: PairsLike,
        *,
        encoder: Matcher | Path | str | None = None,
        tokenizer: Tokenizer | None = None,
        learn_weights: bool = False,
        features: Sequence[str] = (),
        columns: Columns | None = None,
        store: str = "files",
        progress: bool = False,
    ) -> Collection:
        """A new collection in an empty folder; without `learn_weights` its weights are those that did well elsewhere.

        Args:
            folder: Where; it is made, and must be empty if it exists.
            pairs: Questions with their answers: Pairs, tuples, dicts, a data frame or the path of a file.
            encoder: A matcher with sentence vectors, or its folder; they are compared, too.
            tokenizer: How texts become words.
            learn_weights: Learn the weight of each feature from the questions, as `fit` does.
            features: The only features to make, such as ("bm25_doc",) for plain BM25; all that pay by default.
            columns: Your names of the columns, such as {"query": "title", "text": "body"}.
            store: "files", which are mapped; or "lance", a LanceDB table for millions of pairs, which learns nothing.
            progress: Whether to show a bar.
        """
        check_store(store)
        if store == "lance":
            return cast(Collection, created_in_lance(folder, pairs, encoder, tokenizer, columns, progress))
        path = one_path("folder", folder)
        refuse_used(path)
        sentences = None if encoder is None else SentenceVectors(as_matcher(encoder))
        entries = entries_of(pairs, columns)
        made = cls.fit(
            entries,
            tokenizer=tokenizer,
            sentences=sentences,
            learn_weights=learn_weights,
            features=features,
            progress=progress,
        )
        made.save(path)
        return cls.open(path)

    @classmethod
    def open(cls, folder: Path | str) -> Collection:
        """An existing collection. The next search finds what other processes write into its folder.

        A collection with `store="lance"` has the same methods, except those that learn.

        Args:
            folder: What `save`, `create` or `fit` wrote; of a LanceDB archive also its URI, such as s3://bucket/name.
        """
        path = one_place("folder", folder)
        if isinstance(path, str) or artifact.kind_of(path) == LANCE:
            return cast(Collection, artifact.load(path))
        return cls(LivingState.of_folder(path))

    @staticmethod
    def check(folder: Path | str) -> CheckUp:
        """Read every file and every entry of a collection, and say what is damaged. The result is true if nothing is.

        Args:
            folder: The collection's; it need not open.
        """
        from matchloom.search.checkup import check_collection

        path = one_place("folder", folder)
        if isinstance(path, str) or artifact.kind_of(path) == LANCE:
            from matchloom.search.lance.collection import LanceCollection

            return LanceCollection.check(path)
        return check_collection(path)

    # ---- changing

    def add(self, pairs: PairsLike, *, columns: Columns | None = None, progress: bool = False) -> Added:
        """Add questions and answers: found by every reader, and on the disk, when this returns.

        A question of an existing answer is added to it. If the id of an answer exists with another text, the new text
        replaces the old one. Pairs with label 0 are skipped, and those whose text is empty or no_answer.

        Args:
            pairs: Pairs, tuples, dicts, a data frame or the path of a file; several questions of one answer are
                several pairs with the same text or text_id.
            columns: Your names of the columns, such as {"query": "title", "text": "body"}.
            progress: Whether to show a bar.
        """
        rows = list(rows_of(pairs, columns))
        wrong = sum(not (pair.is_positive and has_answer(pair)) for pair, _ in rows)
        if wrong == len(rows):
            return Added(0, 0, wrong)
        entries = Entries.of([pair for pair, _ in rows], [own for _, own in rows])
        with self._living.writing():
            change, new = added(self._living.state.view, entries)
            self._living.change(change)
        return Added(new, len(change.put) - new, wrong)

    def replace(self, entries: Iterable[Entry]) -> int:
        """Put these entries, with their questions and columns, in place of those with the same ids.

        Args:
            entries: Entries (`matchloom.data.entries.Entry`), each with an id and a text.
        """
        put = [checked(entry) for entry in entries]
        with self._living.writing():
            if put:
                self._living.change(Change(put))
        return len(put)

    def apply(
        self,
        put: Iterable[Entry] = (),
        remove: Iterable[str] = (),
        *,
        check: Callable[[Mapping[str, Entry | None]], None] | None = None,
    ) -> dict[str, Entry | None]:
        """Put entries and remove others as one atomic change; returns the previous entries.

        Args:
            put: As for `replace`.
            remove: Ids of others; unknown ones are left alone.
            check: Called with the current entries, by id; if it raises, nothing is changed.
        """
        entries, names = [checked(entry) for entry in put], list(remove)
        with self._living.writing():
            view = self._living.state.view
            rows = {name: view.row_of(name) for name in (*(entry.id for entry in entries), *names)}
            before = {name: None if row is None else view.entry(row) for name, row in rows.items()}
            if check is not None:
                check(before)
            gone = sorted({old.id for name in names if (old := before[name]) is not None})
            if gone and len(gone) == len(view) and not entries:
                raise MatchloomError("a collection keeps one entry at least; remove its folder instead", code="no_data")
            if entries or gone:
                self._living.change(Change(entries, gone))
        return before

    def remove(self, ids: Iterable[str]) -> int:
        """Remove entries; how many there were.

        Args:
            ids: As `search` gives them; unknown ones are left alone.
        """
        if isinstance(ids, str):
            raise MatchloomError(f"ids is {ids!r}; expected a list of ids, such as [{ids!r}]", code="wrong_type")
        names = list(ids)
        with self._living.writing():
            change = removed(self._living.state.view, names)
            if change.remove:
                self._living.change(change)
        return len(change.remove)

    # ---- learning anew

    def keep_columns(self, entries: Entries) -> None:
        """Take the user's own columns from entries with the same ids, as a file has them.

        Args:
            entries: As `Entries.of` makes them of a file.
        """
        living = self._living
        with living.lock:
            view = living.state.view
            own = dict(zip(entries.ids, entries.columns, strict=True))
            table = replace(view.base.entries, columns=[own.get(name, {}) for name in view.base.entries.ids])
            segments = (replace(view.base, entries=table), *view.segments[1:])
            living.state = living.state.having(replace(view, segments=segments))

    def refit(
        self,
        *,
        feedback: switching.Feedback | None = None,
        system: str | None = None,
        aside: bool = False,
        progress: bool = False,
    ) -> Refit:
        """Learn from all current entries; searches and changes continue meanwhile.

        The new fit replaces the old one unless held-out questions find their answers significantly less often. The same
        holds for judgements: a question is added to the entry that was judged right for it, and an entry that was
        judged wrong for a question is no longer an answer to it. They stay until later ones replace them.

        Args:
            feedback: Judgements, or the file of them that 'matchloom serve' kept.
            system: The name under which it was judged, if the file has judgements of several collections.
            aside: Save the new fit for `promote`, without using it.
            progress: Whether to show a bar.
        """
        return switching.refit(self._living, feedback, system, aside, progress)

    def promote(self) -> Refit:
        """Use the fit that `refit(aside=True)` made, with all changes since then.

        Refused if there is none, if another fit was saved since, or if it was worse.
        """
        return switching.promote(self._living)

    def _made_of(self, entries: Entries) -> State:
        """Other entries, learnt in the same way."""
        return State.of(learn(entries, self.settings, self._living.state.sentences), self.settings)

    # ---- the folder

    def save(self, folder: Path | str) -> None:
        """Write the collection as a folder: all of it or nothing; no pickle.

        Args:
            folder: Where; it is made if it is new.
        """
        self._living.save(one_path("folder", folder))
