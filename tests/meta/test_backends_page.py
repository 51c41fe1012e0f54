"""`docs/backends.md` says who computes what on a GPU, of which element types, and how exactly."""

from __future__ import annotations

import pytest

from tests.support import gpu_operations
from tests.support.scripts import docs_script


def test_page_is_up_to_date() -> None:
    script = docs_script("make_backends")
    assert script.PAGE.read_text(encoding="utf-8") == script.text(), "run: python docs/make_backends.py"


def test_a_row_that_is_not_so_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    row = "| `stablehlo.sine` | float8, float16, bfloat16 | kernel | 0.51 | emulated |"
    script = docs_script("make_backends")
    assert row in script.text()
    monkeypatch.setattr(gpu_operations, "computes", lambda node: False)
    assert row.replace("kernel", "host").replace("emulated", "on the CPU") in script.text()
