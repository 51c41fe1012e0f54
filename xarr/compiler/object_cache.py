"""Compiled kernels on disk, looked up by what they were compiled from.

One file a kernel, in `$XARR_CACHE_DIR` or the platform's directory for caches.  A file holds its key, a
checksum and the machine code; one that is cut off, damaged or not ours is as good as none.  Files are written
under another name and then renamed, so that several processes may share the directory.

The checksum is against accidents; against other users there are owners and permissions, as in OpenSSH's
StrictModes: machine code is read only from a file, in a directory, both of this user and writable by no other user,
where no other user can replace one of the directories above.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from xarr.base.configuration import current as config

#: Changes with the layout of the files.
VERSION: Final = 1
#: Bytes that the files may take together; then those not used for longest go.
MOST: Final = 256 * 2**20
#: Bytes that one file may take; a larger one is none of ours.
MOST_OF_ONE: Final = 64 * 2**20
#: Files written between two looks at how much there is.
SELDOM: Final = 64

_HEAD: Final = f"xarr kernel {VERSION}\n".encode()
_SUFFIX: Final = ".kernel"
_UNFINISHED: Final = ".unfinished"
#: Neither follow a link nor wait for a pipe.  Windows has neither flag, but translates line ends unless told.
_READ: Final = os.O_RDONLY | functools.reduce(
    operator.or_, (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
)


def present() -> ObjectCache | None:
    """The cache that kernels are kept in; None if there is none, for which `state` has the reason."""
    path = None if config.kernel_cache == "off" else directory()
    return None if path is None else _cache(path)


def state() -> str:
    """Text that says where kernels are kept, or why they are not."""
    if config.kernel_cache == "off":
        return "off"
    cache = present()
    return "not in use: there is no home directory; set XARR_CACHE_DIR" if cache is None else cache.state()


@functools.lru_cache(8)
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
        return _absolute("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches"
    # The XDG Base Directory Specification has relative paths ignored.
    return _absolute("XDG_CACHE_HOME") or _home() / ".cache"


def _home() -> Path:
    """Raises RuntimeError for a user without a home.  Path.home() takes an empty HOME for the root directory."""
    if "HOME" not in os.environ:
        return Path.home()
    home = _absolute("HOME")
    if home is None:
        raise RuntimeError("HOME is not an absolute path")
    return home


def _absolute(variable: str) -> Path | None:
    """The path in an environment variable, if it is an absolute one."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


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
            _make_directories(self.path)
            self.path = self.path.resolve(strict=True)  # no link above is looked at a second time
            self.problem = _problem_of_directory(self.path)
        except OSError as error:
            self.problem = str(error)
        self._readable = self.problem is None

    def get(self, key: str) -> bytes | None:
        """The object code that was stored under `key`; None if there is none or the file is damaged."""
        if not self._readable:
            return None
        try:
            content = _content(self._file(key))
        except OSError:
            return None
        return None if content is None else _unpack(key, content)

    def put(self, key: str, content: bytes) -> None:
        """Keep `content` under `key`; does nothing where the directory cannot be written to."""
        if not self._readable:
            return
        try:
            self._write(self._file(key), _HEAD + key.encode() + hashlib.sha256(content).digest() + content)
            if self._written % SELDOM == 0:
                self._shrink()
            self._written += 1
        except OSError as error:
            self.problem = str(error)

    def state(self) -> str:
        """Text that says where it is, how much it holds, what keeps it from being used."""
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
                        status = entry.stat(follow_symlinks=False)
                        yield status.st_mtime, status.st_size, Path(entry.path)

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


def _make_directories(path: Path) -> None:
    """As `mkdir -p`, but for this user alone: the user's umask may let others write."""
    for each in (*reversed(path.parents), path):
        if not each.exists():
            with suppress(FileExistsError):  # made meanwhile by another process
                each.mkdir(mode=0o700)
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is not a directory")


def _content(path: Path) -> bytes | None:
    """The bytes of a file, whose last use is now; None if it is none of ours.  Raises OSError."""
    handle = os.open(path, _READ)
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_OF_ONE or _others_may_write(status):
            return None
        content = file.read(status.st_size + 1)  # it may have grown
        with suppress(OSError):
            os.utime(handle if os.utime in os.supports_fd else path)
    return content if len(content) <= status.st_size else None


def _others_may_write(status: os.stat_result) -> bool:
    """Whether a file or directory belongs to another user, or its permissions let others write."""
    if not hasattr(os, "geteuid"):  # Windows: directories of a user are closed to others by inherited rules
        return False
    return status.st_uid != os.geteuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _others_may_replace(status: os.stat_result) -> bool:
    """Whether other users than the system's may rename what a directory above the cache holds."""
    if not hasattr(os, "geteuid"):
        return False
    # In a sticky directory, as /tmp is, only the owner of an entry renames it.
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    return bool(writable) or status.st_uid not in (0, os.geteuid())


def _problem_of_directory(path: Path) -> str | None:
    """Why no machine code should be run from a directory: other writers there run it as this user."""
    if _others_may_write(path.stat()):
        return "other users may have put kernels there; remove it"
    for above in path.parents:
        if _others_may_replace(above.stat()):
            return (
                f"other users may write to {above}; set XARR_CACHE_DIR to a directory below one of your own"
            )
    return None


def _unpack(key: str, packed: bytes) -> bytes | None:
    head = _HEAD + key.encode()
    start = len(head) + hashlib.sha256().digest_size
    content = packed[start:]
    whole = packed[:start] == head + hashlib.sha256(content).digest()
    return content if whole else None
