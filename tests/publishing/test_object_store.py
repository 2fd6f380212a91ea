"""Against an S3 server: three replicas while the writer goes on and one is killed; and what a store does in error.

Needs moto's server, in an environment of its own: MATCHLOOM_MOTO=.../bin/moto_server.
"""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import httpx
import pytest

from matchloom.publishing.publish import publish
from matchloom.publishing.replica import Replica
from tests.moto import needs_moto, port, uri_of  # noqa: F401
from tests.publishing.making import make_collection
from tests.publishing.proxy import Proxy
from tests.refusing import refused
from tests.service.child import Serving, post

pytestmark = [pytest.mark.slow, needs_moto]


def test_three_replicas_one_killed_and_the_writer_goes_on(port: int, tmp_path: Path) -> None:  # noqa: F811
    faq, uri = make_collection(tmp_path / "faq"), uri_of(port, "faq")
    publish(tmp_path / "faq", uri)
    options = ["--poll", "0.2", "--no-feedback", "--quiet"]
    replicas = [
        Serving([f"faq={uri}", "--copies", tmp_path / f"copies{n}", *options], tmp_path / f"log{n}") for n in range(3)
    ]
    published: list[int] = [0]  # how many additions the newest version has, at least
    wrong: list[object] = []
    counts = [0, 0, 0]
    end = threading.Event()

    def write() -> None:
        for n in range(1, 21):
            faq.add([(f"where is item{n}?", f"Item {n} is on shelf {n}.")])
            if n % 8 == 0:
                faq.refit()
            publish(tmp_path / "faq", uri)
            published.append(n)
        end.set()

    def read(number: int) -> None:
        last = 0  # a replica never goes back
        with httpx.Client(base_url=replicas[number].url) as client:
            while not end.is_set() or counts[number] < 20:
                n = max(1, last)
                try:
                    answer = client.post("/v1/search", json={"question": f"where is item{n + 1}?", "top": 1}).json()
                    known = client.post("/v1/search", json={"question": f"where is item{n}?", "top": 1}).json()
                except httpx.TransportError:
                    return  # it was killed
                if last and known["answers"][0]["text"] != f"Item {n} is on shelf {n}.":
                    wrong.append(known)
                if answer["answers"] and answer["answers"][0]["text"] == f"Item {n + 1} is on shelf {n + 1}.":
                    last = n + 1
                counts[number] += 1

    threads = [threading.Thread(target=write), *(threading.Thread(target=read, args=(n,)) for n in range(3))]
    for thread in threads:
        thread.start()
    while len(published) < 8 and not end.is_set():
        time.sleep(0.02)
    replicas[1].end(signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert wrong == []
    assert min(counts) > 0
    again = Serving([f"faq={uri}", "--copies", tmp_path / "copies1", *options], tmp_path / "log1")
    for one in (replicas[0], again, replicas[2]):
        for _ in range(600):
            told = httpx.get(f"{one.url}/v1/systems").json()["systems"][0]["replica"]
            if told["version"] == told["newest"] == 21:
                break
            time.sleep(0.05)
        assert told["version"] == 21
        assert told["uri"] == "s3://bucket/faq"  # no word of the key
        answer = post(f"{one.url}/v1/search", {"question": "where is item20?", "top": 1}).json()["answers"][0]
        assert answer["text"] == "Item 20 is on shelf 20."
        assert one.end(signal.SIGTERM) == -signal.SIGTERM


def test_a_store_in_error_leaves_what_is_there(port: int, tmp_path: Path) -> None:  # noqa: F811
    proxy = Proxy(port)
    faq, uri = make_collection(tmp_path / "faq"), uri_of(int(proxy.url.rpartition(":")[2]), "errors")
    faq.add([(f"question {n}", f"answer {n} " * 20) for n in range(100)])
    publish(tmp_path / "faq", uri)
    replica = Replica(uri, tmp_path / "copy")
    replica.start()
    faq.refit()
    proxy.mode = "cut"  # in the middle of the index
    with refused("unwritable", "s3://bucket/errors/files/"):
        publish(tmp_path / "faq", uri)
    proxy.mode = "busy"
    with refused("unreadable", "s3://bucket/errors/newest.json", "503"):
        publish(tmp_path / "faq", uri)
    with refused("unreadable", "s3://bucket/errors/newest.json", "503"):
        replica.pull()
    assert Replica(uri, tmp_path / "copy").start().version == 1  # what is here is served
    proxy.mode, proxy.seconds = "slow", 0.2
    assert publish(tmp_path / "faq", uri).version == 2
    assert replica.pull().version == 2
    proxy.mode = "pass"
    with refused("unwritable", "s3://nobucket/faq"):
        publish(tmp_path / "faq", uri.replace("bucket/errors", "nobucket/faq"))
    proxy.close()
