"""Compiled kernels on disk: found again, and never trusted when they are not what was written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.checkout import CHECKOUT
from tests.support.graphs import graph, node, tensor
from xarr import doctor, lax
from xarr.base.configuration import current as config
from xarr.compiler import object_cache
from xarr.compiler.fusion.form_groups import form_groups
from xarr.compiler.object_cache import ObjectCache, directory, key_of
from xarr.ir import ops
from xarr_numpy.compiled import kernel
from xarr_numpy.compiled.codegen import llvm_jit, templates
from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.compiled.schedule import SCHEDULE

KEY = key_of("a program", "a processor")


def only_file(cache: ObjectCache) -> Path:
    (path,) = cache.path.iterdir()
    return path


# --- files ---------------------------------------------------------------------------------------------------


def test_what_was_put_is_found_by_another_object(tmp_path: Path) -> None:
    ObjectCache(tmp_path).put(KEY, b"code")
    assert ObjectCache(tmp_path).get(KEY) == b"code"
    assert ObjectCache(tmp_path).get(key_of("another")) is None


def test_keys_do_not_run_together() -> None:
    assert len({key_of("ab", "c"), key_of("a", "bc"), key_of("abc"), key_of("abc", "")}) == 4


SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[:-1],
    "cut off in the head": lambda content: content[:20],
    "longer": lambda content: content + b"x",
    "one bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "another version": lambda content: content.replace(b"kernel 1", b"kernel 0"),
    "another key": lambda content: content.replace(KEY.encode(), key_of("x").encode()),
    "foreign": lambda content: b"\x7fELF" + bytes(1000),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_file_is_no_file_and_is_written_anew(name: str, tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    cache.put(KEY, b"code")
    path = only_file(cache)
    path.write_bytes(SPOILED[name](path.read_bytes()))
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


needs_posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
NOBODY = 65534


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a file or directory another user's: in truth where that is allowed, else it seems to be."""
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
        return
    before = path.stat()
    for name, original in (("fstat", os.fstat), ("stat", os.stat)):

        def spoil_status(
            file: Any, *args: Any, original: Callable[..., os.stat_result] = original, **options: Any
        ) -> os.stat_result:
            status = original(file, *args, **options)
            if not os.path.samestat(status, before):
                return status
            return os.stat_result((*status[:4], NOBODY, NOBODY, *status[6:10]))

        monkeypatch.setattr(os, name, spoil_status)


def replace_by_link(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.rename(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


def extend(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.truncate(path, 2**40)


def grow(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it is asked for its size, the file is small."""
    monkeypatch.setattr(object_cache, "MOST_OF_ONE", path.stat().st_size - 1)
    original = os.fstat

    def spoil_status(file: int) -> os.stat_result:
        status = original(file)
        return os.stat_result((*status[:6], 1, *status[7:10]))

    monkeypatch.setattr(os, "fstat", spoil_status)


FORBIDDEN: dict[str, Callable[[Path, pytest.MonkeyPatch], None]] = {
    "of another user": give_away,
    "writable by the group": lambda path, monkeypatch: path.chmod(0o620),
    "writable by all": lambda path, monkeypatch: path.chmod(0o602),
    "a link": replace_by_link,
    "huge": extend,
    "growing": grow,
}


@needs_posix
@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_file_that_another_user_may_have_written_is_no_file_and_is_written_anew(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ObjectCache(tmp_path)
    cache.put(KEY, b"code")
    with monkeypatch.context() as patches:
        FORBIDDEN[name](only_file(cache), patches)
        assert cache.get(KEY) is None
        cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"
    assert cache._file(KEY).stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_is_no_file_and_is_not_waited_for(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    cache.put(KEY, b"code")
    path = only_file(cache)
    path.unlink()
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    with ThreadPoolExecutor(1) as pool:
        try:
            assert pool.submit(cache.get, KEY).result(timeout=5) is None
        finally:
            os.close(writer)
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


def test_the_least_recently_used_go_when_there_is_too_much(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, most=10_000)
    keys = [key_of(str(number)) for number in range(object_cache.SELDOM + 1)]
    for age, key in enumerate(reversed(keys[:-1])):
        cache.put(key, bytes(1000))
        os.utime(cache._file(key), (1000 - age, 1000 - age))
    cache.get(keys[5])
    (tmp_path / "kernels-1" / "notes.txt").write_text("not ours")
    cache.put(keys[-1], bytes(1000))
    kept = {key for key in keys if cache.get(key) is not None}
    assert keys[-1] in kept and keys[5] in kept and 5 <= len(kept) <= 7
    assert (tmp_path / "kernels-1" / "notes.txt").exists()


def test_nothing_unfinished_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*paths: object) -> None:
        raise OSError("no space left on device")

    cache = ObjectCache(tmp_path)
    monkeypatch.setattr(os, "replace", fail)
    cache.put(KEY, b"code")
    assert not list(cache.path.iterdir())
    assert "no space left on device" in cache.state()


def test_a_directory_that_cannot_be_made_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = ObjectCache(tmp_path / "file")
    cache.put(KEY, b"code")
    assert cache.get(KEY) is None
    assert cache.state().startswith(f"not in use: {tmp_path / 'file' / 'kernels-1'}: ")


@needs_posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, None], ids=str)
def test_machine_code_is_not_run_from_a_directory_of_others(
    mode: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ObjectCache(tmp_path)
    cache.put(KEY, b"code")
    if mode is None:
        give_away(cache.path, monkeypatch)
    else:
        cache.path.chmod(mode)
    refused = ObjectCache(tmp_path)
    assert refused.get(KEY) is None
    assert refused.state().endswith("kernels-1: other users may have put kernels there; remove it")
    refused.put(KEY, b"other code")
    assert b"other" not in only_file(cache).read_bytes()


@needs_posix
@pytest.mark.parametrize("mode", [0o777, 0o770, None], ids=str)
def test_machine_code_is_not_run_below_a_directory_of_others(
    mode: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They can put another directory in its stead."""
    above = tmp_path / "above"
    cache = ObjectCache(above / "xarr")
    cache.put(KEY, b"code")
    if mode is None:
        give_away(above, monkeypatch)
    else:
        above.chmod(mode)
    (tmp_path / "link").symlink_to(above)
    for path in (above / "xarr", tmp_path / "link" / "xarr"):
        refused = ObjectCache(path)
        assert refused.get(KEY) is None
        assert f"other users may write to {above}; set XARR_CACHE_DIR" in refused.state()


@needs_posix
def test_only_the_owner_renames_in_a_sticky_directory(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    cache = ObjectCache(tmp_path / "tmp" / "mine")
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


@needs_posix
def test_what_is_made_is_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        cache = ObjectCache(tmp_path / "new" / "xarr")
        cache.put(KEY, b"code")
    finally:
        os.umask(before)
    assert cache.get(KEY) == b"code"
    for path in (tmp_path / "new", tmp_path / "new" / "xarr", cache.path):
        assert path.stat().st_mode & 0o777 == 0o700


def test_without_permissions_of_posix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "geteuid", raising=False)
    for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
        monkeypatch.delattr(os, flag, raising=False)
    cache = ObjectCache(tmp_path)
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


@needs_posix
def test_a_read_only_directory_still_gives_what_it_has(tmp_path: Path) -> None:
    ObjectCache(tmp_path).put(KEY, b"code")
    directory = tmp_path / "kernels-1"
    directory.chmod(0o500)
    try:
        cache = ObjectCache(tmp_path)
        assert cache.get(KEY) == b"code"
        cache.put(key_of("another"), b"more")
        assert cache.get(key_of("another")) == (b"more" if os.geteuid() == 0 else None)
    finally:
        directory.chmod(0o700)


@pytest.mark.parametrize(
    ("platform", "variables", "wanted"),
    [
        ("linux", {"HOME": "", "XDG_CACHE_HOME": "/xdg"}, Path("/xdg/xarr")),
        ("linux", {"HOME": ""}, None),
        ("linux", {"HOME": "relative"}, None),
        ("linux", {"HOME": "", "XDG_CACHE_HOME": "relative"}, None),
        ("darwin", {"HOME": ""}, None),
        ("linux", {"XARR_CACHE_DIR": "/chosen", "XDG_CACHE_HOME": "/xdg"}, Path("/chosen")),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, Path("/xdg/xarr")),
        ("linux", {"XDG_CACHE_HOME": "relative"}, Path.home() / ".cache/xarr"),
        ("linux", {}, Path.home() / ".cache/xarr"),
        ("darwin", {}, Path.home() / "Library/Caches/xarr"),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local/xarr")),
    ],
)
def test_where(
    platform: str, variables: dict[str, str], wanted: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XARR_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert directory() == wanted


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XARR_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(sys, "platform", "linux")
    with config(kernel_cache="on"):
        assert object_cache.present() is None
        assert object_cache.state() == "not in use: there is no home directory; set XARR_CACHE_DIR"


# --- kernels -------------------------------------------------------------------------------------------------


def compile_and_run() -> kernel.CompiledKernel:
    """Compile a kernel anew and see that it works."""
    doubled = graph(lambda x: node(ops.Add(), x, x), tensor(np.float32, 5))
    fused = form_groups(doubled, SCHEDULE, lambda domain, cost: True)
    (fusion,) = (each.op for each in fused.nodes if isinstance(each.op, ops.Fusion))
    # Else it would be one that others share, as from the fourth kernel on, or whose code is there.
    templates._template_code.cache_clear()
    made = kernel.CompiledKernel(SCHEDULE.build(fusion), fusion.computation.result_types)
    assert made.call(np.arange(5, dtype=np.float32)).tolist() == [0, 2, 4, 6, 8]
    return made


@pytest.fixture
def compilations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that LLVM compiles from now on; kernels are kept below `tmp_path`."""
    pytest.importorskip("llvmlite")
    compile_and_run()  # with the functions by which Python calls small kernels, which are kept
    original, seen = llvm_jit.assemble, list[str]()

    def assemble(ir: str) -> bytes:
        seen.append(ir)
        return original(ir)

    monkeypatch.setattr(llvm_jit, "assemble", assemble)
    monkeypatch.setenv("XARR_CACHE_DIR", str(tmp_path))
    config.kernel_cache = "on"
    return seen


def test_a_kernel_is_compiled_once(compilations: list[str]) -> None:
    compile_and_run()
    compile_and_run()
    assert len(compilations) == 1
    assert "1 kernels" in doctor.report()


@pytest.mark.usefixtures("on_numpy")
def test_a_program_shows_where_its_machine_code_comes_from(compilations: list[str]) -> None:
    """By name, those of inner programs too; its source is the same each time."""

    def function(x: xarr.Array) -> xarr.Array:
        # With constants as no other test has them: none of the kernels is in memory yet.
        near = x * 2.125 + 0.375
        # The sort keeps the branches from being one function with all else.
        return lax.cond(x[0] > 0.40625, lambda: xarr.sort(xarr.exp(near - 1.21875)), lambda: near)

    with config(fusion="compiled"):
        made: Any = xarr.lower(function, "f32[1000]").stage("program")
    *_, last = str(made).splitlines()
    assert re.fullmatch(r"# (f\d k|k)\d: made by LLVM in \d+\.\d ms", last), last
    assert str(made).startswith(made.text) and "LLVM" not in made.text
    assert any(line.startswith("# f") for line in str(made).splitlines())
    assert len(made.origins) == len(compilations)


def test_code_from_the_cache_is_said_to_be_that(compilations: list[str]) -> None:
    first, second = (compile_and_run().origin for _ in range(2))
    assert re.fullmatch(r"made by LLVM in \d+\.\d ms", first)
    assert re.fullmatch(r"read from the kernel cache in \d+\.\d ms", second)


def test_off(compilations: list[str], tmp_path: Path) -> None:
    with config(kernel_cache="off"):
        compile_and_run()
        compile_and_run()
        assert "kernel cache       off" in doctor.report()
    assert len(compilations) == 2 and not list(tmp_path.iterdir())


def test_another_processor_has_its_own(compilations: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compile_and_run()
    monkeypatch.setattr(llvm_jit, "target", lambda: "LLVM 1, another processor")
    compile_and_run()
    assert len(compilations) == 2


def test_a_corrupt_kernel_is_compiled_anew(compilations: list[str], tmp_path: Path) -> None:
    compile_and_run()
    path = only_file(ObjectCache(tmp_path))
    whole = path.read_bytes()
    changed = bytes(byte ^ 0xFF for byte in whole[300:320])
    path.write_bytes(whole[:300] + changed + whole[320:])
    compile_and_run()
    assert len(compilations) == 2 and path.read_bytes() == whole


@pytest.mark.parametrize("code", [b"\x7fELF" + bytes(500), b"", b"half"], ids=["no object", "empty", "half"])
def test_code_that_llvm_refuses_is_made_anew_once(
    code: bytes, compilations: list[str], tmp_path: Path
) -> None:
    """Its checksum is right, so it was written wrongly; that stays without consequences."""
    compile_and_run()
    cache = ObjectCache(tmp_path)
    path = only_file(cache)
    whole = path.read_bytes()
    right = cache.get(path.stem)
    assert right is not None
    cache.put(path.stem, right[: len(right) // 2] if code == b"half" else code)
    compile_and_run()
    assert len(compilations) == 2 and path.read_bytes() == whole
    compile_and_run()
    assert len(compilations) == 2


@needs_posix
def test_a_kernel_that_another_user_planted_never_runs(
    compilations: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the right key and checksum, and adds where the user's program multiplies by two."""
    compile_and_run()
    cache = ObjectCache(tmp_path)
    path = only_file(cache)
    mine = path.read_bytes()
    (ir,) = compilations
    assert "fadd" in ir
    cache.put(path.stem, llvm_jit.Machine.host().object_code(ir.replace("fadd", "fmul"), False))
    planted = path.read_bytes()
    with pytest.raises(AssertionError):
        compile_and_run()  # of this user it would run
    give_away(path, monkeypatch)
    compile_and_run()
    assert planted != mine and path.read_bytes() == mine


def test_an_unusable_directory_costs_a_compilation(
    compilations: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XARR_CACHE_DIR", str(tmp_path / "file"))
    compile_and_run()
    compile_and_run()
    assert len(compilations) == 2
    assert "not in use" in doctor.report()


def test_two_processes_at_once(compilations: list[str], tmp_path: Path) -> None:
    code = (
        "from tests.compiler.test_object_cache import compile_and_run\nfor _ in range(5): compile_and_run()"
    )
    path = os.pathsep.join([*filter(None, sys.path), str(CHECKOUT)])
    environment = {**os.environ, "XARR_KERNEL_CACHE": "on", "PYTHONPATH": path}
    running = [
        subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT, env=environment) for _ in range(2)
    ]
    assert [process.wait() for process in running] == [0, 0]
    # The kernel, and the functions by which Python calls small ones.
    paths = list(ObjectCache(tmp_path).path.iterdir())
    assert [path.suffix for path in paths] == [".kernel"] * (1 + struct_offsets.works())
    compile_and_run()
    assert not compilations
