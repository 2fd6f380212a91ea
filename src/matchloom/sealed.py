"""Files that say whether they are whole: tensors and settings in one safetensors file, with others beside it or none.

The file's metadata holds one entry, its kind, with the settings as JSON: `format`, `files` (the SHA-256 of each file
beside it) and `digest`, the SHA-256 of these settings and all tensors. Whatever is cut off, altered, exchanged or newer
is refused when it is read, in one line that names the file and the remedy. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from matchloom.basics.files import atomic_write, sweep_leftovers
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from torch import Tensor


# What Python and torch raise when settings or tensors are of other kinds, sizes or depths than they should be.
WRONG = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, RuntimeError)


@contextmanager
def as_saved(path: Path | str, remedy: str) -> Iterator[None]:
    """Make something of what was read: what does not fit together is refused in one line, whoever sealed it."""
    try:
        yield
    except MatchloomError as error:
        if str(path) in str(error):
            raise
        raise MatchloomError(f"{path}: {error}") from None
    except OSError as error:
        raise MatchloomError(f"{error.filename or path} cannot be read: {error.strerror or error}; {remedy}") from None
    except (safetensors.SafetensorError, MemoryError, *WRONG) as error:
        told = " ".join(str(error).split())[:100]
        raise MatchloomError(f"{path} holds what does not fit ({type(error).__name__}: {told}); {remedy}") from None


class Sealed(NamedTuple):
    """What was read, and found whole."""

    settings: dict[str, Any]
    tensors: dict[str, Any]  # arrays or torch tensors, as asked for
    beside: dict[str, bytes]  # the other files, by name


def write_sealed(
    path: Path | str,
    kind: str,
    version: int,
    settings: Mapping[str, Any],
    tensors: Mapping[str, NDArray[Any]] | Mapping[str, Tensor],
    beside: Mapping[str, bytes] | None = None,
) -> None:
    """Write the file, and others `beside` it in the same folder: all of them or none.

    Every file is on the disk before the first takes its name. A kill among the renames leaves files that do not belong
    together, which reading refuses.
    """
    path = Path(path)
    sealed: dict[str, Any] = json.loads(json.dumps({**settings, "format": version}))  # as it will be read
    if beside:
        sealed["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in beside.items()}
    whole = {name: _contiguous(x) for name, x in tensors.items()}
    sealed["digest"] = _digest(sealed, whole)
    sweep_leftovers(path.parent)
    contents = {**(beside or {}), path.name: _packed(whole, {kind: json.dumps(sealed)})}
    with ExitStack() as stack:
        for name, content in contents.items():
            file = stack.enter_context(atomic_write(path.with_name(name), "wb"))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def read_sealed(
    path: Path | str,
    kind: str,
    version: int,
    *,
    remedy: str,
    beside: Sequence[str] = (),
    framework: Literal["np", "pt"] = "np",
    finite: bool = False,
) -> Sealed:
    """Read what `write_sealed` wrote, whole and unaltered, with the files `beside` it.

    `remedy` ends each refusal: what to do, such as "train the matcher again". With `finite` tensors that hold NaN or
    infinity are refused too.
    """
    path = Path(path)
    try:
        with path.open("rb"):
            pass  # what may not be read is no such file to safetensors
        with safetensors.safe_open(path, framework) as opened:
            settings: dict[str, Any] = json.loads((opened.metadata() or {})[kind])
            found, digest = settings["format"], settings.pop("digest")
            _check_version(path, found, version, remedy)
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (no mapping)
    except (OSError, RuntimeError) as error:  # torch's own readers say the latter where too many files are open
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise MatchloomError(f"{path} cannot be read: {reason}; {remedy}") from None
    except (safetensors.SafetensorError, *WRONG) as error:
        if isinstance(error, MatchloomError):
            raise
        raise MatchloomError(f"{path} is damaged, cut off or no {kind} file; {remedy}") from None
    altered = "was altered since it was saved"
    if digest != _digest(settings, tensors):
        raise MatchloomError(f"{path} {altered}; {remedy}")
    seals = settings.pop("files", {})
    if not isinstance(seals, dict):
        raise MatchloomError(f"{path} is damaged, cut off or no {kind} file; {remedy}")
    contents = {name: _read(path.with_name(name), remedy) for name in beside}
    for name, content in contents.items():
        if seals.get(name) != hashlib.sha256(content).hexdigest():
            raise MatchloomError(f"{path.with_name(name)} {altered}, or does not belong to {path.name}; {remedy}")
    if finite:
        for name, x in tensors.items():
            if not _is_finite(x):
                raise MatchloomError(f"{path} holds numbers that are not finite, in {name!r}; {remedy}")
    del settings["format"]
    return Sealed(settings, tensors, contents)


def _check_version(path: Path, found: object, version: int, remedy: str) -> None:
    if type(found) is not int:
        raise TypeError
    if found != version:
        told = "upgrade matchloom" if found > version else remedy
        raise MatchloomError(f"{path} has format {found}, this matchloom reads {version}; {told}")


def _read(path: Path, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}; {remedy}") from None


def _contiguous(x: NDArray[Any] | Tensor) -> NDArray[Any] | Tensor:
    return np.asarray(x, order="C") if isinstance(x, np.ndarray) else x.detach().cpu().contiguous()


def _packed(tensors: Mapping[str, Any], metadata: dict[str, str]) -> bytes:
    if all(isinstance(x, np.ndarray) for x in tensors.values()):
        return safetensors.numpy.save(dict(tensors), metadata)
    from safetensors.torch import save  # whoever has its tensors has torch

    return save(dict(tensors), metadata)


def _digest(settings: Mapping[str, Any], tensors: Mapping[str, Any]) -> str:
    """The same for arrays and for torch tensors of the same names, types, shapes and bytes."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in sorted(tensors):
        x = tensors[name]
        digest.update(f"{name} {str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}\n".encode())
        digest.update(_bytes(x))
    return digest.hexdigest()


def _bytes(x: Any) -> memoryview:
    if isinstance(x, np.ndarray):
        return x.reshape(-1).view(np.uint8).data
    import torch

    found: memoryview = x.reshape(-1).view(torch.uint8).numpy().data
    return found


def _is_finite(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return x.dtype.kind != "f" or bool(np.isfinite(x).all())
    return not x.is_floating_point() or bool(x.isfinite().all())
