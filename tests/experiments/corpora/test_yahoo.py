from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from experiments.corpora.cqa import read_cqa, write_yahoo
from experiments.corpora.yahoo import read_yahoo
from matchloom.types import MatchloomError

QUESTION = "How do I warp a floor loom?"
ANSWER = "Wind it on the beam,&lt;br /&gt;\nthen thread &amp;amp; sley it."


def entry(uri: str, subject: str = QUESTION, answer: str = ANSWER, more: str = "<maincat>Crafts</maincat>") -> str:
    return (
        f'<vespaadd><document type="wisdom"><uri>{uri}</uri><subject>{subject}</subject>\n'
        f"<content>I have one.</content><bestanswer>{answer}</bestanswer>\n"
        f"<nbestanswers><answer_item>{answer}</answer_item><answer_item>No.</answer_item></nbestanswers>\n"
        f"<cat>Weaving</cat>{more}</document></vespaadd>\n"
    )


def feed(*entries: str) -> str:
    return "<?xml version='1.0' encoding='UTF-8'?>\n<ystfeed>\n" + "".join(entries) + "</ystfeed>\n"


def test_subject_and_best_answer(tmp_path: Path) -> None:
    (tmp_path / "manner.xml").write_text(
        feed(
            entry("1"),
            entry("2", answer="Too short an answer"),
            entry("3", subject="Too short?"),
            entry("4", subject="word " * 51),
            entry("5", subject=QUESTION.upper()),  # the same text; of these the first by alphabet
            entry("6", "And how do I sley it?", "Look at the draft and count the dents.", ""),
        )
    )
    pairs = read_yahoo(tmp_path / "manner.xml")
    assert [(pair[:3], pair.group) for pair in pairs] == [
        (("And how do I sley it?", "Look at the draft and count the dents.", 1.0), "yahoo:none/6"),
        ((QUESTION.upper(), "Wind it on the beam, then thread & sley it.", 1.0), "yahoo:Crafts/5"),
    ]
    assert all(pair.query_id and pair.text_id for pair in pairs)
    assert read_yahoo(tmp_path) == pairs
    own = tmp_path / "own"
    own.mkdir()
    assert list(write_yahoo(tmp_path, own).values()) == [3]
    assert read_cqa(own / "cqa_5_50.tsv.gz") == pairs


def test_languages(tmp_path: Path) -> None:
    chinese = entry("2", "如何在织布机上织羊毛布料？", "先把经线绕在轴上，然后穿过综片再织。", "<qlang>zh</qlang>")
    german = entry("3", "Wie webt man denn auf einem Webstuhl?", more="<qlang>de</qlang><language>de-de</language>")
    english = entry("1", more="<language>en-us</language>")
    (tmp_path / "FullOct2007.xml").write_text(feed(english, chinese, german), encoding="utf-8")
    assert [pair.query for pair in read_yahoo(tmp_path)] == [QUESTION]
    assert [pair.query for pair in read_yahoo(tmp_path, language="zh")] == ["如何在织布机上织羊毛布料？"]
    with pytest.raises(MatchloomError, match=r"language 'de' .* choose en or zh"):
        read_yahoo(tmp_path, language="de")  # type: ignore[arg-type]


def test_l6_comes_in_parts(tmp_path: Path) -> None:
    whole = feed(*(entry(str(n), f"How do I warp loom number {n}?", f"Loom {n} is warped by two.") for n in range(9)))
    content = whole.encode()
    (tmp_path / "FullOct2007.xml.part1.gz").write_bytes(gzip.compress(content[:1000]))
    (tmp_path / "FullOct2007.xml.part2.gz").write_bytes(gzip.compress(content[1000:]))
    assert len(read_yahoo(tmp_path)) == 9
    (tmp_path / "FullOct2007.xml.part2.gz").write_bytes(gzip.compress(content[1000:-40]))
    with pytest.raises(MatchloomError, match=r"part2\.gz, line \d+: no whole XML here"):
        read_yahoo(tmp_path)
    with pytest.raises(MatchloomError, match=r"part1\.gz, line \d+: no whole XML here"):
        read_yahoo(tmp_path / "FullOct2007.xml.part1.gz")


def test_malformed(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(feed("<document><subject>Why?</subject></document>"))
    with pytest.raises(MatchloomError, match=r"a\.xml, line 3: a <document> without <uri> or <subject>"):
        read_yahoo(tmp_path / "a.xml")
    with pytest.raises(MatchloomError, match=r"has no FullOct2007\.xml .* and no manner\.xml"):
        read_yahoo(tmp_path)
