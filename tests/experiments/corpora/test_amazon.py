from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from experiments.corpora.amazon import amazon_questions
from matchloom.types import MatchloomError

SINGLE = [
    {
        "questionType": "yes/no",
        "asin": "B1",
        "answerTime": "Mar 8, 2014",
        "question": "Isn't it\n heavy?",
        "answer": "No",
    },
    {"asin": "B2", "question": 'A 5&quot; "warp"?', "answer": "It's five inches; it'll do."},
]
SEVERAL = {
    "asin": "B3",
    "questions": [
        {"questionText": "One?", "answers": [{"answerText": "First."}, {"answerText": "Second."}]},
        {"questionText": "Nobody knows?", "answers": []},
    ],
}


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content.encode()))
    return path


def test_dictionaries_as_python_writes_them(tmp_path: Path) -> None:
    path = write(tmp_path, "qa_Looms_and_Wool.json.gz", "".join(f"{line!r}\n" for line in SINGLE) + "\n")
    assert [tuple(row) for row in amazon_questions(path)] == [
        ("amazon:Looms_and_Wool", "B1", "Isn't it heavy?", "No"),
        ("amazon:Looms_and_Wool", "B2", 'A 5" "warp"?', "It's five inches; it'll do."),
    ]


def test_json_and_several_answers(tmp_path: Path) -> None:
    path = write(tmp_path, "QA_Looms.json.gz", f"{SEVERAL!r}\n" + '{"asin": "B4", "question": "q", "answer": "a"}\n')
    assert [tuple(row) for row in amazon_questions(path)] == [
        ("amazon:Looms_multi", "B3", "One?", "First."),
        ("amazon:Looms", "B4", "q", "a"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'asin': 'B1', 'question': 'cut o", "neither JSON nor a dictionary of Python"),
        ("__import__('os').abort()", "neither JSON nor a dictionary of Python"),
        ("{'asin': open('secret').read()}", "neither JSON nor a dictionary of Python"),
        ("[" * 5000, "neither JSON nor a dictionary of Python"),
        ("-" * 100_000 + "1", "neither JSON nor a dictionary of Python"),
        ("{{}: 1}", "neither JSON nor a dictionary of Python"),
        ("{'asin': 'B1', 'question': 'q'}", "missing required field `answer`"),
        ("{'asin': 7, 'question': 'q', 'answer': 'a'}", "Expected `str`, got `int`"),
        ("7", "Expected `object`"),
        ("{'\\ud800asin': 'B1', 'question': 'q', 'answer': 'a'}", "surrogates not allowed"),
    ],
)
def test_malformed(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, "qa_Looms.json.gz", f"{SINGLE[0]!r}\n{line}\n")
    with pytest.raises(MatchloomError, match=rf"qa_Looms\.json\.gz, line 2: .*{message}"):
        list(amazon_questions(path))
