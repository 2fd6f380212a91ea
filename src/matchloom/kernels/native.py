"""Find and load the build of the kernels in C++ that suits this processor; say which one serves."""

from __future__ import annotations

import ctypes
import logging
import os
from functools import cache
from pathlib import Path

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


class Library:
    """One build: `forward` and `backward` of a Task, how many lanes a group of so many pairs takes; `forward_double`
    and its lanes, for a Task in double precision; and `k_max` and `int8_cosines`, whose arguments their sources
    explain."""

    def __init__(self, build: str) -> None:
        self.build = build
        loaded = ctypes.CDLL(str(path_of(build)))
        if loaded.matchloom_task_bytes() != ctypes.sizeof(Task):
            raise OSError(f"{path_of(build).name} is of another version; install matchloom again")
        self.processor = loaded.matchloom_processor
        self.forward, self.backward = loaded.matchloom_forward, loaded.matchloom_backward
        self.forward_double = loaded.matchloom_forward_double
        for function in (self.forward, self.backward, self.forward_double):
            function.argtypes = [ctypes.POINTER(Task)]
            function.restype = ctypes.c_int
        self.lanes, self.lanes_double = loaded.matchloom_lanes, loaded.matchloom_lanes_double
        for count in (self.lanes, self.lanes_double):
            count.argtypes, count.restype = [ctypes.c_int64], ctypes.c_int64
        self.k_max = loaded.matchloom_k_max
        size, place = ctypes.c_int64, ctypes.c_void_p
        self.k_max.argtypes = [place, size, size, size, size, place, place, place]
        self.int8_cosines = loaded.matchloom_int8_cosines
        self.int8_cosines.argtypes = [place, size, place, size, size, size, place]
        self.k_max.restype = self.int8_cosines.restype = ctypes.c_int
        flag = ctypes.c_int
        self.columns_dot = loaded.matchloom_columns_dot
        self.columns_dot.argtypes = [flag, place, place, place, size, size, place, place, place, place]
        self.rows_dot = loaded.matchloom_rows_dot
        self.rows_dot.argtypes = [flag, place, place, place, size, place, place, place]
        self.dense_dot = loaded.matchloom_dense_dot
        self.dense_dot.argtypes = [flag, place, size, size, place, place, place, place]
        self.best_rows = loaded.matchloom_best_rows
        self.best_rows.argtypes = [flag, *(place,) * 4, size, size, place, place, size, place, place, place]
        self.best_rows.restype = size
        self.vectors_dot = loaded.matchloom_vectors_dot
        self.vectors_dot.argtypes = [place, size, size, place, place, place]
        for function in (self.columns_dot, self.rows_dot, self.dense_dot, self.vectors_dot):
            function.restype = None


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
    except (OSError, AttributeError) as error:
        reason = f"it does not load: {error}"
    _log.warning("the native kernels are not used (%s); torch takes their place, much slower", reason)
    return None


def status() -> str:
    """One line that says what computes the spatial GRU, k-max pooling and late interaction on this machine."""
    loaded = library()
    if loaded is None:
        return "absent or switched off: torch computes the spatial GRU, k-max pooling and late interaction"
    lanes = loaded.lanes(1 << 30)
    return f"{loaded.build} build: spatial GRU, {lanes} pairs at a time, k-max pooling and late interaction"


_log = logging.getLogger("matchloom")
