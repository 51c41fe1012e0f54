"""`docs/backends.md` says who computes what on a GPU."""

from __future__ import annotations

from tests.support.scripts import docs_script


def test_page_is_up_to_date() -> None:
    script = docs_script("make_backends")
    assert script.PAGE.read_text(encoding="utf-8") == script.text(), "run: python docs/make_backends.py"


def test_a_row_that_is_not_so_is_seen(monkeypatch) -> None:
    script = docs_script("make_backends")
    monkeypatch.setattr(script.libraries, "computes", lambda node: False)
    assert "| `stablehlo.dot_general` | – | kernel | – |" in script.text()
