"""docs/scale.md: what a million, ten million, a hundred million and a billion pairs cost, from measured rates.

    python -m experiments.benchmarks.scale --measure     # the rate of mining, into results/scale.json; half a minute
    python -m experiments.benchmarks.scale               # writes the page, from that and from the other results

Rates are of a processor's second where there is one, so that a crowded machine does not change them much. What was
measured at a size is bold in the table; all else is extrapolated from the largest size that was.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from experiments import places
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.data.negatives import Pool
from matchloom.text.tokenize import Tokenizer

RESULTS, PAGE = places.RESULTS, places.DOCS / "scale.md"
SIZES = {"1M": 10**6, "10M": 10**7, "100M": 10**8, "1B": 10**9}
SEARCH = "collection, not learnt"
PROCESSORS = 2  # on which encoders were measured
RATE = "pairs a second"
MACHINE, USED = 16, 0.6  # processors, and how much of them is used at the busiest hour


def measure() -> dict[str, Any]:
    """Processor seconds to find the nearest 100 of a pool for a text of 50 words."""
    draw, rows = np.random.default_rng(0), {}
    for size, asked in ((10_000, 200), (100_000, 60)):
        words = np.minimum(draw.zipf(1.3, (size, 50)) - 1, 49_999)
        texts = [" ".join(f"word{word}" for word in row) for row in words.tolist()]
        pool = Pool(texts, Tokenizer())
        pool.scores(texts[0])  # the index is made now
        began = time.process_time()
        for text in texts[:asked]:
            pool.nearest(text, 100, ())
        rows[str(size)] = round((time.process_time() - began) / asked, 6)
    return {"commit": commit(), "mining, processor seconds a pair": rows}


def page() -> str:
    """The page, from results alone."""
    engines, replicas, shards, mined, encoders, archive, stream = (
        json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("engines", "replicas", "shards", "scale", "encoders", "archive", "stream")
    )
    small, large = engines["100000"], engines["1000000"]
    rates = {size: engines[str(size)]["searches_a_cpu_second"][SEARCH] for size in (10_000, 100_000, 1_000_000)}
    slower = math.log10(rates[10_000] / rates[1_000_000]) / 2  # for each ten times as many pairs
    a_pair = large["megabytes"] * 1e6 / large["pairs"]
    memory = large["build_peak_megabytes"] * 1e6 / large["pairs"]
    built = large["build_seconds"]["not learnt"] / large["pairs"]
    encoder = encoders["rows"]["cosine of mean vectors"]["speed"]["texts encoded a second"]
    one_mined = mined["mining, processor seconds a pair"]
    nearest = one_mined["100000"] / 100_000  # a pair and a text of the pool
    service = replicas["one replica"]["CPU ms"] / 1000

    def cores(size: int, a_second: int) -> float:
        rate = rates[1_000_000] / 10 ** (slower * math.log10(size / 1_000_000))
        return float(a_second * (1 / rate + service))

    tables = {int(size): row for size, row in archive["sizes"].items()}
    last = max(tables)
    streams = {int(name.split()[0]): row for name, row in stream["rows"].items() if name.endswith("stream")}
    learnt_from = max(streams)
    trained = {size: row["cpu_seconds"] for size, row in streams.items() if "cpu_seconds" in row}
    rows = {
        "disk of the collection": extrapolated({1_000_000: a_pair * 1e6}, bytes_of),
        "memory to build it in one process": extrapolated({1_000_000: memory * 1e6}, bytes_of),
        "build without learning": extrapolated({1_000_000: built * 1e6}, hours),
        "disk of a LanceDB archive": extrapolated(
            {size: row["disk_mb"] * 1e6 for size, row in tables.items()}, bytes_of
        ),
        "build of a LanceDB archive": extrapolated({size: _built(row) for size, row in tables.items()}, hours),
        **({"tokenise, and train on each pair once": extrapolated(trained, hours)} if trained else {}),
        "score each pair by BM25": extrapolated({shards["pairs"]: shards["pairs"] / shards["local"][RATE]}, hours),
        "encode each text by MiniLM": extrapolated({1: PROCESSORS / encoder}, hours),
        "vectors in eight bits, 384 numbers": [bytes_of(384 * size) for size in SIZES.values()],
        "mine each pair from a pool of 100,000": extrapolated({1: nearest * 1e5}, hours),
        "mine each pair from all": [hours(nearest * size * size) for size in SIZES.values()],
        "processors for 1,000 searches a second": [f"{cores(size, 1000):,.0f}" for size in SIZES.values()],
        "replicas for 1,000": [machines(cores(size, 1000)) for size in SIZES.values()],
        "replicas for 10,000": [machines(cores(size, 10_000)) for size in SIZES.values()],
    }
    table = "\n".join(f"| {name} | " + " | ".join(values) + " |" for name, values in rows.items())
    measured = "\n".join(
        f"| {size:,} | {rate:,.0f} | {engines[str(size)]['megabytes']:,.0f} MB |" for size, rate in rates.items()
    )
    three, one = replicas["three replicas"], replicas["one replica"]
    served, ray = replicas["publish to served by all, seconds"], shards["ray"]
    learnt = small["searches_a_cpu_second"]
    return TEMPLATE.format(
        archive_memory=bytes_of(tables[last]["build_peak_mb"] * 1e6),
        largest=f"{last:,}",
        indexed=f"{tables[last]['append_and_index_seconds']:.0f}",
        learnt_from=f"{learnt_from:,}",
        archives="\n".join(_archive_row(size, row) for size, row in sorted(tables.items())),
        streams="\n".join(_stream_row(name, row) for name, row in stream["rows"].items()),
        stream=stream,
        team=_team(stream.get("team")),
        training=" Training is that of the small\nnetwork above, reading and evaluation included." if trained else "",
        not_run="" if shards["pairs"] >= 1_000_000 else " A million pairs were not run.",
        measured=measured,
        engines_commit=large["commit"],
        slower=f"{10**slower:.1f}",
        a_pair=f"{a_pair:,.0f}",
        build=f"{large['build_seconds']['not learnt']:,.0f}",
        build_memory=bytes_of(memory * 10**6),
        opened=f"{large['open_seconds'] * 1000:.0f}",
        learnt=f"{learnt['collection, learnt fusion']:,.0f}",
        unlearnt=f"{learnt[SEARCH]:,.0f}",
        faq=bytes_of(replicas["bytes"]),
        replicas=replicas,
        one=one,
        three=three,
        bad=sum(row[name] for row in (one, three) for name in ("wrong", "refused", "dropped")),
        cold=replicas["cold replica, seconds to ready"],
        served=served,
        shards=shards,
        plain=f"{shards['plain']['pairs a second']:,}",
        local=f"{shards['local']['pairs a second']:,}",
        ray=f"{ray['pairs a second']:,}",
        of_plain=ray["of plain"],
        start=ray["start, seconds"],
        encoder=f"{encoder:.0f}",
        machine=MACHINE,
        used=f"{USED:.0%}",
        sizes=" | ".join(SIZES),
        lines="---|" * len(SIZES),
        table=table,
        memory_10m=bytes_of(memory * 10**7),
        disk_1m=bytes_of(a_pair * 10**6),
        disk_10m=bytes_of(a_pair * 10**7),
        mined_100m=hours(nearest * 1e16),
        encoded_1b=hours(PROCESSORS * 1e9 / encoder),
    )


def extrapolated(measured: Mapping[int, float], show: Callable[[float], str]) -> list[str]:
    """A figure for each size: what was measured, in bold, else that of the largest size below, for each pair."""
    cells = []
    for size in SIZES.values():
        below = max((one for one in measured if one <= size), default=min(measured))
        figure = show(measured[below] * size / below)
        cells.append(f"**{figure}**" if size in measured else figure)
    return cells


def _built(row: dict[str, Any]) -> float:
    """Seconds of a processor for an archive; of a clock where nothing else was kept."""
    return float(
        row["rows_cpu_seconds"] + row["table_cpu_seconds"] if "rows_cpu_seconds" in row else row["build_seconds"]
    )


def _archive_row(size: int, row: dict[str, Any]) -> str:
    found = row["searches"]["stored vectors"]
    numbers = [row["build_seconds"], row["build_peak_mb"], row["disk_mb"], row["search_peak_mb"]]
    cells = [f"{number:,.0f}" for number in numbers]
    return f"| {size:,} | " + " | ".join([*cells, f"{found['searches_a_second']:.0f}", f"{row['recall']:.1%}"]) + " |"


def _stream_row(name: str, row: dict[str, Any]) -> str:
    size, kind = name.split()
    how = "in memory" if kind == "whole" else "as a stream"
    first = f"{int(size) / row['first_pass']:,.0f}" if row.get("first_pass") else "-"
    cells = [f"{row['peak_mb']:,}", first, f"{row['pairs_per_second']:,}", f"{row['seconds']:,.0f}", f"{row['load']}"]
    return f"| {int(size):,} {how} | " + " | ".join(cells) + " |"


def _team(row: dict[str, Any] | None) -> str:
    if row is None:
        return "Two processes beside two threads were not measured."
    same = "the same weights, bit for bit" if row["equal"] else "different weights"
    return (
        f"Two processes train {row['processes of threads']} times as many pairs a second as two threads "
        f"(`stream.json`, {row['commit']}, load {row['load']}), to {same}."
    )


TEMPLATE = """# Sizes and costs

Written by `python -m experiments.benchmarks.scale` from experiments/results. **Collections in files were measured up to
a million pairs, archives up to {largest}, training up to {learnt_from}**, on two shared processors.
[Scale](guides/scale.md) explains how to do it.

## Measured

A collection in files, without learnt weights (`engines.json`, {engines_commit}; generated pairs):

| pairs | searches a processor second | disk |
|---|---|---|
{measured}

With ten times as many pairs a search takes {slower} times as long, and the collection ten times the disk ({a_pair} bytes
per pair). A million pairs are built in {build} s by one process with {build_memory}, and opened in {opened} ms. With
learnt weights, 100,000 pairs allow {learnt} searches per processor second instead of {unlearnt}.

A LanceDB archive with the vectors of a small network (`archive.json`; generated pairs):

| pairs | build, s | memory to build, MB | disk, MB | memory to search, MB | searches/s | best of all is a candidate |
|---|---|---|---|---|---|---|
{archives}

A search keeps at most 1 GB of the indices in memory, and .25 GB of file metadata, besides some .4 GB of libraries. A
build by shards (`index --engine`) needs eight bytes of memory per pair, besides the memory of a batch and of LanceDB.

Training on a folder of shards (`stream.json`, {stream[commit]}; a small network, one thread, one negative for each positive;
seconds at a load above two include waiting):

| pairs of 50 words | peak memory, MB | tokenised/s | pairs a second, windows read | all, s | load |
|---|---|---|---|---|---|
{streams}

{team}

Replicas of an FAQ of {faq} through {replicas[store]} (`replicas.json`, {replicas[commit]}, load {replicas[load]} on two
processors, clients included): one {one[a second]} searches a second (p99 {one[p99 ms]} ms, {one[CPU ms]} ms of a processor
each), three {three[a second]} (p99 {three[p99 ms]} ms). All share two processors, so this shows little about three machines. Wrong, refused
or dropped: {bad}. A replica started cold is ready after {cold} s. From publish to served by all three: {served[median]} s,
at most {served[most]}, with a check every {served[poll]} s.

Work by shards, {shards[pairs]} pairs of 50 words scored by BM25 (`shards.json`, {shards[commit]}, load {shards[load]}): the
plain command {plain} pairs a second, by shards in one process {local}, on Ray {ray} ({of_plain} of the plain command)
after a start of {start} s, with equal scores. Beside other programs two processes get a larger part of the processors
than one, which favours Ray.{not_run}

## Extrapolated

Hours are of one processor; **bold** figures were measured at that size, the others are extrapolated from the largest size
that was measured. A replica is a machine of {machine} processors, used by {used} at the busiest hour, that holds the whole
collection. Encoding is by MiniLM, {encoder} texts a second on two processors (`encoders.json`).{training}

| | {sizes} |
|---|{lines}
{table}

## What breaks first

- **1M**: nothing; one machine, {build_memory} to build, {disk_1m} mapped to search.
- **10M**: memory to build a collection in files: {memory_10m} in one process. A search maps {disk_10m}, of which a machine
  keeps the frequently used parts in memory. Publishing sends the whole index after each refit, and only the changes
  between refits. An archive took {archive_memory} to build at {largest} pairs, and is slower to search;
  after each thousandth of new rows an addition writes its indices anew, for {indexed} s.
- **100M**: one collection on one machine. Split it by language, product or year into collections of ten million, each
  with its own replicas, or let an [engine](guides/engines.md) find candidates and matchloom rank them: the cost of ranking
  does not depend on the size. Mining from all pairs is not feasible ({mined_100m}); from a pool of 100,000 it is.
- **1B**: the same, with a hundred collections; encoding takes {encoded_1b} of processor time, which needs graphics cards.

One search over several collections is not offered. Rows of an archive can be made by many machines; one machine writes its
table and makes its indices.
"""  # noqa: E501


def bytes_of(count: float) -> str:
    """In the largest unit that leaves at least one."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.3g} {unit}"
    return f"{count:,.0f} bytes"


def hours(seconds: float) -> str:
    """Of one processor."""
    found = seconds / 3600
    return f"{found:,.2g} h" if found < 10 else f"{found:,.0f} h"


def machines(cores: float) -> str:
    """How many of them, at least two so that one may be lost."""
    return f"{max(2, math.ceil(cores / MACHINE / USED)):,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure mining anew")
    if parser.parse_args().measure:
        with atomic_write(RESULTS / "scale.json") as file:
            file.write(json.dumps(measure(), indent=2) + "\n")
    with atomic_write(PAGE) as file:
        file.write(page())


if __name__ == "__main__":
    main()
