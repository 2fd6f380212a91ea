"""The sections of docs/results.md about collections: beside what one would use instead, and beside search engines."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

from experiments.reproduction.page import markdown

SYSTEMS = {
    "encoder_ranker": "encoder_ranker: what `fit` keeps with an encoder",
    "answer_ranker": "answer_ranker: what `fit` keeps without one",
    "linear_classifier": "scikit-learn: TF-IDF of words and character n-grams, linear SVM",
    "encoder_nearest": "MiniLM without tuning: nearest question or answer",
    "trans_lm": "TransLM",
    "nearest_question": "BM25 with each known question",
    "bm25_stemmed": "BM25 with each answer",
}
QUALITY = {
    "P@1": "P@1",
    "SVM": "linear SVM",
    "BM25": "BM25",
    "nearest by encoder": "encoder, nearest",
    "LR over vectors": "encoder, LR",
    "tuned": "tuned",
    "ECE": "ECE",
    "near AUROC": "near AUROC",
    "near recall": "near recall",
    "far AUROC": "far AUROC",
    "far >= .9": "far >= .9",
    ".95 precision": "precision, .95 stated",
    ".95 coverage": "coverage",
}
_QUALITY = """## Knowing the answer, and knowing that there is none

`python -m experiments.benchmarks.quality`, whose help explains each column. Near questions are those whose answer was
removed, far ones are of another field; ECE is the calibration error of the first answer's probability, if one is shown.
Constants were chosen by `python -m experiments.benchmarks.development` on training parts only. `tuned` is 1 if the
tuned encoder was kept on held-out questions, 0 if not; without a figure none was tried.
"""
PAIRS = ("LR on TF-IDF", "pair_classifier", "encoder_classifier", "encoder_classifier, tuned")
_PAIRS = """## Do two texts match

`python -m experiments.benchmarks.pairs --encoder all-MiniLM-L6-v2 --tune`: average precision over three folds of
training parts, on which settings were chosen, too; `pair_tasks.py` describes the pairs. The system that `fit` keeps is
compared with scikit-learn's logistic regression on TF-IDF. A tuned encoder is shown as held-out pairs kept it.
"""
_ENGINES = """## Search beside engines

`python -m experiments.benchmarks.engines 10000 100000` and `--faq`: searches a second, one thread, alternating, on two
shared cores; the ratios matter. A collection returns ten hits with texts, probabilities and the nearest known question;
an engine returns the numbers of its top 100 rows.
"""


_SERVICE = """## A collection behind the service

`python -m experiments.benchmarks.collection_service --load 300`: clients that send the next question as soon as they
have an answer, on the same two cores as the service; every answer is compared with the library's own.
"""
_LIVING = """## What a collection goes through

`python -m experiments.benchmarks.living`, whose help explains the measurements: a search by a new process, kills at
random moments of adds, removes and refits, and how often a right answer is among the candidates.
"""


def faq_table(done: dict[str, Any]) -> str:
    """What faq.py found: the first answer right, by the number of questions to learn from."""
    sizes = sorted({row["questions"] for row in done["rows"]})
    found = {(row["system"], row["questions"]): mean(row["P@1"]) for row in done["rows"]}
    rows = [
        [about, *(f"{found[name, size]:.3f}" for size in sizes)]
        for name, about in SYSTEMS.items()
        if (name, sizes[0]) in found
    ]
    about = f"""## An FAQ with few and with many questions

`python -m experiments.benchmarks.faq`, commit {done["commit"]}: P@1 on CovidFAQ ({done["tested"]} new questions, 67
answers) by the number of training questions (three draws; the last column is all of them). Settings were chosen by
cross-validation on training questions, but earlier versions were measured on these test questions, too, so this is not
a first evaluation.
"""
    return "\n".join([about, *markdown(["system", *map(str, sizes)], *rows), ""])


def quality_table(done: dict[str, Any]) -> str:
    """What quality.py found on the test questions."""
    tested = {name.removesuffix(", test"): one for name, one in done.items() if name.endswith(", test")}
    if not tested:
        return ""
    shown = [key for key in QUALITY if any(key in one for one in tested.values())]
    rows = [
        [name, *(f"{one[key]:.3f}" if key in one else "" for key in shown), one["commit"][:7]]
        for name, one in sorted(tested.items(), key=_size)
    ]
    head = ["data, questions per answer", *(QUALITY[key] for key in shown), "commit"]
    return "\n".join([_QUALITY, *markdown(head, *rows), ""])


def _size(row: tuple[str, Any]) -> tuple[str, str, int]:
    """By data, words or encoder, and questions an answer; all of them last."""
    data, size, by = row[0].rsplit(", ", 2)
    return data, by, int(size) if size.isdigit() else 10**9


def pairs_table(done: dict[str, Any]) -> str:
    """What pairs.py found on training parts."""
    rows = []
    for name, systems in done.items():
        own = [systems[one] for one in PAIRS if one in systems]
        commits = ", ".join(dict.fromkeys(one["commit"][:7] for one in own))
        found = (f"{systems[one]['AP']:.3f}" if one in systems else "" for one in PAIRS)
        rows.append([name, f"{own[0]['pairs']:,}", *found, commits])
    return "\n".join([_PAIRS, *markdown(["data", "pairs", *PAIRS, "commit"], *rows), ""])


def engines_table(done: dict[str, Any]) -> str:
    """What engines.py found: searches a second, and as a part of the rival's."""
    sizes = {name: one for name, one in done.items() if name.isdigit()}
    lines = [_ENGINES]
    for size, one in sizes.items():
        rows = _rates(one, lambda _: "tantivy, top 100")
        lines += markdown([f"{int(size):,} pairs", "a second", "of tantivy's rate", "of it by CPU time"], *rows)
        lines.append(
            f"\nOpened in {1000 * one['open_seconds']:.0f} ms, {one['megabytes']:,.0f} MB on the disk; an entry was "
            f"added and found in {1000 * one['added_and_found_seconds']:.0f} ms. Load {one['load']:.1f}. "
            f"Commit {one['commit']}.\n"
        )
    for name, one in done.items():
        if name.startswith("vectors-"):
            rows = _rates(one, lambda _: "tantivy, top 100")
            title = f"{one['pairs']:,} pairs, vectors of 384"
            lines += markdown([title, "a second", "of tantivy's rate", "of it by CPU time"], *rows)
            same = "equal to" if one["equal_to_a_scan"] else "different from"
            lines.append(f"\nHits are {same} those of a scan. Load {one['load']:.1f}. Commit {one['commit']}.\n")
    if "faq" in done:
        about = done["faq"]
        rows = _rates(about, lambda name: f"scikit-learn, {name.partition(', ')[2]}")
        lines += markdown(["CovidFAQ, 67 answers", "a second", "of scikit-learn's rate", "of it by CPU time"], *rows)
        lines.append(f"\nLoad {about['load']:.1f}. Commit {about['commit']}.\n")
    return "\n".join(lines)


def _rates(one: dict[str, Any], rival: Callable[[str], str]) -> list[list[str]]:
    """Each system's rate, and as a part of its rival's, by wall and by processor time."""
    wall, cpu = one["searches_a_second"], one.get("searches_a_cpu_second", {})
    return [
        [name, f"{rate:,.0f}", _ratio(rate, wall.get(rival(name))), _ratio(cpu.get(name, 0.0), cpu.get(rival(name)))]
        for name, rate in wall.items()
    ]


def living_table(done: dict[str, Any]) -> str:
    """What living.py found."""
    rows = []
    for name, one in done.items():
        for key, value in one.items():
            if isinstance(value, dict):
                rows.append([f"{name}: {key}", ", ".join(f"{what} {_number(own)}" for what, own in value.items())])
        plain = {key: value for key, value in one.items() if not isinstance(value, (dict, str)) and key != "load"}
        rows.append([name, ", ".join(f"{what} {_number(own)}" for what, own in plain.items())])
        rows[-1][1] += f" (load {one['load']:.1f}, commit {one['commit']})"
    return "\n".join([_LIVING, *markdown(["what", "measured"], *rows), ""])


def service_table(done: dict[str, Any]) -> str:
    """What collection_service.py found."""
    names = ("a second", "p50 ms", "p99 ms", "answers", "wrong", "refused", "dropped", "CPU ms")
    rows = [[name, *(_number(one[key]) for key in names)] for name, one in done.items() if "clients" in name]
    lines = [_SERVICE, *markdown(["CovidFAQ", *names], *rows), ""]
    about = done["about"]
    lines.append(f"Load before {about['load before']}, commit {about['commit']}.\n")
    if "long load" in done:
        one = done["long load"]
        memory = one["memory MB, by 5 s"]
        counts = ", ".join(f"{_number(one[key])} {key}" for key in ("answers", "wrong", "refused", "dropped"))
        load, pause = one["about"]["load before"], one.get("longest seconds without a new fit")
        refits = "" if pause is None else f" (one in {pause:.0f} s at least)"
        lines.append(
            f"{one['clients']} clients for {5 * len(memory):,} s, with {one['changes']} changes and {one['refits']} "
            f"refits{refits}: {counts}; memory {memory[1]} to {memory[-1]} MB. Load before {load}, "
            f"commit {one['about']['commit']}.\n"
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if value < 100 else f"{value:,.0f}"


def _ratio(rate: float, rival: float | None) -> str:
    return "" if rival is None else f"{rate / rival:.2f}"
