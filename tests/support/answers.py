"""Answers of JAX and XLA that take long to compile, kept in files beside the tests.

A function with the decorator `recorded` is called only where its answer is not kept.  An answer belongs to the
source of the function, to the arguments and to the sources of what the decorator was told of: a change of any of
them makes the call anew.  So a stale record is never used; a run that had to make calls says so at its end.
Of which version of jax the answers are stands in `tests/answers/jax.txt`; they are used with others too, which a run
says as well.

Where answers are long, only digests of the results that agreed with them are kept: `check_once`.  Of a call there may
be several, since NumPy's functions have other bits on other processors: what is renewed there as well is kept too.

    ORACLE=renew python -m pytest -n 0 tests/lax/test_fuzz.py    makes what calls are missing, and keeps them
    ORACLE=live python -m pytest -n 2                            makes every call, as `nox -s thorough` does
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import os
import pickle
import textwrap
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import ml_dtypes
import numpy as np

HostArray = np.ndarray[Any, Any]

DIRECTORY: Final = Path(__file__).parents[1] / "answers"
#: "live" makes every call; "renew" keeps the answers of the run and no others.
MODE: Final = os.environ.get("ORACLE", "")

#: The variable with the folder in which the processes of a run leave answers for each other.
SHARED: Final = "ORACLE_SHARED"

#: Bytes of an answer above which the call is made each time.
LONGEST: Final = 1 << 17
#: The answers that are kept, and those of this run, by the file of tests and the digest of the call.
_kept: dict[str, dict[str, HostArray]] = {}
_renewed: dict[str, dict[str, HostArray]] = {}
#: Digests of results that passed a check, by the file of tests and the digest of the question; and those of this run.
_passed: dict[str, dict[str, set[str]]] = {}
_renewed_checks: dict[str, dict[str, set[str]]] = {}
_LETTERS: Final = 16
#: By the file of tests, of those for which answers are kept, the calls that had to be made all the same.
missed: dict[str, int] = {}
#: The files of tests of which a kept answer was used.
used: set[str] = set()


def recorded(
    function: Callable[..., Any] | None = None, *, sources: tuple[ModuleType, ...] = ()
) -> Callable[..., Any]:
    """Decorate an oracle, whose leaves come back as a list of host arrays.

    The answer may depend on nothing but the arguments, the text of the function and the texts of `sources`.
    Arguments are arrays, or print themselves whole.
    """
    if function is None:
        return lambda function: recorded(function, sources=sources)

    @functools.wraps(function)
    def answer(*arguments: Any) -> list[HostArray]:
        def compute() -> list[HostArray]:
            import jax

            return [np.asarray(leaf) for leaf in jax.tree.leaves(function(*arguments))]

        texts = [source_of(each) for each in (function, *sources)]
        return look_up(_current_file(), digest(*texts, *arguments), compute)

    return answer


@functools.cache
def source_of(thing: ModuleType | Callable[..., Any]) -> str:
    """The text of a function or module, without comments and imports, which move more often than they matter."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    tree.body = [each for each in tree.body if not isinstance(each, ast.Import | ast.ImportFrom)]
    return ast.unparse(tree)


def look_up(file: str, key: str, compute: Callable[[], list[HostArray]], mode: str = MODE) -> list[HostArray]:
    """The answer kept for the tests of `file` under `key`, else what `compute` returns."""
    kept = None if mode == "live" else _of_file(file).get(key)
    if kept is not None and kept.size and (mode != "renew" or version_of(file) == metadata.version("jax")):
        results = unpack_arrays(kept)
        used.add(file)
    else:
        results = compute()
        if kept is None and not mode and _of_file(file):
            missed[file] = missed.get(file, 0) + 1  # What raises has no answer.
        kept = pack_arrays(results)
    if mode == "renew":
        _renewed.setdefault(file, {})[key] = kept if kept.size <= LONGEST else kept[:0]
    return results


def check_once(results: list[HostArray], check: Callable[[], None], *question: Any, mode: str = MODE) -> None:
    """Call `check`, which raises where results are wrong, unless it has passed with the same bits of them.

    What is kept are digests of results that passed, which may depend on the processor, where they are NumPy's.
    The question is all that the check depends on: calls, their arguments, bounds, texts of oracles.
    """
    file, key, bits = _current_file(), digest(*question)[:_LETTERS], digest(*results)[:_LETTERS]
    is_current = mode != "live" and (mode != "renew" or version_of(file) == metadata.version("jax"))
    passed = _read_checks(file).get(key, set()) if is_current else set()
    if passed:
        used.add(file)
    if bits not in passed:
        check()
        if not passed and not mode and _read_checks(file):
            missed[file] = missed.get(file, 0) + 1
    if mode == "renew":
        _renewed_checks.setdefault(file, {}).setdefault(key, set()).update(passed, {bits})


def share(name: str, compute: Callable[[], Any]) -> Any:
    """Return what `compute` returns, which the processes of a run call once for each name, or seldom twice."""
    folder = os.environ.get(SHARED)
    if folder is None:
        return compute()
    path = Path(folder) / name
    if path.exists():
        return pickle.loads(path.read_bytes())
    results = compute()
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(pickle.dumps(results))
    unfinished.replace(path)  # Nobody reads half a file.
    return results


def digest(*parts: Any) -> str:
    """The letters that stand for a call."""
    letters = hashlib.sha256()
    for part in _flat(parts):
        if isinstance(part, np.ndarray | np.generic):
            letters.update(f"{part.dtype.name}{part.shape}".encode() + part.tobytes())
        elif not isinstance(part, str) and " at 0x" in repr(part):
            raise TypeError(
                f"wanted arrays and what prints itself whole, got {part!r}: its address differs in each run"
            )
        else:
            letters.update(f"{part!r}\0".encode())
    return letters.hexdigest()[:24]


def _flat(part: Any) -> list[Any]:
    if isinstance(part, list | tuple):
        return [f"list of {len(part)}", *(each for one in part for each in _flat(one))]
    return [part]


def pack_arrays(arrays: list[HostArray]) -> HostArray:
    """Arrays of any element types as one of bytes."""
    header = json.dumps([(x.dtype.name, x.shape) for x in arrays]).encode()
    return np.frombuffer(b"\n".join([header, b"".join(x.tobytes() for x in arrays)]), np.uint8)


def unpack_arrays(data: HostArray) -> list[HostArray]:
    """The arrays that `pack_arrays` got."""
    header, _, rest = data.tobytes().partition(b"\n")
    arrays, offset = [], 0
    for name, shape in json.loads(header):
        # Not by `lax_values`: conftest imports this module, and xarr only once the environment is ready for it.
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        arrays.append(np.frombuffer(rest[offset : offset + size], dtype).reshape(shape))
        offset += size
    return arrays


def report(missed: dict[str, int], used: Iterable[str] = (), installed: str = "") -> str:
    """Text for the end of a run: which calls were made for want of an answer, which answers are of another jax.

    `missed` counts calls and `used` names files of tests whose answers were used, with the version `installed`.
    """
    lines = []
    if missed:
        calls = ", ".join(f"{count} of {file}" for file, count in sorted(missed.items()))
        lines.append(f"answers of JAX and XLA that are not kept: {calls}; {_renewal(missed)} keeps them")
    if others := {file: version_of(file) for file in sorted(used) if version_of(file) != installed}:
        kept = ", ".join(f"{version} for {file}" for file, version in others.items())
        lines.append(
            f"jax {installed} is installed, and answers were used of jax {kept};"
            f" ORACLE=live compares with the installed one, {_renewal(others)} keeps its answers"
        )
    return "\n".join(lines)


def _renewal(files: Iterable[str]) -> str:
    names = " ".join(f"tests/{file.replace('.', '/')}.py" for file in sorted(files))
    return f"ORACLE=renew python -m pytest -n 0 {names}"


def write() -> None:
    """Keep the answers of this run, and nothing else for the files of tests that it ran."""
    for file, answers in _renewed.items():
        DIRECTORY.mkdir(exist_ok=True)
        np.savez_compressed(DIRECTORY / f"{file}.npz", **dict(sorted(answers.items())))
    for file, checks in _renewed_checks.items():
        lines = [f"{' '.join([key, *sorted(passed)])}\n" for key, passed in sorted(checks.items())]
        DIRECTORY.mkdir(exist_ok=True)
        (DIRECTORY / f"{file}.txt").write_text("".join(lines), encoding="utf-8")
    if renewed := {**_renewed, **_renewed_checks}:
        versions = _versions() | dict.fromkeys(renewed, metadata.version("jax"))
        rows = [f"{file} {version}\n" for file, version in sorted(versions.items())]
        (DIRECTORY / "jax.txt").write_text("".join(rows), encoding="utf-8")


def version_of(file: str) -> str:
    """The version of jax whose answers are kept for a file of tests."""
    return _versions().get(file, "of no known version")


def _versions() -> dict[str, str]:
    return dict(_read_rows(DIRECTORY / "jax.txt"))


def _read_checks(file: str) -> dict[str, set[str]]:
    if file not in _passed:
        _passed[file] = {key: {*bits} for key, *bits in _read_rows(DIRECTORY / f"{file}.txt")}
    return _passed[file]


def _read_rows(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _of_file(file: str) -> dict[str, HostArray]:
    if file not in _kept:
        path = DIRECTORY / f"{file}.npz"
        _kept[file] = {}
        if path.exists():
            with np.load(path) as archive:
                _kept[file] = dict(archive)
    return _kept[file]


def _current_file() -> str:
    """The file of the test that runs, from `tests` on, as a module: `lax.test_fuzz`."""
    path = Path(os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]).with_suffix("")
    return ".".join(path.parts[1:] if path.parts[0] == "tests" else path.parts)
