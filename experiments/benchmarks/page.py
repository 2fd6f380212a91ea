"""docs/results.md, the pages in docs/results and their figures, made from experiments/results by
`python -m experiments.benchmarks.page`.

The tables are shown as `matchloom reproduce all` shows them; what other benchmarks found stands behind them. The
minutes of every row go into the package, which says beforehand how long a row takes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from experiments import places
from experiments.benchmarks.search_tables import (
    engines_table,
    faq_table,
    living_table,
    pairs_table,
    quality_table,
    service_table,
)
from experiments.benchmarks.split import FOLDER, split_pages
from experiments.reproduction import page
from experiments.reproduction.figures import draw_plots, drawable
from experiments.reproduction.page import markdown
from experiments.reproduction.results import Place, read_results
from experiments.reproduction.running import MINUTES
from experiments.reproduction.summary import minutes, over_seeds, p_value, shown_p
from experiments.reproduction.tables import read_table, table_names
from matchloom.basics.files import atomic_write, make_folder

RESULTS = places.RESULTS
DOCS = places.DOCS
LANGUAGES = {"en": "English", "zh": "Chinese"}
_HEAD = """# Results

This page is generated from `experiments/results` (`make docs`); a test keeps it up to date. Each table names the
command that made it ([reproduce](reproduce.md) explains how to repeat and how to read it); the data sets are not in the
repository.
"""
_PICTURE = """
![An FAQ: how often the first answer is right, by the number of training questions](figures/faq.png)
"""
# What a user with an own file looks for first; all else is for who reads papers.
ANSWERS = (
    "An FAQ with few and with many questions",
    "Knowing the answer, and knowing that there is none",
    "Do two texts match",
    "Search beside engines",
    "What an install costs",
)
_LAST = ("Summary", "Contents", "How choices were made", "Trials")
_CHOICES = """## How choices were made

Settings were chosen by development figures, but the choices were not blind. Test figures were printed beside them while
the exact-match signals and the demo's settings were developed (some fifteen settings, three draws). On InsuranceQA
cosine, and on TREC-QA kept vectors and cosine, were added after the tensor models' test figures had been seen. The
tables list all complete runs, except two that were replaced: tensor with exact matches on InsuranceQA at a
learning rate of 0.03 (test P@1 .789; development preferred 0.01), and an earlier LSTM-RNN on cqa (.525, now .547 with
the same seed: since then word gradients are summed in another order, which shows how much a single run varies). On cqa,
word vectors were kept after the test figures of Match-SRNN with trained ones had been seen; development preferred them.
While the tables of TREC-QA ran, single test figures were printed as runs ended; the list of systems was fixed before.
"""


def results_page() -> str:
    """All tables that have results, and what other benchmarks found."""
    others = {
        "faq": faq_table,
        "quality": quality_table,
        "pairs": pairs_table,
        "engines": engines_table,
        "install": install_table,
        "living": living_table,
        "collection_service": service_table,
        "retrieval": retrieval_tables,
        "question_retrieval_en": question_retrieval_table,
        "question_retrieval_zh": question_retrieval_table,
        "cases": case_section,
        "encoders": encoder_section,
        "archive": archive_table,
        "lcs": lcs_table,
        "deletion": deletion_lines,
        "rae": rae_line,
        "speed": speed_table,
        "networks": networks_table,
        "mining": mining_table,
    }
    there = {name: RESULTS / f"{name}.json" for name in others if (RESULTS / f"{name}.json").exists()}
    sections = [others[name](json.loads(path.read_text(encoding="utf-8"))) for name, path in there.items()]
    others_told = [section for section in sections if section]
    head = _HEAD + (_PICTURE if "faq" in drawable(RESULTS) else "")
    return page.results_page(RESULTS, drawable(RESULTS), head, others_told, _CHOICES)


def results_pages() -> dict[str, str]:
    """The same as pages, by their names in docs: a summary, and one for each section."""
    text = results_page()
    titles = re.findall(r"^## (.*)", text, re.MULTILINE)
    papers = {read_table(name).title for name in table_names()}
    groups = {
        "Answers from your own file": [title for title in titles if title in ANSWERS],
        "The papers' tables, beside ours": [title for title in titles if title in papers],
        "More measurements": [title for title in titles if title not in papers and title not in (*ANSWERS, *_LAST)],
    }
    return split_pages(text, groups)


def write_pages(folder: Path, pages: dict[str, str]) -> None:
    """Write them, and remove the pages of sections that are gone."""
    make_folder(folder / FOLDER)
    for old in (folder / FOLDER).glob("*.md"):
        if f"{FOLDER}/{old.name}" not in pages:
            old.unlink()
    for name, made in pages.items():
        with atomic_write(folder / name) as file:
            file.write(made)


def known_minutes() -> str:
    """What `matchloom reproduce` knows of how long the rows of each table take."""
    found = {name: minutes(read_results(Place(RESULTS, name).results)) for name in table_names()}
    return json.dumps({name: rows for name, rows in found.items() if rows}, indent=1, ensure_ascii=False) + "\n"


def question_retrieval_table(done: dict[str, Any]) -> str:
    """What question_retrieval.py found in one language."""
    language = LANGUAGES[done["language"]]
    rows = [
        [
            row["name"],
            f"{row['alpha']:.2f}" if len(row["curve"]) > 1 else "",
            *(f"{value:.3f}" for value in row["test"].values()),
            "" if row["p"] is None else f"{row['p']:.3f}",
            " / ".join(f"{value:.3f}" for value in row["published"]),
        ]
        for row in done["rows"]
    ]
    heads = ["ranked by", "alpha", *(f"test {name}" for name in done["rows"][0]["test"]), "t-test against Okapi"]
    about = f"""## CNTN Experiment II, InsuranceQA {language}: was this asked before?

`python -m experiments.benchmarks.question_retrieval {done["language"]} {done["kept"]}`, commit {done["commit"]}: the
archive holds the {done["archive"]:,} training questions with their first answer. New questions are those of valid and
test that share an answer with an archived one and have such a one among the 20 archived questions that a vector space
model ranks first: {done["valid"]} of valid choose alpha, {done["test"]} of test are measured, so differences of a few
points mean little. Pairs are ranked by alpha * v_t . v_q + (1 - alpha) * s(t, a), each divided by its deviation
over the candidates of valid; Okapi and TransLM by t and q. Published figures are on other data.
"""
    picture = f"![MAP on valid against alpha](figures/cntn_figure3_{done['language']}.png)"
    return "\n".join([about, *markdown([*heads, "published"], *rows), "", picture, ""])


def case_section(done: dict[str, Any]) -> str:
    """What cases.py drew."""
    lines = [
        "## The papers' worked examples\n",
        f"`python -m experiments.benchmarks.cases MATCHER...`, commit {done['commit']}: how strongly each two words "
        "interact; rings are the cells that\nadd most to the score, a line is the path of the largest gates.",
    ]
    for row in done["rows"]:
        wrong = f", the wrong one {row['wrong']:.2f}" if "wrong" in row else ""
        lines.append(f"\n{row['case']}, by {row['matcher']}: the right answer has {row['right']:.2f}{wrong}.\n")
        lines.append(f"![{row['case']}](figures/{row['picture']})")
    return "\n".join([*lines, ""])


def encoder_section(done: dict[str, Any]) -> str:
    """What encoders.py found, as a picture; docs/encoders.md has the figures."""
    if "quality_speed" not in drawable(RESULTS):
        return ""
    return f"""## Pretrained encoders: quality against speed

`python -m experiments.benchmarks.encoders --data DATA`, {done["encoder"]} untrained and tuned, answer sentences of
TREC-QA and WikiQA; [encoders](encoders.md) has the figures.

![AP against pairs ranked a second](figures/quality_speed.png)
"""


def retrieval_tables(done: dict[str, Any]) -> str:
    """What retrieval.py found: fusions over the candidates of each question and over a whole archive."""
    rows, questions = done["rows"], done["questions"]
    bm25 = next(row for row in rows if row["name"] == "BM25")
    best = max((row for row in rows if row["alpha"] is not None), key=lambda row: row["train"])
    engine = ", ".join(f"{name} {value:.3f}" for name, value in done["engine"].items())
    lines = [
        f"""## CNTN Experiment II: the fusion, and search in a whole archive

`python -m experiments.benchmarks.retrieval runs/cntn_semeval` (the matchers of cntn_semeval): new questions t are
ranked by alpha * first part + (1 - alpha) * second part. The paper's parts are v_t . v_q and s(t, a); these forum
questions come without answers, so s reads the forum question itself, s(t, q). Any scorer may be a part; BM25 is then
its share, BM25 over the question's own. Vectors are L2-normalised, as the archive compares them; before that change,
dev figures of raw products had been seen (NBOW+MLP's, .509). alpha has the highest MAP over the {questions["train"]}
training questions, each scored by a system trained without it (a network's best epoch was chosen on it), and serves
both tables. The fusions were listed, after trials on the training questions, before any dev figure was seen. Of them
that MAP chose **{best["name"]}**.

![MAP on the training questions against alpha](figures/cntn_figure3.png)

The candidates of each of the {questions["dev"]} dev questions (P@10 is the same for every order; the forum's search
engine had them in an order of {engine}):
"""
    ]
    for setting in ("lists", "archive"):
        if setting == "archive":
            lines.append(
                f"\nAll {done['archive']} different forum questions of dev as one archive, every one of them scored; "
                "what was not judged for a\nquestion counts as wrong, so that these figures are lower bounds:\n"
            )
        measures = list(bm25[setting][0]["test"])
        head = ["ranked by", "alpha", "train AP", *(f"dev {m}" for m in measures), "p against BM25", "seeds"]
        body = []
        for row in rows:
            runs = row[setting]
            name = f"**{row['name']}**" if row is best else row["name"]
            cells = [name, "" if row["alpha"] is None else f"{row['alpha']:.2f}", f"{row['train']:.3f}"]
            cells += [over_seeds([run["test"][m] for run in runs]) for m in measures]
            cells.append("" if row is bm25 else shown_p(p_value(runs, bm25[setting])))
            body.append([*cells, str(len(runs))])
        lines += markdown(head, *body)
    machine = ", ".join(f"{key} {value}" for key, value in done["machine"].items())
    return "\n".join([*lines, f"\n{machine}. Commit {done['commit']}.\n"])


ARCHIVE = {
    "build, s": "build_seconds",
    "disk, MB": "disk_mb",
    "memory to build, MB": "build_peak_mb",
    "append 1,000, s": "append_1000_seconds",
    "append and write both indices anew, s": "append_and_index_seconds",
    "memory to search, MB": "search_peak_mb",
}


def archive_table(done: dict[str, Any]) -> str:
    """What archive.py found: how an archive grows."""
    sizes = done["sizes"]
    head = ["pairs", *(f"{int(size):,}" for size in sizes)]
    rows = [
        [name, *(number(row[key]) if key in row else "" for row in sizes.values())] for name, key in ARCHIVE.items()
    ]
    rows.append(["first of all pairs is a candidate", *(f"{row['recall']:.1%}" for row in sizes.values())])
    kinds = dict.fromkeys(kind for row in sizes.values() for kind in row["searches"])
    for kind in kinds:
        found = [row["searches"].get(kind) for row in sizes.values()]
        ways = [("median, ms", "median_ms"), ("99th percentile, ms", "p99_ms"), ("searches/s", "searches_a_second")]
        rows += [[f"{kind}: {way}", *("" if one is None else number(one[key]) for one in found)] for way, key in ways]
    recalls = [
        f"- {kind} pairs ({figures['pairs']:,}): "
        + ", ".join(f"{value:.1%} at {alpha}" for alpha, value in figures.items() if alpha != "pairs")
        for kind, figures in done["recall"].items()
    ]
    commits = ", ".join(sorted({row["commit"] for row in sizes.values()} | {done["commit"]}))
    resumed = [
        f"\n{int(size):,} pairs were built by shards at a load of {row['load_before']:.0f}; the seconds of their rows "
        f"are those of {row['rows_now']:,}, extrapolated to all."
        for size, row in sizes.items()
        if row.get("rows_now", int(size)) < int(size)
    ]
    return "\n".join(
        [
            "## An archive of questions\n",
            f"`python -m experiments.benchmarks.archive {' '.join(sizes)}`: made pairs, encoded by {done['encoder']}. "
            f"A search\nreranks {done['candidates']} candidates for the best 10: one by one for the latency, by two "
            f"threads on {done['cores']} cores for searches/s. Memory is the peak of the process.\n",
            *markdown(head, *rows),
            *resumed,
            f"\nHow often the first of all pairs is among the {done['candidates']} candidates, by alpha:\n",
            *recalls,
            f"\npython {done['python']}. Commits {commits}.\n",
        ]
    )


def number(value: float) -> str:
    """Three digits or more."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def lcs_table(done: dict[str, Any]) -> str:
    """What lcs.py found."""
    lines = ["## Match-SRNN and the longest common subsequence\n"]
    lines.append(
        f"`python -m experiments.benchmarks.lcs`: trained on strings of up to 10 characters. Commit {done['commit']}.\n"
    )
    body = []
    for longest in sorted({row["longest"] for row in done["rows"]}):
        rows = [row for row in done["rows"] if row["longest"] == longest]
        cells = [over_seeds([row[key] for row in rows]) for key in ("lengths_right", "error", "paths_right")]
        body.append([f"{longest} characters", *cells, str(len(rows))])
    lines += markdown(["strings of up to", "length right", "mean error", "path is an LCS", "seeds"], *body)
    return "\n".join([*lines, ""])


def deletion_lines(done: dict[str, Any]) -> str:
    """What deletion.py found."""
    return f"""## Words on Match-SRNN's path

`python -m experiments.benchmarks.deletion` with "{done["matcher"]}", commit {done["commit"]}: over {done["pairs"]}
positive pairs of the cqa test lists, deleting the {done["words"]} text words at which the score rose most on the path
lowers the score by {done["path"]:.2f} on average, deleting as many random words by {done["random"]:.2f}
({done["draws"]} draws). The path's words matter more in {done["pairs where the path matters more"]:.0%} of the pairs
(mean difference {done["difference"]:.2f}, standard error {done["standard error"]:.2f}).
"""


def mining_table(done: dict[str, Any]) -> str:
    """What mining.py found on test questions."""
    titles = {"before": "by BM25 throughout", "after": "by BM25, then every 3 epochs by the network itself"}
    names = {"insuranceqa": "InsuranceQA", "cqa": "cqa"}
    body = []
    for name, rows in done.get("test", {}).items():
        for title, runs in rows.items():
            cells = [over_seeds([run[measure] for run in runs]) for measure in ("P@1", "RR@100")]
            seconds = f"{sum(run['cpu_seconds'] for run in runs) / len(runs):,.0f}"
            body.append([f"{names[name]} ({runs[0]['texts']:,} texts)", titles[title], *cells, seconds, str(len(runs))])
    if not body:
        return ""
    every = [run for rows in done["test"].values() for runs in rows.values() for run in runs]
    commits = ", ".join(sorted({run["commit"] for run in every}))
    asked = " and ".join(f"{runs['before'][0]['questions']:,} of {names[name]}" for name, runs in done["test"].items())
    head = ["ranked against all texts", "negatives", "P@1", "RR@100", "processor seconds", "seeds"]
    return f"""## Negatives mined in the loop

`python -m experiments.benchmarks.mining test`, commits {commits}: a cosine of mean word vectors (sentence_bert)
learns from positives and eight negatives each, 12 epochs; the epoch is chosen on 500 development questions. Test
questions: {asked}.

{chr(10).join(markdown(head, *body))}
"""


def figures(named: dict[str, float]) -> list[str]:
    """Speeds or ratios with their names, in three digits or more."""
    return [f"{name} {number(value)}" for name, value in named.items()]


def rae_line(done: dict[str, Any]) -> str:
    """One pass of RAE's autoencoder."""
    return (
        "## RAE's autoencoder\n\n"
        f"`python -m experiments.benchmarks.rae`: one pass over {done['sentences']:,} cqa sentences of "
        f"{done['words']:.1f} words on average took {done['seconds']:.1f} seconds with {done['threads']} threads; "
        f"the mean unfolding error fell from {done['error_before']:.0f} to {done['error_after']:.0f}. "
        f"Commit {done['commit']}.\n"
    )


def install_table(done: dict[str, Any]) -> str:
    """What install.py found."""
    rows = [
        [
            f"`{row['what']}`",
            f"{row['megabytes']:.0f}",
            str(row["packages"]),
            f"{row['seconds']:.0f}",
            f"{row['cpu']:.0f}",
            f"{row['first_answer']:.2f}",
        ]
        for row in done["rows"]
    ]
    about = f"""## What an install costs

`python -m experiments.benchmarks.install`, commit {done["commit"]}, Python {done["python"]}: each into a fresh
environment, with the versions of constraints.txt and torch's build for CPUs. MB are of everything but pip and
setuptools, compiled Python files included; seconds depend on the network and on other load of the machine. The last
column is the first answer of a fitted FAQ by `matchloom search`, in a new process.
"""
    heads = ["", "MB", "packages", "seconds", "of these CPU", "first answer, s"]
    return "\n".join([about, *markdown(heads, *rows), ""])


def speed_table(done: dict[str, Any]) -> str:
    """The ratios of speed.py."""
    commits = ", ".join(sorted({row["commit"] for row in done["rows"]}))
    lines = ["## Speed\n", f"`python -m experiments.benchmarks.speed`, {done['threads']} threads, commits {commits}.\n"]
    rows = [[row["what"], *(", ".join(figures(row[key])) for key in ("speeds", "ratios"))] for row in done["rows"]]
    return "\n".join([*lines, *markdown(["", "speeds", "ratios"], *rows), ""])


def networks_table(done: dict[str, Any]) -> str:
    """The ratios of networks.py."""
    commits = ", ".join(sorted({row["commit"] for row in done["rows"]}))
    lines = [
        "## Networks against plain torch, and scores against double precision\n",
        f"`python -m experiments.benchmarks.networks`, commits {commits}, {done['kernel']}. Units a second of "
        "processor time; `plain` is torch alone, by default or with freed memory kept; `single` and `double` are "
        "scores by torch alone. Figures in other tables of this page were made before scores were computed by kernels: "
        "their last digits differ, by the amounts in the last rows of one thread.\n",
    ]
    rows = [
        [row["what"], str(row["threads"]), *(", ".join(figures(row[key])) for key in ("speeds", "ratios"))]
        for row in done["rows"]
    ]
    return "\n".join([*lines, *markdown(["", "threads", "speeds", "ratios"], *rows), ""])


if __name__ == "__main__":
    draw_plots(RESULTS, DOCS / "figures")
    write_pages(DOCS, results_pages())
    with atomic_write(MINUTES) as made_file:
        made_file.write(known_minutes())
