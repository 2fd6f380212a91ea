"""`matchloom corpus`: each corpus from a few lines written here in its public format."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.reproduction.tasks import TASKS
from matchloom import read_pairs
from matchloom.cli.corpus import corpora
from tests.cli.conftest import Run, error_of


def test_without_a_name_all_are_listed(run: Run) -> None:
    result = run("corpus")
    assert result.code == 0
    assert set(corpora()) <= set(result.out.split())


def test_lcs_needs_no_data(run: Run, tmp_path: Path) -> None:
    result = run("corpus", "lcs", "--out", tmp_path)
    assert result.code == 0, result.err
    counts = {name: sum(1 for _ in read_pairs(tmp_path / f"{name}.tsv")) for name in ("train", "dev", "test")}
    assert counts == {"train": 10_000, "dev": 1_000, "test": 1_000}
    assert "10,000" in result.out


def trecqa(folder: Path) -> None:
    (folder / "DEV.tsv").write_text("qid\tquestion\tanswer\tlabel\n1\twho weaves ?\tweavers do\t1\n")


def wikiqa(folder: Path) -> None:
    (folder / "WikiQASent-dev.txt").write_text("who weaves?\tweavers do\t1\nwho weaves?\tmillers do\t0\n")
    (folder / "WikiQASent-dev.ref").write_text("not for us")


def msrp(folder: Path) -> None:
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    (folder / "msr_paraphrase_test.txt").write_text(f"\ufeff{header}1\t10\t11\tone\ttwo\n", encoding="utf-8")
    (folder / "msr_paraphrase_data.txt").write_text("other columns")


def semeval(folder: Path) -> None:
    row = {"qid": "Q1", "q_body": "a loom?", "rid": "Q1_R1", "label": "Relevant", "r_body": "some loom?"}
    (folder / "dev.jsonl").write_text(json.dumps(row) + "\n")


def cqa(folder: Path) -> None:
    with gzip.open(folder / "cqa.tsv.gz", "wt") as file:
        file.write("source\tgroup\tquestion\tanswer\nshop\tp1\twill this loom fit?\tit will fit\n")


def citations(folder: Path) -> None:
    with gzip.open(folder / "papers.jsonl.gz", "wt") as file:
        for name in "ab":
            file.write(json.dumps({"id": name, "title": name, "abstract": f"we weave {name}"}) + "\n")
    (folder / "citations_some.tsv").write_text("a\tb\n")


def insuranceqa(folder: Path) -> None:
    question = {"id": "0", "en": "is rain covered?", "zh": "下雨吗", "domain": "x", "answers": ["1"], "negatives": []}
    for split in ("train", "valid", "test"):
        with gzip.open(folder / f"{split}.jsonl.gz", "wt") as file:
            file.write(json.dumps(question) + "\n")
    for language, text in (("en", "rain is covered"), ("zh", "下雨")):
        with gzip.open(folder / f"answers.{language}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write(f"1\t{text}\n")


def reuters(folder: Path) -> None:
    story = "The weavers of the old town said yesterday evening, that they would take their looms to the fair.\n"
    (folder / "story.txt").write_text(story)


@pytest.mark.parametrize(
    ("name", "write", "expected"),
    [
        ("trecqa", trecqa, {"DEV": ("who weaves ?", "weavers do", 1.0)}),
        ("wikiqa", wikiqa, {"WikiQASent-dev": ("who weaves?", "weavers do", 1.0)}),
        ("msrp", msrp, {"msr_paraphrase_test": ("one", "two", 1.0)}),
        ("semeval", semeval, {"dev": ("a loom?", "some loom?", 1.0)}),
        ("cqa", cqa, {"cqa": ("will this loom fit?", "it will fit", 1.0)}),
        ("citations", citations, {"citations": ("we weave a", "we weave b", 1.0)}),
        (
            "insuranceqa",
            insuranceqa,
            dict.fromkeys(("train", "valid", "test"), ("is rain covered?", "rain is covered", 1.0)),
        ),
        ("insuranceqa_zh", insuranceqa, dict.fromkeys(("train", "valid", "test"), ("下雨吗", "下雨", 1.0))),
        (
            "reuters",
            reuters,
            {
                "reuters": (
                    "The weavers of the old town said yesterday evening",
                    "that they would take their looms to the fair.",
                    1.0,
                )
            },
        ),
    ],
)
def test_a_public_folder_becomes_pairs_files(
    run: Run, tmp_path: Path, name: str, write: Callable[[Path], None], expected: dict[str, tuple[str, str, float]]
) -> None:
    data = tmp_path / "public"
    data.mkdir()
    write(data)
    result = run("corpus", name, "--data", data, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    found = {path.stem: next(read_pairs(path))[:3] for path in (tmp_path / "out").iterdir()}
    assert found == expected


def public_trecqa(folder: Path) -> None:
    xml = "<QApairs id='1'>\n<question>\nwho\tweaves\t?\n</question>\n<positive>\nweavers\tdo\n</positive>\n"
    xml += "<negative>\nmillers\tdo\n</negative>\n</QApairs>\n"
    for name in ("train2393.cleanup", "dev-less-than-40.manual-edit", "test-less-than-40.manual-edit"):
        (folder / f"{name}.xml").write_text(xml)


def public_wikiqa(folder: Path) -> None:
    header = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
    for part in ("train", "dev", "test"):
        lines = "Q1\twho weaves?\tD1\tLooms\tD1-0\tWeavers do.\t1\nQ1\twho weaves?\tD1\tLooms\tD1-1\tNobody.\t0\n"
        (folder / f"WikiQA-{part}.tsv").write_text(header + lines)


def public_semeval(folder: Path) -> None:
    for part in ("train-part1", "train-part2", "dev"):
        entries = "".join(
            f'<OrgQuestion ORGQ_ID="{part}{n}"><OrgQSubject>Wool</OrgQSubject><OrgQBody>Where?</OrgQBody><Thread>'
            f'<RelQuestion RELQ_ID="{part}{n}_R1" RELQ_RELEVANCE2ORGQ="Relevant"><RelQSubject>Yarn</RelQSubject>'
            f"<RelQBody>Number {n}?</RelQBody></RelQuestion></Thread></OrgQuestion>"
            for n in range(5)
        )
        (folder / f"SemEval2016-Task3-CQA-QL-{part}.xml").write_text(f"<xml>{entries}</xml>")


def public_insuranceqa(folder: Path) -> None:
    answers = {str(n): {"en": f"rain number {n} is covered", "zh": f"下雨{n}"} for n in range(12)}
    (folder / "answers.json").write_text(json.dumps(answers))
    questions = {
        str(n): {"en": f"is rain {n} covered?", "zh": f"下雨{n}吗", "domain": "x", "answers": [str(n)], "negatives": []}
        for n in range(12)
    }
    for split in ("train", "valid", "test"):
        (folder / f"{split}.json").write_text(json.dumps(questions))


def public_cqa(folder: Path) -> None:
    lines = [
        {"asin": f"B{n}", "question": f"will loom number {n} fit?", "answer": f"yes it will fit {n} times"}
        for n in range(30)
    ]
    with gzip.open(folder / "qa_Looms.json.gz", "wt") as file:
        file.writelines(f"{line!r}\n" for line in lines)


def public_yahoo(folder: Path) -> None:
    entries = "".join(
        f"<vespaadd><document><uri>{n}</uri><subject>How do I warp loom {n}?</subject>"
        f"<bestanswer>Loom number {n} is warped by two.</bestanswer></document></vespaadd>"
        for n in range(30)
    )
    (folder / "manner.xml").write_text(f"<ystfeed>{entries}</ystfeed>")


def public_citations(folder: Path) -> None:
    (folder / "DBLP.txt").write_text("#*Looms\n#index1\n#%2\n#!We weave.\n\n#*Wool\n#index2\n#!We spin.\n")


PUBLIC: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "trecqa": (
        public_trecqa,
        {f"trecqa/{name}.tsv" for name in ("TRAIN-ALL", "DEV", "TEST", "DEV.clean", "TEST.clean")},
    ),
    "wikiqa": (public_wikiqa, {f"wikiqa/WikiQASent-{name}.txt" for name in ("train", "dev", "test")}),
    "semeval": (
        public_semeval,
        {f"semeval-cqa/subtaskB_{name}.jsonl" for name in ("train_part1_fromcsv", "train_part2", "dev")},
    ),
    "insuranceqa": (
        public_insuranceqa,
        {f"insuranceqa/{name}.gz" for name in ("answers.en.tsv", "answers.zh.tsv")}
        | {f"insuranceqa/{name}.jsonl.gz" for name in ("train", "valid", "test")},
    ),
    "cqa": (public_cqa, {"cqa/cqa_5_50.tsv.gz"}),
    "yahoo": (public_yahoo, {"cqa/cqa_5_50.tsv.gz"}),
    "citations": (public_citations, {"citations/papers.jsonl.gz", "citations/citations_dblp.tsv"}),
    "msrp": (msrp, {"msrp/msr_paraphrase_test.txt"}),
    "reuters": (reuters, {"reuters/reuters_c50.tar.gz"}),
}
TASKS_OF = {
    "trecqa": ("trecqa",),
    "wikiqa": ("wikiqa",),
    "semeval": ("semeval",),
    "insuranceqa": ("insuranceqa", "cntn_english", "cntn_chinese", "cntn_english_near", "cntn_chinese_near"),
    "cqa": ("cqa",),
    "yahoo": ("cqa",),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_files_become_what_the_tables_read(run: Run, tmp_path: Path, name: str) -> None:
    public, data = tmp_path / "public", tmp_path / "tables"
    public.mkdir()
    write, files = PUBLIC[name]
    write(public)
    result = run("corpus", name, "--data", public, "--reproduce", data, "--out", tmp_path / "pairs")
    assert result.code == 0, result.err
    assert {path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file()} == files
    assert all(path.read_bytes() for path in (tmp_path / "pairs").iterdir())
    assert result.out.count("entries") == len(files)
    (data / "glove").mkdir()
    with gzip.open(data / "glove" / "glove.6B.100d.subset.txt.gz", "wt") as file:
        file.write("weavers" + " 0.1" * 100 + "\n")
    for task in TASKS_OF.get(name, ()):
        made = TASKS[task](data, 0)
        assert made.train
        assert made.test


def test_own_files_are_not_written_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "trecqa").mkdir()
    public_trecqa(tmp_path / "trecqa")
    told = error_of(run("corpus", "trecqa", "--data", tmp_path / "trecqa", "--reproduce", tmp_path))
    assert "name another folder" in told
    assert "no file of pydocs" in error_of(run("corpus", "pydocs", "--reproduce", tmp_path))
    assert "no such file" in error_of(run("corpus", "msrp", "--data", tmp_path / "none", "--reproduce", tmp_path))


def test_the_page_of_data_has_every_corpus() -> None:
    page = (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")
    for name, corpus in corpora().items():
        if corpus.for_tables is not None:
            assert f"`{name}`" in page
            assert f"`{corpus.for_tables.folder}/" in page


def test_one_file_of_a_corpus_will_do(run: Run, tmp_path: Path) -> None:
    trecqa(tmp_path)
    assert run("corpus", "trecqa", "--data", tmp_path / "DEV.tsv", "--out", tmp_path / "out").code == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["DEV.tsv"]


def test_reuters_reads_an_archive(run: Run, tmp_path: Path) -> None:
    reuters(tmp_path)
    with tarfile.open(tmp_path / "c50.tar.gz", "w:gz") as archive:
        content = (tmp_path / "story.txt").read_bytes()
        member = tarfile.TarInfo("c50/story.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    assert run("corpus", "reuters", "--data", tmp_path / "c50.tar.gz", "--out", tmp_path / "out").code == 0
    assert len(list(read_pairs(tmp_path / "out" / "reuters.tsv"))) == 1


def test_what_is_missing_is_asked_for(run: Run, tmp_path: Path) -> None:
    assert "choose one of pydocs" in error_of(run("corpus", "klingon", "--out", tmp_path))
    assert "--out DIR" in error_of(run("corpus", "pydocs"))
    assert "--data PATH" in error_of(run("corpus", "trecqa", "--out", tmp_path))
    assert "leave out --data" in error_of(run("corpus", "lcs", "--out", tmp_path, "--data", tmp_path))
    assert "*.tsv" in error_of(run("corpus", "trecqa", "--out", tmp_path, "--data", tmp_path))
    assert "none" in error_of(run("corpus", "trecqa", "--out", tmp_path, "--data", tmp_path / "none"))
