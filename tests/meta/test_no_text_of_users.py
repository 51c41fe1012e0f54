"""No text that an object of the user's prints reaches the source of a program.

Python and the engines run sources that are written for each traced function.  Values come in as objects, or as
literals of plain numbers and strings; `repr` of a class of the user's may print anything.
"""

from dataclasses import make_dataclass
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.errors import InputError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.runtime import handles
from xarr.transforms.weak_numbers import _literal

RAN: list[str] = []
#: What each class below prints: the call of a function that a program must never make.
TEXT = "__import__('tests.meta.test_no_text_of_users', fromlist=['RAN']).RAN.append('ran')"


def _print(self: Any, *_: Any) -> str:
    return TEXT


def _hostile(kind: type) -> type:
    return type(
        f"Hostile{kind.__name__.title()}",
        (kind,),
        {"__repr__": _print, "__str__": _print, "__format__": _print},
    )


HostileInt, HostileFloat, HostileComplex, HostileStr = map(_hostile, (int, float, complex, str))


class HostileSize(np.int64):
    """A number of NumPy's, which prints itself as it likes."""

    __repr__ = __str__ = __format__ = _print


class HostileIndex:
    """Something with `__index__`."""

    __repr__ = __str__ = _print

    def __index__(self) -> int:
        return 1


@pytest.fixture(autouse=True)
def _nothing_ran():
    yield
    assert RAN == []


NUMBERS = [HostileInt(1), HostileFloat(1.5), HostileFloat("inf"), HostileComplex(1 + 2j), HostileSize(1)]


@pytest.mark.parametrize("number", NUMBERS, ids=["int", "float", "inf", "complex", "numpy"])
def test_numbers_in_a_jitted_function(number):
    arithmetic = xarr.jit(lambda n, x: (n + number) * x + number)
    x = np.arange(1.0, 4.0)
    for _ in range(2):
        assert_same(arithmetic(2, x), np.asarray((2 + number) * x + number))
        assert_same(xarr.jit(lambda n, x: n + x)(number, x), np.asarray(number + x))
    assert isinstance(number, HostileSize) or TEXT not in _literal(number)


@pytest.mark.parametrize(
    "digits",
    [HostileInt(1), HostileSize(1), HostileIndex(), np.int64(1)],
    ids=["int", "size", "index", "numpy"],
)
def test_digits_of_round(digits):
    f = xarr.jit(lambda n, x: round(n, digits) * x)
    for _ in range(2):
        assert_same(f(2.345, np.ones(2)), np.full(2, 2.3))


def test_names_of_arguments():
    @xarr.jit
    def total(**kwargs):
        return kwargs["a"] + kwargs["b"]

    for _ in range(3):
        assert_same(total(**{HostileStr("a"): np.ones(2), HostileStr("b"): 1.0}), np.full(2, 2.0))


def test_keys_and_fields_of_containers():
    pairs: Any = make_dataclass("Pairs", [("first", Any), ("second", Any)])
    names = {HostileStr(name): each for name, each in pairs.__dataclass_fields__.items()}
    for name, each in names.items():
        each.name = name
    swap = xarr.jit(lambda each: pairs(each.second, each.first))
    swap_keys = xarr.jit(lambda each: {HostileStr("x"): each[HostileStr("y")], "y": each["x"]})
    for _ in range(3):
        result = swap(pairs(np.zeros(2), np.ones(2)))
        assert_same(result.first, np.ones(2))
        result = swap_keys({HostileStr("x"): np.zeros(2), HostileStr("y"): np.ones(2)})
        assert_same(result["x"], np.ones(2))


def test_static_arguments_and_slices():
    f = xarr.jit(
        lambda x, size, name: x[HostileIndex() : size : HostileInt(2)] * len(name), static_argnums=(1, 2)
    )
    for _ in range(3):
        result = f(np.arange(9.0), HostileInt(8), HostileStr("ab"))
        assert_same(result, 2 * np.arange(9.0)[1:8:2])


CALLS = {
    "shape": lambda x: xarr.zeros((HostileInt(2), HostileSize(3))) + x[0],
    "reshape": lambda x: x.reshape(HostileInt(3), HostileIndex()),
    "axis": lambda x: xarr.expand_dims(x, HostileInt(1)).sum(axis=HostileSize(0)),
    "dims": lambda x: lax.broadcast_in_dim(x, (HostileInt(2), HostileInt(3)), (HostileInt(1),)),
    "pad": lambda x: lax.pad(x, 0.0, [(HostileInt(1), HostileSize(1), HostileInt(0))]),
    "window": lambda x: lax.reduce_window(
        x, 0.0, lax.add, (HostileInt(2),), (HostileInt(1),), HostileStr("VALID")
    ),
    "fft": lambda x: lax.fft(x, HostileStr("rfft"), (HostileInt(3),)),
    "precision": lambda x: lax.reduce_precision(x, HostileInt(5), HostileSize(3)),
    "check": lambda x: lax.linalg.check(x, x == x, HostileStr("all is well")),
    "dtype": lambda x: x.astype(HostileStr("float32")),
    "iota": lambda x: lax.broadcasted_iota(HostileStr("int32"), (HostileInt(3),), HostileInt(0)),
    "bits": lambda x: lax.rng_bit_generator(
        np.zeros(2, "uint64"), (HostileInt(3),), algorithm=HostileStr("philox")
    )[1],
    "scalars": lambda x: (x + HostileFloat(2)) ** HostileInt(2) * HostileComplex(1j) + HostileSize(3),
    "clip": lambda x: xarr.clip(x, HostileInt(1), HostileFloat(1.5)),
    "power": lambda x: lax.integer_pow(x, HostileInt(3)),
    "loop": lambda x: lax.fori_loop(HostileInt(0), HostileInt(3), lambda i, y: y + i, x),
    "custom": lambda x: lax.custom_call(
        HostileStr("twice"), x, result_types=((HostileInt(3),), "float64"), attributes={HostileStr("by"): 2}
    ),
}


@pytest.fixture(autouse=True)
def _twice():
    lax.register_custom_call("twice", lambda x, by: x * by)
    yield
    lax.unregister_custom_call("twice")


@pytest.mark.parametrize("name", CALLS)
def test_attributes_of_operations(name):
    call = CALLS[name]
    x = np.arange(3.0)
    eager = np.asarray(call(xarr.asarray(x)))
    assert_same(xarr.jit(call)(x), eager)
    text = xarr.make_explicit(call, x).text
    assert "__import__" not in text
    assert "__import__" not in str(xarr.lower(call, x).stage("program"))


def test_names_of_functions_and_parameters():
    def f(x):
        return x + 1

    f.__name__ = HostileStr("f")
    program = xarr.make_explicit(f, np.ones(2))
    assert "__import__" not in program.text
    assert_same(program(np.ones(2)), np.full(2, 2.0))


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("message", [HostileStr("no"), HostileInt(3)], ids=["str", "int"])
def test_an_operation_made_by_hand_with_other_texts_is_refused(message):
    x = xarr.ones(2)
    node = Node(ops.Check(message), (x._node, (x == x)._node))
    with pytest.raises(InputError, match="plain numbers and strings"):
        handles.wrap(node).evaluate()
