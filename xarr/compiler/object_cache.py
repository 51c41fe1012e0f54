"""Compiled kernels on disk, found again by what they were compiled from.

One file a kernel, in `$XARR_CACHE_DIR` or the platform's directory for caches.  A file holds its key, a
checksum and the machine code; one that is cut off, damaged or not ours is as good as none.  Files are written
under another name and then renamed, so that several processes may share the directory.  Machine code is
read only from a directory of this user that nobody else can write to.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from xarr.config import current as config

#: Changes with the layout of the files.
VERSION: Final = 1
#: Bytes that the files may take together; then those not used for longest go.
MOST: Final = 256 * 2**20
#: Files written between two looks at how much there is.
SELDOM: Final = 64

_HEAD: Final = f"xarr kernel {VERSION}\n".encode()
_SUFFIX: Final = ".kernel"
_UNFINISHED: Final = ".unfinished"


def present() -> ObjectCache | None:
    """The cache that kernels are kept in; None if there is none, for which `state` has the reason."""
    path = None if config.kernel_cache == "off" else directory()
    return None if path is None else _cache(path)


def state() -> str:
    """Where kernels are kept, or why they are not, for people."""
    if config.kernel_cache == "off":
        return "off"
    cache = present()
    return "not in use: there is no home directory; set XARR_CACHE_DIR" if cache is None else cache.state()


@lru_cache(8)
def _cache(path: Path) -> ObjectCache:
    return ObjectCache(path)


def directory() -> Path | None:
    """`$XARR_CACHE_DIR`, else where programs of this platform keep what they can make again."""
    chosen = os.environ.get("XARR_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    try:
        return _of_platform() / "xarr"
    except RuntimeError:  # a user without a home
        return None


def _of_platform() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    # The XDG Base Directory Specification has relative paths ignored.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return base if base.is_absolute() else Path.home() / ".cache"


def key_of(*parts: str) -> str:
    """A name for what is compiled from these texts: source, target, settings of the compiler."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode()
        digest.update(f"{len(content)} ".encode() + content)
    return digest.hexdigest()


class ObjectCache:
    """Bytes by key in a directory below `path`.  What goes wrong there is kept in `problem`, never raised."""

    def __init__(self, path: Path, most: int = MOST) -> None:
        self.path = path / f"kernels-{VERSION}"
        self.most = most
        self.problem: str | None = None
        self._written = 0
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.problem = _not_ours(self.path)
        except OSError as error:
            self.problem = str(error)
        self._readable = self.problem is None

    def get(self, key: str) -> bytes | None:
        """What was put under `key`, if it is there unharmed."""
        if not self._readable:
            return None
        path = self._file(key)
        try:
            if not path.is_file():  # a pipe would be waited for, a device read for ever
                return None
            content = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):
            os.utime(path)
        return _unpacked(key, content)

    def put(self, key: str, content: bytes) -> None:
        """Keep `content` under `key`; does nothing where the directory cannot be written to."""
        if not self._readable:
            return
        try:
            self._write(self._file(key), _packed(key, content))
            if self._written % SELDOM == 0:
                self._shrink()
            self._written += 1
        except OSError as error:
            self.problem = str(error)

    def state(self) -> str:
        """For people: where it is, how much it holds, what keeps it from being used."""
        if self._readable and not os.access(self.path, os.W_OK):
            self.problem = "it cannot be written to"
        if self.problem is not None:
            return f"not in use: {self.path}: {self.problem}"
        sizes = [size for _, size, _ in self._files()]
        return f"{self.path}: {len(sizes)} kernels, {sum(sizes) / 1e6:.1f} of {self.most / 1e6:.0f} MB"

    def _file(self, key: str) -> Path:
        return self.path / f"{key}{_SUFFIX}"

    def _write(self, path: Path, content: bytes) -> None:
        handle, name = tempfile.mkstemp(suffix=_UNFINISHED, dir=self.path)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """Last use, size and path of each file; another process may remove them at any time."""
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.endswith((_SUFFIX, _UNFINISHED)):
                    with suppress(FileNotFoundError):
                        found = entry.stat()
                        yield found.st_mtime, found.st_size, Path(entry.path)

    def _shrink(self) -> None:
        """Remove what was not used for longest while there is too much; then a quarter more, to have peace."""
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        if total <= self.most:
            return
        for _, size, path in files:
            if total <= self.most * 3 // 4:
                break
            path.unlink(missing_ok=True)
            total -= size


def _not_ours(path: Path) -> str | None:
    """Why no machine code should be run from a directory: whoever writes there runs it as this user."""
    if not hasattr(os, "geteuid"):
        return None
    found = path.stat()
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users may write to it; chmod go-w makes it usable"
    return None


def _packed(key: str, content: bytes) -> bytes:
    return _HEAD + key.encode() + hashlib.sha256(content).digest() + content


def _unpacked(key: str, packed: bytes) -> bytes | None:
    head = _HEAD + key.encode()
    start = len(head) + hashlib.sha256().digest_size
    content = packed[start:]
    whole = packed[:start] == head + hashlib.sha256(content).digest()
    return content if whole else None
