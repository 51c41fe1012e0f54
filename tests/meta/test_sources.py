"""Every public function says where its rule comes from."""

from __future__ import annotations

import types

import pytest

import xarr
from tests.support.sources import NAMESPACES, OWN, functions, members, without_source


@pytest.mark.parametrize("namespace", NAMESPACES, ids=lambda module: module.__name__)
def test_functions_name_the_source_of_their_rule(namespace: types.ModuleType) -> None:
    results = list(functions(namespace))
    assert results
    missing = without_source(results)
    assert not missing, f'add "Source: …" to the docstrings of {missing}'


def test_members_of_array_name_the_source_of_their_rule() -> None:
    missing = without_source(members(xarr.Array))
    assert not missing, f'add "Source: …" to the docstrings of {missing}'


def test_what_is_called_xarr_s_own_exists() -> None:
    known = {name for namespace in NAMESPACES for name, _ in functions(namespace)}
    assert known | {name for name, _ in members(xarr.Array)} >= OWN


def test_a_missing_source_is_noticed() -> None:
    def tell() -> None:
        """Does it.  Source: NumPy, `told`."""

    def untold() -> None:
        """Does it."""

    def silent() -> None: ...

    class Vector:
        def sum(self) -> None:
            """Sum, as `xarr.sum`, which names its source."""

        def shift(self) -> None:
            """Do what `xarr` has no function for."""

        @property
        def twice(self) -> None:
            """Source: nobody."""

    module = types.ModuleType("some")
    module.told, module.untold, module.silent = tell, untold, silent  # type: ignore[attr-defined]
    assert without_source(functions(module)) == ["silent", "untold"]
    assert without_source(members(Vector)) == ["Vector.shift"]
