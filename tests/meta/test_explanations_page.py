"""The page of explanations and its pictures are those that the library makes."""

from types import ModuleType

import pytest

from tests.support.checkout import CHECKOUT
from tests.support.explained import MOST_BYTES
from tests.support.scripts import docs_script


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return docs_script("make_explanations")


def test_page_is_up_to_date(script: ModuleType) -> None:
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "run: python docs/make_explanations.py"


def test_pictures_are_up_to_date(script: ModuleType) -> None:
    pictures = script.pictures()
    assert {path.stem for path in script.PICTURES.iterdir()} == pictures.keys()
    for name, svg in pictures.items():
        kept = (script.PICTURES / f"{name}.svg").read_text(encoding="utf-8")
        assert kept == svg, "run: python docs/make_explanations.py"


def test_every_function_that_explains_is_shown(script: ModuleType) -> None:
    functions = {line.split(" as ")[-1] for line in _exports() if "explain" in line}
    shown = {example.function.partition("(")[0] for example in script.EXAMPLES} | {"explain"}
    assert functions <= shown, functions - shown


def _exports() -> list[str]:
    source = (CHECKOUT / "xarr" / "__init__.py").read_text(encoding="utf-8")
    lines = [line.partition(" import ")[2] for line in source.splitlines() if "from xarr.explainers" in line]
    return [
        part.strip()
        for line in lines
        for part in line.split(",")
        if not part.strip().startswith("make_explicit")
    ]


def test_one_page_holds_all(script: ModuleType) -> None:
    page = script.html()
    assert page.count('<div class="xarr-e">') == len(script.EXAMPLES)
    assert all(len(example.explanation.html().encode()) <= MOST_BYTES for example in script.EXAMPLES)
