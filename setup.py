"""Compile the native kernels with whatever C++ compiler is there; without one the package installs all the same.

Everything else about the package stands in pyproject.toml. The libraries are loaded by ctypes and know nothing of
Python, so that one compiler call makes each of them.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

KERNELS = (
    "spatial_gru",
    "spatial_gru_double",
    "lstm",
    "interact",
    "convolve",
    "convolve_max",
    "transformer",
    "matches",
    "k_max",
    "int8_cosines",
    "sparse",
    "ranking",
    "coded",
    "skip_gram",
    "adam",
    "turns",
)
HEADERS = [f"src/matchloom/kernels/{name}.h" for name in ("vectors", "transpose", "product")]
SOURCES = [f"src/matchloom/kernels/{name}.cpp" for name in KERNELS]
FLAGS = ["-std=c++17", "-O2", "-fPIC", "-shared", "-fno-exceptions", "-fno-rtti"]
MANUAL = "docs/matchloom.1"  # the image is built without documents
BUILDS = {"plain": []}
if platform.machine().lower() in ("x86_64", "amd64"):
    BUILDS |= {"avx2": ["-mavx2", "-mfma"], "avx512": ["-mavx512f", "-mfma"]}


class BuildLibraries(build_ext):
    """A shared library for each build, put where the package looks for it."""

    def get_ext_filename(self, fullname: str) -> str:
        """Without the tag of a Python version: any Python loads it."""
        return str(Path(*fullname.split("."))) + ".so"

    def build_extension(self, ext: Extension) -> None:
        """One compiler call. An error here is a warning to setuptools, since the extension is optional."""
        compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
        if compiler is None:
            raise CompileError(
                "no C++ compiler found: the native kernels are left out, torch will compute in their place"
            )
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [*shlex.split(compiler), *FLAGS, *ext.extra_compile_args, "-o", str(target), *ext.sources]
        print(shlex.join(command), file=sys.stderr)
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise CompileError(f"the native kernels were not compiled: {error}") from None


class AnyPython(bdist_wheel):
    """The wheel fits one platform, but every Python 3."""

    def get_tag(self) -> tuple[str, str, str]:
        """As setuptools says, less the Python version."""
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[
        Extension(
            f"matchloom.kernels.native_{build}", SOURCES, extra_compile_args=flags, depends=HEADERS, optional=True
        )
        for build, flags in BUILDS.items()
    ],
    data_files=[("share/man/man1", [MANUAL])] if Path(MANUAL).exists() else [],
    cmdclass={"build_ext": BuildLibraries, "bdist_wheel": AnyPython},
)
