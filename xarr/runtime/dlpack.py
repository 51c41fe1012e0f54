"""Memory by DLPack, through NumPy, and for the float types that NumPy does not know through their bits.

A capsule of bfloat16 or float8 is one of unsigned integers of the same width in which the type code is
another one, so that the code alone is changed: on the way out of NumPy, or before NumPy reads it.
Source: DLPack 1.1, `dlpack.h`.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import ml_dtypes
import numpy as np

from xarr.backend import AbstractBackend, BorrowedMemory
from xarr.base.typing import Array
from xarr.errors import InputError
from xarr.runtime.materialisation import device_of, read_checks, to_host

#: `kDLCPU` and the number of the device.
CPU: Final = (1, 0)
#: The version that NumPy reads and writes.
VERSION: Final = (1, 0)
_UNSIGNED: Final = 1
#: Flags of a capsule.
_READ_ONLY, _IS_COPIED = 1, 2
_CODES: Final = {
    np.dtype(ml_dtypes.bfloat16): 4,
    np.dtype(ml_dtypes.float8_e3m4): 7,
    np.dtype(ml_dtypes.float8_e4m3): 8,
    np.dtype(ml_dtypes.float8_e4m3b11fnuz): 9,
    np.dtype(ml_dtypes.float8_e4m3fn): 10,
    np.dtype(ml_dtypes.float8_e4m3fnuz): 11,
    np.dtype(ml_dtypes.float8_e5m2): 12,
    np.dtype(ml_dtypes.float8_e5m2fnuz): 13,
    np.dtype(ml_dtypes.float8_e8m0fnu): 14,
}
_BY_CODE: Final = {(code, dtype.itemsize * 8): dtype for dtype, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`; before version 1.0 the tensor came first."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_NAMES: Final = (b"dltensor_versioned", b"dltensor")
_is_valid: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _tensor_of(capsule: object) -> _Tensor:
    """The tensor in a capsule that is not consumed yet; BufferError for any other object."""
    name = next((name for name in _NAMES if _is_valid(capsule, name)), None)
    if name is None:
        raise BufferError(f"wanted an unused DLPack capsule, from __dlpack__, got {capsule!r}")
    address = _pointer(capsule, name)
    if name == b"dltensor":
        return _Tensor.from_address(address)
    managed = _Versioned.from_address(address)
    if managed.major > VERSION[0]:
        raise BufferError(f"wanted DLPack {VERSION[0]}.x, got {managed.major}.{managed.minor}")
    tensor: _Tensor = managed.tensor
    return tensor


def export_capsule(
    array: Array,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule with the value of `array`, computed if need be, in the memory of its device, or of the CPU.

    Memory of another device than the CPU is lent by its backend, and copied to the CPU where `dl_device` says so.
    Lent memory is marked as read-only, for consumers that know DLPack 1.0 or later; others get a copy.  Raises
    BufferError for a third device, where `copy=False` is not possible, and for what the backend cannot export.
    """
    owner = device_of(array._node).backend
    if owner.is_on_host:
        return _lend(to_host(array), stream, max_version, dl_device, copy)
    asked = None if dl_device is None else tuple(map(int, dl_device))
    if asked in (None, owner.dlpack_device()):
        return _lend_from_device(array, owner, stream, max_version, copy)
    if asked == CPU and copy is False:
        raise BufferError(f"__dlpack__: copy=False is not possible from backend {owner.name!r} to the CPU")
    if asked != CPU:
        raise BufferError(
            f"__dlpack__: wanted dl_device={owner.dlpack_device()}, that of backend {owner.name!r}, {CPU}, the CPU, "
            f"or None, got {dl_device!r}"
        )
    return _lend(to_host(array), stream, max_version, dl_device, None)


def _lend_from_device(
    array: Array, owner: AbstractBackend, stream: Any, max_version: tuple[int, int] | None, copy: bool | None
) -> Any:
    """A capsule with the memory of `array`, which is not the host's."""
    if stream is not None and (not isinstance(stream, int) or stream < -1):
        raise BufferError(
            f"__dlpack__: wanted stream=None, -1, 1, 2 or the address of a stream of {owner.name}, got {stream!r}"
        )
    if array._node.tensor_type.dynamic:
        raise BufferError(
            f"__dlpack__: wanted an array of static shape, got {array._node.tensor_type.short()}; numpy.asarray(x) has "
            "its live part"
        )
    is_versioned = max_version is not None and max_version[0] >= VERSION[0]
    if not is_versioned:
        copy = _copy_for_old_consumers(copy)
    read_checks(array)
    node = array._node
    # Before the value is read: a call in another thread that was given the Array may write over it else.
    node.exposed = True
    buffer = node.value
    if buffer is None:
        return _lend_from_device(array, owner, stream, max_version, copy)  # that call was faster
    capsule = owner.to_dlpack(buffer, stream, max_version, copy)
    if array.dtype in _CODES:
        _tensor_of(capsule).code = _CODES[array.dtype]
    if is_versioned:
        managed = _Versioned.from_address(_pointer(capsule, _NAMES[0]))
        managed.flags |= _IS_COPIED if copy else _READ_ONLY
    return capsule


def _copy_for_old_consumers(copy: bool | None) -> bool:
    """`copy` for consumers to whom one cannot say that memory is read-only.  BufferError for False."""
    if copy is False:
        raise BufferError(
            "__dlpack__: before DLPack 1.0 memory cannot be exported as read-only, so that copy=False is not "
            "possible; wanted max_version=(1, 0) or later, or copy=None"
        )
    return True


def _lend(
    host: np.ndarray[Any, Any],
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule with the values of `host`, a read-only array.

    Its memory is lent, marked as read-only, to consumers that know DLPack 1.0 or later; others, to whom one
    cannot say "read-only", get a copy.  Raises BufferError for another device than the CPU, for a stream,
    which the CPU has not, and where `copy=False` is not possible.  Source: Array API, `__dlpack__`.
    """
    if stream is not None:
        raise BufferError(f"__dlpack__: wanted stream=None for memory of the CPU, got {stream!r}")
    if dl_device is not None and tuple(map(int, dl_device)) != CPU:
        raise BufferError(f"__dlpack__: wanted dl_device={CPU}, the CPU, or None, got {dl_device!r}")
    if max_version is None or max_version[0] < VERSION[0]:
        _copy_for_old_consumers(copy)
        max_version, host, copy = None, host.copy(), None
    elif copy is None and any([stride < 0 for stride in host.strides]):
        host = host.copy()  # consumers refuse negative strides, and PyTorch 2 ends the process over them
    bits = host.view(f"u{host.itemsize}") if host.dtype in _CODES else host
    # mypy: NumPy's stub wants an enumeration where the protocol has a number.
    capsule = bits.__dlpack__(max_version=max_version, copy=copy)
    if bits is not host:
        _tensor_of(capsule).code = _CODES[host.dtype]
    return capsule


class _HeldCapsule:
    """A capsule as something that NumPy reads."""

    def __init__(self, capsule: object, device: tuple[int, int]) -> None:
        self._capsule, self._device = capsule, device

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def _capsule_of(x: Any, options: dict[str, Any]) -> object:
    """The producer's capsule; one from before version 1.0 knows no options."""
    try:
        return x.__dlpack__(max_version=VERSION, **options)
    except TypeError:
        if options.get("dl_device"):
            raise
    return x.__dlpack__()


def import_memory(x: Any, to_cpu: bool, copy: bool | None) -> np.ndarray[Any, Any]:
    """The memory of `x` as a NumPy array.

    to_cpu: ask a producer on another device to copy its values over.  Raises BufferError, RuntimeError or
    ValueError where NumPy, or the producer, does.
    """
    device = tuple(x.__dlpack_device__())
    options: dict[str, Any] = {} if copy is not False else {"copy": False}
    if to_cpu and device[0] != CPU[0]:
        device = options["dl_device"] = CPU
    capsule = _capsule_of(x, options)
    tensor = _tensor_of(capsule)
    code = tensor.code
    dtype = _BY_CODE.get((code, tensor.bits))
    if dtype is None:
        return np.from_dlpack(_HeldCapsule(capsule, device))
    tensor.code = _UNSIGNED
    try:
        values = np.from_dlpack(_HeldCapsule(capsule, device))
    except BaseException:
        tensor.code = code  # a capsule that was not taken goes back as it came, to be read or freed by others
        raise
    return values.view(dtype)


def borrow(x: Any, owner: AbstractBackend, copy: bool | None) -> BorrowedMemory:
    """The memory of `x`, an array on a device of `owner`, ready on the caller's stream.

    Raises BufferError, RuntimeError or ValueError where the producer or the backend does.
    """
    options: dict[str, Any] = {"stream": owner.stream(), "max_version": VERSION}
    if copy is False:
        options["copy"] = False
    try:
        capsule = x.__dlpack__(**options)
    except TypeError:  # a producer from before version 1.0
        capsule = x.__dlpack__(stream=owner.stream())
    tensor = _tensor_of(capsule)
    dtype = _BY_CODE.get((tensor.code, tensor.bits))
    if dtype is not None:
        tensor.code = _UNSIGNED
    return owner.from_dlpack(capsule, dtype)


def copied_by_producer(x: Any) -> np.ndarray[Any, Any] | None:
    """The values of `x`, on another device, that its library copies to the CPU; None if it does not."""
    if not hasattr(x, "__dlpack__"):
        return None
    try:
        return import_memory(x, True, None)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None


def read(x: Any) -> Any:
    """The values of an array whose library has dtypes of its own, as PyTorch; all else as it is.

    Those on another device are copied to the CPU.  Raises InputError for an array that does not give them.
    """
    if not hasattr(x, "__dlpack__") or isinstance(getattr(x, "dtype", None), np.dtype):
        return x
    try:
        return import_memory(x, True, None)
    except (BufferError, RuntimeError, ValueError) as error:
        raise InputError(f"asarray: {type(x).__name__} has values that cannot be read: {error}") from error
