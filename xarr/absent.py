"""What NumPy's arrays have and an Array has not: asking for it says why, and what to write instead."""

from __future__ import annotations

from typing import Any, NoReturn


class Absent:
    """An attribute that is not there, neither for an Array nor for the class."""

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"an xarr Array has no attribute {self._name!r}: {self._instead}", name=self._name, obj=instance
        )


_MEMORY = "how its elements lie in memory is the backend's affair; np.asarray(x) has memory to look at"


class AbsentAttributes:
    """The attributes of NumPy's arrays that are about memory, which a value has not."""

    __slots__ = ()

    base = Absent("an Array is a value and shares no memory that one could write to")
    byteswap = Absent("elements are in the byte order of the machine; np.asarray(x).byteswap() swaps bytes")
    ctypes = Absent(_MEMORY)
    data = Absent(_MEMORY)
    dump = Absent("xarr.save(file, x) writes it to a file")
    dumps = Absent("pickle.dumps(x) makes bytes of it")
    flags = Absent(_MEMORY)
    getfield = Absent("it has no fields")
    resize = Absent("its shape is that of its value; wanted x = xarr.resize(x, new_shape)")
    setfield = Absent("it has no fields")
    setflags = Absent("it can always be written to, as writing changes no other Array")
    strides = Absent(_MEMORY)
    tofile = Absent("xarr.save(file, x) writes it to a file, np.asarray(x).tofile(file) its bytes alone")
    view = Absent(
        "an Array is a value and nothing can look at its memory; wanted x.astype(dtype) for its numbers in "
        "another type, xarr.lax.bitcast_convert_type(x, dtype) for its bits"
    )
