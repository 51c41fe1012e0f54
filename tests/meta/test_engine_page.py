"""`docs/images/engine.svg` is the picture of the stages as they are."""

from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.support.scripts import docs_script

pytest.importorskip("llvmlite")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return docs_script("make_engine")


def test_picture_is_that_of_the_stages(script: ModuleType) -> None:
    assert script.PICTURE.read_text(encoding="utf-8") == script.page(), "run: python docs/make_engine.py"


def test_picture_shows_each_operation_and_buffer(script: ModuleType) -> None:
    texts = {element.text for element in ElementTree.fromstring(script.page()).iter() if element.text}
    assert {"dot_general", "sqrt", "b5: f32[64]", "arena, byte 0", "      loops of div"} <= texts


def test_another_program_has_another_picture(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = script.page()
    monkeypatch.setattr(script.xarr, "sqrt", script.xarr.exp)
    assert script.page() != before


def test_machine_code_has_the_function(script: ModuleType) -> None:
    assert "\nrun:" in script.assembly()
