"""What a whole `matchloom train` costs, in processor seconds, beside another version of the package.

    python -m experiments.benchmarks.train_costs                      # some minutes
    python -m experiments.benchmarks.train_costs --beside OTHER/src   # OTHER: a checkout whose kernels are built

Lists of five made texts, of which one shares words with its question: word vectors, five epochs of MV-LSTM with its
default arguments, evaluations and checkpoints. Versions take turns; the figure is the median of their rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from experiments.benchmarks.mv_lstm import text
from experiments.reproduction.provenance import commit

PAIRS, LIST, EPOCHS = (5_000, 20_000), 5, "5"
OURS = Path(__file__).parents[2] / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, help="the folder src of another checkout")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each version")
    options = parser.parse_args()
    versions = {"ours": OURS} | ({} if options.beside is None else {"other": options.beside.resolve()})
    with tempfile.TemporaryDirectory() as name:
        for count in PAIRS:
            file = Path(name) / f"{count}.tsv"
            file.write_text(made(count), encoding="utf-8")
            turns = [
                {who: cpu_of_train(source, file) for who, source in versions.items()} for _ in range(options.rounds)
            ]
            found = {who: round(median(turn[who] for turn in turns), 2) for who in versions}
            print(json.dumps({"pairs": count, "CPU seconds": found, "commit": commit(), "load": os.getloadavg()[0]}))


def made(count: int) -> str:
    """A pairs file."""
    rng, lines = random.Random(0), ["query_id\tquery\ttext_id\ttext\tlabel"]
    for q in range(count // LIST):
        query = text(12, rng)
        for n in range(LIST):
            words = text(rng.randint(20, 50), rng).split()
            for word in rng.sample(query.split(), 4) if n == 0 else ():
                words[rng.randrange(len(words))] = word
            lines.append(f"q{q}\t{query}\tq{q}-{n}\t{' '.join(words)}\t{int(n == 0)}")
    return "\n".join([*lines, ""])


def cpu_of_train(source: Path, file: Path) -> float:
    """Processor seconds of the command, of this machine's user and system together."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "matchloom", "train", str(file), "--out", str(file.with_suffix("")), "--overwrite"]
    subprocess.run(
        [*command, "--epochs", EPOCHS, "--patience", EPOCHS],
        env={**os.environ, "PYTHONPATH": str(source)},
        cwd=file.parent,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
