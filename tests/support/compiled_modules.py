"""The modules in LLVM IR that a test has compiled."""

from __future__ import annotations

from typing import Any

import pytest

from xarr_numpy.compiled.codegen import llvm_jit


def note_modules(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list to which the text of each module is added when it is compiled."""
    compile_module, texts = llvm_jit.compile_module, list[str]()

    def note(text: str, *operands: Any, **options: Any) -> llvm_jit.Code:
        texts.append(text)
        return compile_module(text, *operands, **options)

    monkeypatch.setattr(llvm_jit, "compile_module", note)
    return texts
