"""Find and load the build of the kernels in C++ that suits this processor; say which one serves."""

from __future__ import annotations

import ctypes
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

BUILDS = ("plain", "avx2", "avx512")  # the plain build answers with an index of these
SWITCH = "MATCHLOOM_KERNEL"  # set to one of BUILDS to force it, or to "none"


class Task(ctypes.Structure):
    """What a call works on, one group of pairs; spatial_gru.cpp explains the fields."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("channels", "pair_step", "channel_step", "row_step")),
        *((name, ctypes.c_int64) for name in ("dimensions", "reverse", "count")),
        *((name, ctypes.c_void_p) for name in ("pairs", "m", "n", "s")),
        *((name, ctypes.c_void_p) for name in ("gates", "gates_bias", "candidate", "candidate_bias")),
        *((name, ctypes.c_void_p) for name in ("h", "ends", "ends_gradient", "s_gradient", "weights_gradient")),
    ]


class LstmTask(ctypes.Structure):
    """What a call works on, one group of texts; lstm.cpp explains the fields."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("size", "hidden", "directions", "reverse", "width", "count")),
        *((name, ctypes.c_void_p) for name in ("texts", "lengths", "x", "words", "projected", "packed", "turned")),
        *((name, ctypes.c_void_p) for name in ("h", "kept", "h_gradient", "x_gradient", "weights_gradient")),
        ("words_gradient", ctypes.c_void_p),
    ]


class MeetTask(ctypes.Structure):
    """What a call works on, some pairs of texts; interact.cpp explains the fields."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("size", "channels", "left_width", "right_width", "begin", "end")),
        *((name, ctypes.c_void_p) for name in ("left_rows", "right_rows", "left_lengths", "right_lengths")),
        *((name, ctypes.c_void_p) for name in ("left", "right", "form")),
        ("relu", ctypes.c_int64),
        ("grid", ctypes.c_void_p),
        ("k", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("values", "places")),
        ("kernels", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("mu", "scale", "sums", "sums_gradient", "cells_gradient")),
        *((f"{name}_gradient", ctypes.c_void_p) for name in ("values", "left", "right", "form")),
    ]


class ConvolveMaxTask(ctypes.Structure):
    """What a call works on, some maps; convolve_max.cpp explains the fields."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("begin", "end", "channels", "height", "width")),
        *((name, ctypes.c_int64) for name in ("map_step", "channel_step", "row_step")),
        *((name, ctypes.c_int64) for name in ("outputs", "kernel_height", "kernel_width", "above", "before")),
        *((name, ctypes.c_int64) for name in ("rows", "columns", "window")),
        *((name, ctypes.c_void_p) for name in ("heights", "widths", "x", "w", "bias", "out", "places")),
        *((name, ctypes.c_void_p) for name in ("out_gradient", "x_gradient", "w_gradient", "bias_gradient")),
    ]


class LayerWeights(ctypes.Structure):
    """Where the weights of a transformer's layer are; transformer.cpp explains the fields."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for one in ("qkv", "out", "up", "down", "first", "second")
        for name in (one, f"{one}_bias")
    ]


class TransformerTask(ctypes.Structure):
    """What a call works on, some texts; transformer.cpp explains the fields."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("size", "heads", "inner", "layers", "tanh")),
        ("epsilon", ctypes.c_double),
        ("texts", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("starts", "weights", "norm", "norm_bias", "x")),
    ]


TASKS = {
    "task": Task,
    "lstm_task": LstmTask,
    "meet_task": MeetTask,
    "convolve_max_task": ConvolveMaxTask,
    "transformer_task": TransformerTask,
}


class Library:
    """One build: `forward` and `backward` of a Task, how many lanes a group of so many pairs takes; `forward_double`
    and its lanes, for a Task in double precision; the same of an LstmTask; `meet` and `meet_back` of a MeetTask,
    `transformer` of a TransformerTask, `convolve_max_forward` and `_backward` of a ConvolveMaxTask; and functions whose
    arguments their sources explain."""

    def __init__(self, build: str) -> None:
        self.build = build
        loaded = ctypes.CDLL(str(path_of(build)))
        if any(getattr(loaded, f"matchloom_{name}_bytes")() != ctypes.sizeof(task) for name, task in TASKS.items()):
            raise OSError(f"{path_of(build).name} is of another version; install matchloom again")
        self.processor = loaded.matchloom_processor

        def bound(name: str, *arguments: type, gives: type | None = ctypes.c_int) -> Callable[..., Any]:
            function = getattr(loaded, f"matchloom_{name}")
            function.argtypes, function.restype = arguments, gives
            return function  # type: ignore[no-any-return]

        def of(task: type, *names: str) -> Iterator[Callable[..., Any]]:
            return (bound(name, ctypes.POINTER(task)) for name in names)

        size, place = ctypes.c_int64, ctypes.c_void_p
        self.forward, self.backward, self.forward_double = of(Task, "forward", "backward", "forward_double")
        self.lstm_forward, self.lstm_backward = of(LstmTask, "lstm_forward", "lstm_backward")
        self.meet, self.meet_back = of(MeetTask, "meet", "meet_back")
        self.form_step = bound("form_step", size, gives=size)
        names = ("convolve_max_forward", "convolve_max_backward")
        self.convolve_max_forward, self.convolve_max_backward = of(ConvolveMaxTask, *names)
        (self.transformer,) = of(TransformerTask, "transformer")
        self.packed = bound("packed", size, size, gives=size)
        self.pack = bound("pack", place, *[size] * 4, place, gives=None)
        self.product = bound("product", place, size, size, place, size, place, place, gives=None)
        self.normalize = bound("normalize", place, size, size, ctypes.c_float, place, gives=None)
        self.normalize_back = bound("normalize_back", place, place, size, size, ctypes.c_float, place, gives=None)
        self.convolve = bound("convolve", place, *[size] * 4, *[place] * 4, *[size] * 5, place)
        self.tanh = bound("tanh", place, size, place, gives=None)
        self.matches = bound("matches", *[place] * 3, *[size] * 3, *[place] * 4, size, size, place, place, gives=None)
        self.lanes, self.lanes_double = (bound(name, size, gives=size) for name in ("lanes", "lanes_double"))
        self.lstm_packed, self.lstm_turned, self.lstm_gradient = (
            bound(f"lstm_{name}", size, size, gives=size) for name in ("packed", "turned", "gradient")
        )
        self.lstm_kept = bound("lstm_kept", *[size] * 4, gives=size)
        self.lstm_pack = bound("lstm_pack", *[place] * 4, size, size, place, gives=None)
        self.lstm_turn = bound("lstm_turn", place, place, size, size, place, gives=None)
        self.lstm_gates = bound("lstm_gates", size, gives=size)
        self.lstm_project = bound("lstm_project", place, *[size] * 4, place, place)
        self.lstm_words_back = bound("lstm_words_back", place, size, size, place, size, place, gives=None)
        self.distinct = bound("distinct", place, size, place, place, gives=size)
        thinned = (place, place, size, *[place] * 4)
        self.skip_gram_words = bound("skip_gram_words", *thinned, gives=size)
        job = (place, place, size, place, size, size, place, size, size, place, place, ctypes.c_float, ctypes.c_uint64)
        self.skip_gram = bound("skip_gram", *job)
        self.adam = bound("adam", *[place] * 3, size, size, place, place, size, place, gives=None)
        self.say_turn = bound("say_turn", place, size, gives=None)
        self.wait_turn = bound("wait_turn", place, *[size] * 3)
        self.k_max = bound("k_max", place, *[size] * 4, *[place] * 3)
        self.int8_cosines = bound("int8_cosines", place, size, place, *[size] * 3, place)
        flag = ctypes.c_int
        self.columns_dot = bound("columns_dot", flag, *[place] * 3, size, size, *[place] * 4, gives=None)
        self.rows_dot = bound("rows_dot", flag, *[place] * 3, size, *[place] * 3, gives=None)
        self.dense_dot = bound("dense_dot", flag, place, size, size, *[place] * 4, gives=None)
        rows = (flag, *[place] * 4, size, size, place, place, size, *[place] * 3)
        self.best_rows = bound("best_rows", *rows, gives=size)
        asked = (size, *[place] * 7)
        self.highest_rows = bound("highest_rows", *[place] * 3, size, *asked)
        self.vectors_dot = bound("vectors_dot", place, size, size, *[place] * 3, gives=None)
        number = ctypes.c_double
        self.read_texts = bound("read_texts", size, *[place] * 5, number, flag, *[place] * 6, gives=None)
        statistics = (place, size, *[number] * 4)
        self.bm25_rows = bound("bm25_rows", *[place] * 4, size, place, *statistics, size, *[place] * 3, gives=None)
        self.scale = bound("scale", place, size, size, number, place, place, gives=None)
        self.fuse = bound("fuse", place, *[size] * 3, *[place] * 3, number, number, place, gives=None)
        self.best = bound("best", place, *[size] * 3, place, place)
        self.nearest = bound("nearest", size, *[place] * 5, flag, *[place] * 8, gives=None)
        vectors = (*[place] * 3, size, place, size, place)
        self.nearest_entries = bound("nearest_entries", *vectors, size, *[place] * 3, size, place, gives=size)
        table = (flag, *[place] * 3)
        stems = (size, place, number, size)
        self.translated = bound("translated", *stems, *table, *table, size, *[place] * 3, gives=None)


def address(array: Any) -> int:
    """Where the numbers of an array are; several times as quick as numpy's own `array.ctypes.data`."""
    try:
        return ctypes.addressof(_byte(array))
    except (TypeError, ValueError):  # it cannot be written, or is empty
        found: int = array.ctypes.data
        return found


_byte = ctypes.c_char.from_buffer


def path_of(build: str) -> Path:
    """Where the installation puts a build."""
    return Path(__file__).parent / f"native_{build}.so"


def suitable() -> list[str]:
    """The builds that are there and that this processor runs, the fastest last."""
    there = [build for build in BUILDS if path_of(build).exists()]
    if "plain" not in there:
        return []
    return [build for build in there if BUILDS.index(build) <= Library("plain").processor()]


@cache
def library() -> Library | None:
    """The fastest suitable build, or None: then torch serves, which is said once in the log."""
    wanted = os.environ.get(SWITCH, "")
    try:
        builds = [build for build in suitable() if wanted in ("", build)]
        if builds:
            return Library(builds[-1])
        reason = f"{SWITCH} is {wanted!r}" if wanted else "it was not built, for want of a C++ compiler"
    except AttributeError:
        reason = "it is of another version; python setup.py build_ext --inplace makes it anew"
    except OSError as error:
        reason = f"it does not load: {error}"
    _log.warning("the native kernels are not used (%s); torch takes their place, much slower", reason)
    return None


def run(function: Callable[[Any], int], tasks: list[Any], threads: int, what: str) -> None:
    """Call a function of the library on every task, on several threads (ctypes frees the GIL)."""
    waiting, failed = deque(tasks), []

    def work() -> None:
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            if function(task):  # a structure goes by its address
                failed.append(task)

    helpers = [Thread(target=work) for _ in range(min(threads, len(tasks)) - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if failed:
        raise MemoryError(f"the native {what} ran out of memory")


def status() -> str:
    """One line that says what computes the networks' inner loops on this machine."""
    loaded = library()
    if loaded is None:
        return "absent or switched off: torch computes LSTMs, the spatial GRU, k-max pooling and late interaction"
    lanes = loaded.lanes(1 << 30)
    return f"{loaded.build} build: spatial GRU and LSTM, {lanes} lanes, k-max pooling and late interaction"


_log = logging.getLogger("matchloom")
