"""Live sizes and programs for the tests of dynamic sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

import xarr
from tests.compare import assert_same
from tests.dynamic_cases import Case
from tests.xla import compile_stablehlo
from xarr import lax


def late(value: int) -> Any:
    """An int32 scalar that is no constant."""
    return lax.reshape(xarr.asarray(np.array([value], np.int32)), ())


def module_of(case: Case) -> str:
    """The case as a module of its operands of the bounds and the live sizes; it gives the result and its sizes."""
    letters = case.letters

    def function(*arguments: Any) -> list[Any]:
        count = len(case.shapes)
        result = case.apply(arguments[:count], dict(zip(letters, arguments[count:], strict=True)))
        sizes = [lax.get_dimension_size(result, dim) for dim in result._node.tensor_type.dynamic_dimensions]
        return [result, *sizes]

    sizes = [np.int32(0)] * len(letters)
    return str(xarr.lower(function, *case.arrays(), *map(np.asarray, sizes)))


def check_on(case: Case, backend: str, poisoned: bool) -> None:
    """A case at every live size beside its oracle; `poisoned` puts NaN behind the live parts."""
    arrays = case.arrays()
    with xarr.use_backend(backend):
        for sizes in case.sizes():
            contents = case.poison(arrays, sizes) if poisoned else arrays
            operands = [xarr.asarray(array) for array in contents]
            result = case.apply(operands, {letter: late(size) for letter, size in sizes.items()})
            try:
                assert_same(np.asarray(result), case.oracle(*case.live(arrays, sizes)))
            except AssertionError as error:
                raise AssertionError(f"{case.name} at {sizes}: {error}") from error


def check_with_xla(case: Case) -> None:
    """XLA computes what the oracle of a case wants, and the sizes, at every live size."""
    arrays, run = case.arrays(), compile_stablehlo(module_of(case))
    late_sizes = {letter: late(0) for letter in case.letters}
    dims = case.apply(list(map(xarr.asarray, arrays)), late_sizes)._node.tensor_type.dynamic_dimensions
    for sizes in case.sizes():
        values = [np.int32(sizes[letter]) for letter in case.letters]
        buffer, *sizes_of_result = run(*case.poison(arrays, sizes), *values)
        wanted = case.oracle(*case.live(arrays, sizes))
        # XLA lays the live elements out as if the array had the live sizes.
        assert_same(buffer.reshape(-1)[: wanted.size].reshape(wanted.shape), wanted)
        assert [int(size) for size in sizes_of_result] == [wanted.shape[dim] for dim in dims]
