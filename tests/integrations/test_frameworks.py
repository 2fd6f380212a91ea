"""Each adapter inside its real framework, where it is installed; docs/integrations.md names the versions tried."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from matchloom import BM25, Collection
from matchloom.search.reranking import rerank
from matchloom.types import MatchloomError, Pair
from tests.service.making import TEXTS

QUERY = "I forgot my password"
OTHERS = ["Ask sales for an invoice.", "Choose Reset password in Settings.", "A parcel takes two days."]


def test_rerank_is_the_scorer_s_order(faq: Path) -> None:
    collection = Collection.open(faq)
    found = rerank(collection, QUERY, OTHERS, top=2)
    scores = collection.score([Pair(QUERY, text) for text in OTHERS])
    assert [one.index for one in found] == np.argsort(-scores)[:2].tolist()
    assert all(0 <= one.relevance <= 1 for one in found)
    assert [one.text for one in found] == [OTHERS[one.index] for one in found]
    baseline = Collection.fit([Pair("a", "a loom"), Pair("b", "a mill")], baseline="bm25_stemmed")
    assert rerank(baseline, QUERY, OTHERS)[0].index == 1, "it knows no text but its own: BM25 ranks in its place"


def test_langchain(faq: Path) -> None:
    documents = pytest.importorskip("langchain_core.documents")
    from matchloom.integrations.langchain import MatchloomCompressor, MatchloomRetriever

    retriever = MatchloomRetriever(collection=faq, k=2)
    found = retriever.invoke(QUERY)
    assert [one.id for one in found] == [hit.id for hit in Collection.open(faq).search(QUERY, top=2)]
    assert found[0].metadata.keys() == {"id", "score", "probability", "question", "url"}
    assert retriever.invoke(" ") == []
    assert retriever.batch([QUERY, "Do you send bills?"])[1][0].id == "invoice"
    narrow = MatchloomRetriever(collection=str(faq), search_kwargs={"where": {"url": "/parcel"}})
    assert [one.id for one in narrow.invoke(QUERY)] == ["parcel"]
    compressor = MatchloomCompressor(scorer=faq, top_n=2)
    given = [documents.Document(page_content=text, metadata={"n": n}) for n, text in enumerate(OTHERS)]
    kept = compressor.compress_documents(given, QUERY)
    assert kept[0].metadata["n"] == 1
    assert 0 <= kept[1].metadata["relevance_score"] <= kept[0].metadata["relevance_score"] <= 1
    assert "relevance_score" not in given[1].metadata
    assert compressor.compress_documents([], QUERY) == []


def test_llama_index(faq: Path) -> None:
    schema = pytest.importorskip("llama_index.core.schema")
    from matchloom.integrations.llama_index import MatchloomPostprocessor, MatchloomRetriever

    found = MatchloomRetriever(faq, similarity_top_k=3).retrieve(QUERY)
    assert [one.node.id_ for one in found] == [hit.id for hit in Collection.open(faq).search(QUERY, top=3)]
    assert found[0].node.metadata["url"] == "/password"
    nodes = [schema.NodeWithScore(node=schema.TextNode(text=text)) for text in OTHERS]
    kept = MatchloomPostprocessor(faq, top_n=2).postprocess_nodes(nodes, query_str=QUERY)
    assert kept[0].node.text == OTHERS[1]
    assert 0 <= kept[1].score <= kept[0].score <= 1


def test_haystack(faq: Path) -> None:
    haystack = pytest.importorskip("haystack")
    from matchloom.integrations.haystack import MatchloomRanker, MatchloomRetriever

    pipeline = haystack.Pipeline()
    pipeline.add_component("found", MatchloomRetriever(str(faq), top_k=4))
    pipeline.add_component("ranked", MatchloomRanker(str(faq), top_k=2))
    pipeline.connect("found.documents", "ranked.documents")
    again = haystack.Pipeline.loads(pipeline.dumps(), allowed_modules=["matchloom.integrations.haystack"])
    asked = {"found": {"query": QUERY}, "ranked": {"query": QUERY}}
    for one in (pipeline, again):
        documents = one.run(asked)["ranked"]["documents"]
        assert len(documents) == 2
        assert documents[0].id == "password"
        assert documents[0].meta["url"] == "/password"
        assert 0 <= documents[0].score <= 1


def test_pyterrier(faq: Path) -> None:
    pd = pytest.importorskip("pandas")
    pt = pytest.importorskip("pyterrier")
    from matchloom.integrations.pyterrier import MatchloomReranker, MatchloomRetriever

    topics = pd.DataFrame([{"qid": "1", "query": QUERY}, {"qid": "2", "query": "Do you send bills?"}])
    pipeline = MatchloomRetriever(faq, num_results=5) % 3 >> MatchloomReranker(BM25.fit(TEXTS))
    found = pipeline(topics)
    assert set(found.columns) == {"qid", "query", "docno", "text", "score", "rank"}
    assert found[found["rank"] == 0].set_index("qid").docno.to_dict() == {"1": "password", "2": "invoice"}
    assert sorted(found[found.qid == "1"]["rank"]) == [0, 1, 2]
    qrels = pd.DataFrame([{"qid": "1", "docno": "password", "label": 1}, {"qid": "2", "docno": "invoice", "label": 1}])
    table = pt.Experiment([MatchloomRetriever(faq)], topics, qrels, ["P_1"])
    assert table["P_1"].tolist() == [1.0]
    assert len(pipeline(topics.iloc[:0])) == 0
    with pytest.raises(MatchloomError, match="text"):
        MatchloomReranker(BM25.fit(TEXTS))(topics.assign(docno="a"))


def test_sentence_transformers_evaluators(faq: Path) -> None:
    evaluation = pytest.importorskip("sentence_transformers.cross_encoder.evaluation")
    from matchloom.integrations.cross_encoder import CrossEncoderLike

    model = CrossEncoderLike(faq)
    samples = [{"query": QUERY, "positive": [OTHERS[1]], "negative": [OTHERS[0], OTHERS[2]]}]
    found = evaluation.CrossEncoderRerankingEvaluator(samples, name="faq", write_csv=False)(model)
    assert found["faq_map"] == 1.0
    pairs = [(QUERY, text) for text in OTHERS]
    labels = evaluation.CrossEncoderClassificationEvaluator(pairs, [0, 1, 0], name="faq", write_csv=False)(model)
    assert labels["faq_average_precision"] == pytest.approx(1.0)
    scores = evaluation.CrossEncoderCorrelationEvaluator(pairs, [0.0, 1.0, 0.1], name="faq", write_csv=False)(model)
    assert scores["faq_spearman"] > 0


def test_cross_encoder_like() -> None:
    from matchloom.integrations.cross_encoder import CrossEncoderLike

    scorer = BM25.fit(TEXTS)
    model = CrossEncoderLike(scorer)
    expected = scorer.score([Pair(QUERY, text) for text in TEXTS])
    assert np.array_equal(model.predict([[QUERY, text] for text in TEXTS], batch_size=2), expected)
    assert model.predict((QUERY, TEXTS[0])) == expected[0]
    assert model.predict([(QUERY, TEXTS[0])], convert_to_tensor=True).shape == (1,)
    best, *others = model.rank(QUERY, TEXTS, top_k=3, return_documents=True)
    assert len(others) == 2
    assert best == {"corpus_id": int(expected.argmax()), "score": expected.max(), "text": TEXTS[expected.argmax()]}
    with pytest.raises(MatchloomError):
        model.predict([("alone",)])


def test_mteb() -> None:
    pytest.importorskip("mteb")
    import mteb
    from mteb.mocks.mock_tasks import MockRerankingTask, MockRetrievalTask

    from matchloom.integrations.mteb import MatchloomSearch

    for task in (MockRetrievalTask(), MockRerankingTask()):
        done = mteb.evaluate(MatchloomSearch(), task, cache=None)
        (result,) = done.task_results
        assert all(0 <= one["main_score"] <= 1 for split in result.scores.values() for one in split)


def test_ir_datasets() -> None:
    pytest.importorskip("ir_datasets")
    from ir_datasets.datasets.base import Dataset
    from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericDoc, GenericQrel, GenericQuery

    from matchloom.integrations.ir_datasets import entries_of, pairs_of

    class Docs(BaseDocs):
        def docs_iter(self):  # type: ignore[no-untyped-def]
            yield from (GenericDoc(str(n), text) for n, text in enumerate(OTHERS))

        def docs_store(self, field="doc_id"):  # type: ignore[no-untyped-def]
            return self

        def get_many(self, ids):  # type: ignore[no-untyped-def]
            return {one.doc_id: one for one in self.docs_iter() if one.doc_id in ids}

    class Queries(BaseQueries):
        def queries_iter(self):  # type: ignore[no-untyped-def]
            yield GenericQuery("q", QUERY)

    class Judged(BaseQrels):
        def qrels_iter(self):  # type: ignore[no-untyped-def]
            yield from (GenericQrel("q", "1", 2), GenericQrel("q", "0", 0), GenericQrel("q", "9", 1))

    dataset = Dataset(Docs(), Queries(), Judged())
    assert list(pairs_of(dataset)) == [Pair(QUERY, OTHERS[1], 1.0, "q", "1"), Pair(QUERY, OTHERS[0], 0.0, "q", "0")]
    assert [entry.text for entry in entries_of(dataset)] == OTHERS
    with pytest.raises(MatchloomError, match="no data set"):
        pairs_of("there-is-none").__next__()


def test_scikit_learn() -> None:
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score

    from matchloom.integrations.scikit_learn import PairEstimator

    words = ["loom", "mill", "oven", "kiln", "anvil", "press", "forge", "wheel", "plough", "lathe"]
    X = [(f"what is a {word}", f"the {other} stands there") for word in words for other in (word, words[0], words[5])]
    y = np.array([int(left.split()[-1] in right) for left, right in X])
    estimator = PairEstimator("overlap", seed=3)
    assert clone(estimator).get_params() == estimator.get_params()
    search = GridSearchCV(PairEstimator(), {"model": ["pair_classifier", "overlap"]}, cv=3, scoring="roc_auc")
    search.fit(X, y)
    assert search.best_score_ > 0.9
    assert set(search.predict(X)) <= {0, 1}
    likely = search.predict_proba(np.array(X, dtype=object))
    assert likely.shape == (len(X), 2)
    assert np.allclose(likely.sum(axis=1), 1)
    assert cross_val_score(estimator, X, y, cv=2).min() > 0.5
    for wrong in ([1] * len(y), list("ab") * 15):
        with pytest.raises(MatchloomError):
            clone(estimator).fit(X, wrong)
    with pytest.raises(MatchloomError, match="row 1"):
        clone(estimator).fit(["no pair"] * len(y), y)


@pytest.mark.slow
def test_scikit_learn_trains_networks() -> None:
    from matchloom.integrations.scikit_learn import PairEstimator

    X = [(f"word{n}", f"word{m}") for n in range(12) for m in (n, (n + 1) % 12)]
    y = [int(left == right) for left, right in X]
    estimator = PairEstimator("mv_lstm", arguments={"hidden": 4, "lexical": True}, epochs=2).fit(X, y)
    assert estimator.predict_proba(X).shape == (24, 2)


def test_what_cannot_search_or_score_is_refused_in_one_line(tmp_path: Path) -> None:
    from matchloom.integrations.sources import scorer_of, searchable

    for wrong in (BM25.fit(TEXTS), 3, tmp_path):
        with pytest.raises(MatchloomError):
            searchable(wrong)
    for wrong in (object(), tmp_path / "none"):
        with pytest.raises(MatchloomError):
            scorer_of(wrong)
