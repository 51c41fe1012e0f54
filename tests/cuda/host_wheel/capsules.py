"""CuPy's C functions exchanged for ones that ask an object of Python.

Cython leaves the functions that a module offers to others as capsules in its `__pyx_capi__`, each with its C signature
as a name.  The exchange goes by that signature, whatever the version of CuPy: a function that the object has no method
of stays as it is.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from tests.cuda.emulator.module import CACHE

SOURCE: Final = Path(__file__).with_suffix(".cpp")
#: The letters for `PyObject_CallMethod`, by type.
_FORMATS: Final = {"PyObject *": "O", "int": "i", "unsigned int": "I", "size_t": "K", "intptr_t": "L"}
#: What a function returns when an exception is set; CuPy's declarations say `except? 0`, and -1 of numbers that count.
_FAILURES: Final = {"PyObject *": "nullptr", "int": "-1", "size_t": "(size_t)-1"}
_SIGNATURE: Final = re.compile(r"(.*?) ?\((.*)\)")

_capsule = ctypes.pythonapi
_capsule.PyCapsule_GetName.restype = ctypes.c_void_p
_capsule.PyCapsule_GetName.argtypes = [ctypes.py_object]
_capsule.PyCapsule_New.restype = ctypes.py_object
_capsule.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]

#: The capsules that were exchanged: their names serve the new ones.
_exchanged: list[Any] = []


class Function(NamedTuple):
    """A C function that a module offers."""

    name: str
    result: str
    parameters: tuple[str, ...]

    @classmethod
    def of(cls, name: str, signature: str) -> Function:
        """A function by the name of its capsule, `int (int, int __pyx_skip_dispatch)`."""
        match = _SIGNATURE.fullmatch(signature)
        assert match is not None, f"{name}: a C signature was wanted, got {signature!r}"
        # Objects of CuPy's own classes are objects.
        result = "PyObject *" if match[1].startswith("struct __pyx_obj") else match[1].strip()
        parameters = [each.strip() for each in match[2].split(",") if each.strip() != "void"]
        return cls(name, result, tuple(parameters))

    def line(self) -> str:
        """The line that defines the function in C++; the parameters that Cython adds are passed to nobody."""
        own = [each for each in self.parameters if "__pyx" not in each]
        declared = [f"{each} a{k}" for k, each in enumerate(own)]
        declared += ["int" if each.startswith("int") else "void *" for each in self.parameters[len(own) :]]
        wide = {"size_t": "(unsigned long long)", "intptr_t": "(long long)"}
        arguments = [f"{wide.get(each, '')}a{k}" for k, each in enumerate(own)]
        formats = "".join(_FORMATS[each] for each in own)
        failure = _FAILURES.get(self.result, "0")
        parts = [self.result, f"host_{self.name}", f"({', '.join(declared)})", failure]
        parts += [f'"{self.name}"', f'"({formats})"', *arguments]
        return f"FUNCTION({', '.join(parts)})"


def exchange(module: ModuleType, device: Any) -> list[str]:
    """Let the functions of a module that an object has methods of ask that object, for C and for Python."""
    capsules = module.__dict__["__pyx_capi__"]
    functions = []
    for name, capsule in capsules.items():
        signature = ctypes.string_at(_capsule.PyCapsule_GetName(capsule)).decode()
        if "(" in signature and hasattr(device, name):
            functions.append(Function.of(name, signature))
    library = _compile("\n".join(each.line() for each in functions))
    library.set_device(ctypes.py_object(device))
    for function in functions:
        old = capsules[function.name]
        address = ctypes.cast(getattr(library, f"host_{function.name}"), ctypes.c_void_p)
        capsules[function.name] = _capsule.PyCapsule_New(address, _capsule.PyCapsule_GetName(old), None)
        _exchanged.append((old, device, library))
        setattr(module, function.name, getattr(device, function.name))
    return [each.name for each in functions]


def _compile(lines: str) -> ctypes.PyDLL:
    text = f'#include "{SOURCE}"\n{lines}\n'
    key = hashlib.sha256(SOURCE.read_bytes() + text.encode()).hexdigest()[:32]
    path = CACHE / f"host-{key}.so"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        own = path.with_suffix(f".{os.getpid()}")
        command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(own)]
        subprocess.run(command, input=text.encode(), check=True)
        own.replace(path)
    return ctypes.PyDLL(str(path))
