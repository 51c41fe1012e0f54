"""`docs/backends.md` says who computes what on a GPU, of which element types, and how exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import gpu_operations, gpu_record
from tests.support.scripts import docs_script


def test_page_is_up_to_date() -> None:
    script = docs_script("make_backends")
    assert script.PAGE.read_text(encoding="utf-8") == script.text(), "run: python docs/make_backends.py"


def test_a_row_that_is_not_so_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    row = "| `stablehlo.sine` | float8, float16, bfloat16 | kernel | 0.51 | real |"
    script = docs_script("make_backends")
    assert row in script.text()
    monkeypatch.setattr(gpu_operations, "computes", lambda node: False)
    assert row.replace("kernel", "host").replace("real", "on the CPU") in script.text()


REPORT = """<testsuites><testsuite>
<testcase classname="tests.cuda.test_operations" name="test_each_operation_has_the_bits_of_the_cpu[Acos-all types]"/>
<testcase classname="tests.cuda.test_operations" name="test_each_operation_has_the_bits_of_the_cpu[Sine-some types]"/>
<testcase classname="tests.cuda.test_operations" name="test_each_operation_has_the_bits_of_the_cpu[Tan-all types]">
<failure message="other bits"/></testcase>
<testcase classname="tests.cuda.test_sorts" name="test_a"><skipped/></testcase>
<testcase classname="tests.cuda.test_sorts" name="test_b"><error/></testcase>
</testsuite></testsuites>"""


def test_a_record_has_what_passed_on_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "tests.xml").write_text(REPORT, encoding="utf-8")
    (tmp_path / "gpu.json").write_text(json.dumps({"device": ["a GPU", "CuPy", "rates"]}), encoding="utf-8")
    record = gpu_record.record_of_session(tmp_path)
    assert record.operations == {"Acos"}
    assert record.files == {"tests/cuda/test_operations.py": (2, 1, 0), "tests/cuda/test_sorts.py": (0, 1, 1)}
    assert gpu_record.read(record.text) == record


def test_what_did_not_pass_on_a_gpu_is_not_real() -> None:
    float32 = gpu_operations.DType("float32")
    ways = gpu_operations.ways({"Sine"})
    assert ways["stablehlo.sine"][float32].seen == "real"
    assert ways["stablehlo.tan"][float32].seen == "emulated"
