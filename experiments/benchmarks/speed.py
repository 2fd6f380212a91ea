"""How fast, as ratios within one run: the spatial GRU, k-max, Match-SRNN, MV-LSTM and every model, in one table.

    python -m experiments.benchmarks.speed                 # about fifteen minutes; to experiments/results/speed.json

The machines are shared and noisy: contenders take turns, and the median of each is compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from experiments import places
from experiments.benchmarks import every_model, k_max, m2s_net, mv_lstm, spatial_gru
from experiments.benchmarks.page import figures
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.kernels import native

RESULTS = places.RESULTS / "speed.json"
PARTS = {
    "spatial_gru": spatial_gru.rows,
    "k_max": k_max.rows,
    "mv_lstm": mv_lstm.rows,
    "m2s_net": m2s_net.rows,
    "every_model": every_model.rows,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contender")
    parser.add_argument("--only", choices=PARTS, help="one part; the others keep their figures")
    options = parser.parse_args()
    load, rows = os.getloadavg()[0], []
    for name, part in PARTS.items():
        if options.only in (None, name):
            for row in part(options.rounds):
                rows.append({"part": name, **row, "commit": commit(), "load before": round(load, 2)})
                print(json.dumps(rows[-1]), flush=True)
    table = Table("", "speeds", "ratios", show_lines=True)
    for row in rows:
        table.add_row(row["what"], *("\n".join(figures(row[part])) for part in ("speeds", "ratios")))
    Console(width=130).print(table)
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if options.only and RESULTS.exists() else []
    rows += [row for row in kept if row["part"] != options.only]
    about: dict[str, Any] = {
        "kernel": native.status(),
        "threads": spatial_gru.all_threads(),
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "rounds": options.rounds,
        "rows": sorted(rows, key=lambda row: list(PARTS).index(row["part"])),
    }
    with atomic_write(RESULTS) as file:
        json.dump(about, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
