"""A group of fused operations as machine code that runs on NumPy arrays."""

from __future__ import annotations

import ctypes
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from xarr.backend import DirectCall
from xarr.base.host.memory import pool
from xarr.compiler.loop_ir.loops import Kernel
from xarr.ir.types import TensorType
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.cpython_abi import addresses, builtin, struct_offsets
from xarr_numpy.compiled.drafts import Draft, draft_of
from xarr_numpy.processor import PROCESSOR

Array = np.ndarray[Any, Any]


#: Makers of calls that are kept.
_KEPT: Final = 1024


#: Of kernels that are about to be made.
_drafts: Final[dict[Kernel, Draft]] = {}


def expect_kernels(programs: Iterable[Kernel]) -> None:
    """Prepare kernels that are made next, so that those that are alike share machine code from the first on."""
    drafts = {program: draft_of(program) for program in programs}
    _drafts.clear()
    _drafts.update(drafts)  # Other threads take theirs from it meanwhile.
    for code, count in Counter(
        [draft.template_code for draft in drafts.values() if not draft.is_long]
    ).items():
        if count >= PROCESSOR.min_alike_kernels:
            code.count = max(code.count, count)


@lru_cache(_KEPT)
def _maker_of_calls(count: int, results: int) -> Callable[..., Any]:
    """A function that makes the call of a kernel with so many operands and results.

    It takes the entry, the call for what the entry refuses, what allocates, and shape and type of each result.
    """
    operands = [f"a{k}" for k in range(count)]
    made = [f"r{k}" for k in range(results)]
    returned = made[0] if results == 1 else f"({', '.join(made)})"
    text = "\n".join(
        [
            f"def make({', '.join(['entry', 'other', 'empty', *[f's{k}, d{k}' for k in range(results)]])}):",
            f"    def call({', '.join(operands)}):",
            *[f"        {name} = empty(s{k}, d{k})" for k, name in enumerate(made)],
            f"        if entry({', '.join(operands + made)}):",
            f"            return {returned}",
            f"        return other({', '.join(operands)})",
            "    return call",
        ]
    )
    scope: dict[str, Any] = {}
    exec(text, scope)
    return scope["make"]  # type: ignore[no-any-return]


class CompiledKernel:
    """A group's program and its machine code.  `call` takes the operands and gives a new array for each result.

    One result is that array, several are a tuple of them.  `may_be_quick` lets the machine code be made without
    optimisation, if the first result is there sooner, and `may_be_shared` be that of kernels which are alike although
    this one runs long: `is_quick` says that one of these is so, and `optimise` makes the code anew.
    """

    def __init__(
        self,
        program: Kernel,
        results: tuple[TensorType, ...],
        may_be_quick: bool = False,
        may_be_shared: bool = False,
    ) -> None:
        self.program = program
        draft = _drafts.pop(program, None) or draft_of(program)
        self._names = tuple(draft.names)
        self.is_quick = may_be_quick
        #: What its machine code reads of numbers, if it shares that with kernels that are alike.
        self._numbers: Array = np.empty(0, np.int64)
        self._template_code, self._functions, self._is_long = (
            draft.template_code,
            draft.functions,
            draft.is_long,
        )
        self._constants = tuple([number for each in draft.functions.templates for number in each.numbers])
        self.lines = draft.template_code.lines
        self._make_code(draft, may_be_shared)
        self._shapes = [(type.shape, type.dtype) for type in results]
        self._scratch, self._count = draft.scratch, draft.operands
        self._drafts, self._copies = draft.phases, draft.copies
        self.call: Callable[..., Any] = self._call
        #: A call of it for programs that are this kernel and nothing else, if it is a short one.
        self.direct: DirectCall | None = None
        self._prepare()

    def _prepare(self) -> None:
        """Let calls run the machine code that there is."""
        self._prepare_phases()
        if self._is_small() and struct_offsets.works():
            (phase,) = self._drafts
            count = self._count + len(self._shapes)
            address = self._code.addresses[self._names[0]]
            entry, sealing = builtin.phase_entries(
                address,
                phase.extent,
                count,
                len(self._shapes),
                self._code,
                self._numbers.tolist(),
            )
            self.call = self._direct(entry)
            self.direct = DirectCall(np.empty, tuple(self._shapes), (None,) * len(self._shapes), sealing)

    @property
    def origin(self) -> str:
        """Where the machine code comes from, and how long that took."""
        return self._code.origin

    def _make_code(self, draft: Draft, may_be_shared: bool) -> None:
        """Make its machine code, or find that of kernels that are alike, if it is to share theirs."""
        self._template_code.count += 1
        is_quick = self.is_quick and llvm_jit.repays_quick_code(self.lines, draft.nanoseconds)
        #: Whether the machine code reads numbers from an array.
        self._is_shared = (
            self._template_code.count >= PROCESSOR.min_alike_kernels
            and (may_be_shared or not draft.is_long)
            and (self._constants, is_quick) not in self._template_code.codes
        )
        if self._is_shared:
            self._numbers = np.array(self._constants, np.int64)
            self._template_code.text = self._template_code.text or self._functions.shared_module()[0]
        self._code = self._compile(is_quick)
        # What is long has code with constants later.
        self.is_quick = self._code.is_quick or (self._is_shared and draft.is_long)
        if self._is_shared and not self._code.is_quick:  # of which the optimised code takes over
            self._template_code.held = self._code

    def _compile(self, is_quick: bool) -> llvm_jit.Code:
        """The machine code of its module, which kernels with other numbers of rows may have."""
        key = None if self._is_shared else self._constants, is_quick
        code = self._template_code.codes.get(key)
        if code is None:
            code = llvm_jit.compile_module(self.text, self._names, is_quick=is_quick)
            self._template_code.codes[key] = code
        return code

    @property
    def text(self) -> str:
        """The text of its module."""
        return self._template_code.text if self._is_shared else self._functions.module()

    def optimise(self) -> None:
        """Make quick machine code anew, for the calls from now on."""
        if self.is_quick:
            self._is_shared = self._is_shared and not self._is_long
            self._code = self._compile(is_quick=False)
            self._prepare()
            self.is_quick = False

    def _prepare_phases(self) -> None:
        drafts = self._drafts
        addresses = [self._code.addresses[name] for name in self._names[: len(drafts)]]
        #: With the code that they are in, which lives as long as a call of them, other code meanwhile or not.
        self._phases = (
            self._code,
            [draft.at(address) for draft, address in zip(drafts, addresses, strict=True)],
        )
        self._pointers = ctypes.c_void_p * (self._count + len(self._shapes) + len(self._scratch) + 1)
        self._numbers_address = self._numbers.ctypes.data

    def _is_small(self) -> bool:
        """Whether the work is too little to be shared, and soon done: it may hold Python's lock meanwhile."""
        is_one = len(self._drafts) == 1 and not self._scratch
        return is_one and self._drafts[0].work < PROCESSOR.min_unlocked_nanoseconds

    def _direct(self, entry: Callable[..., bool]) -> Callable[..., Any]:
        """A function that allocates the results and calls the entry."""
        make = _maker_of_calls(self._count, len(self._shapes))
        call: Callable[..., Any] = make(entry, self._call, np.empty, *itertools.chain(*self._shapes))
        return call

    def _call(self, *operands: Array) -> Any:
        return self.write_over((), *operands)

    def write_over(self, pairs: Sequence[tuple[int, int]], *operands: Array) -> Any:
        """Compute as `call`, but some results in the memory of an operand: pairs of a result and an operand.

        What is read-only, or does not lie in row-major order, is not written to.
        """
        targets = {result: operands[k] for result, k in pairs if operands[k].flags.carray}
        outputs = [
            targets[number].view(dtype).reshape(shape) if number in targets else pool.empty(shape, dtype)
            for number, (shape, dtype) in enumerate(self._shapes)
        ]
        scratch = [np.empty(size, dtype) for size, dtype in self._scratch]
        pointers = self._pointers()
        pointers[-1] = self._numbers_address
        address = ctypes.addressof(pointers)
        # Arrays that are copied for the call must live as long as it does.
        copied = addresses.collect(address, operands, (*outputs, *scratch))
        code, phases = self._phases
        held = (code, self, operands, copied, outputs, scratch, pointers)
        there = [(result, k) for result, k in pairs if result in targets]
        for copy, phase in zip(self._copies, phases, strict=True):
            if copy is None or copy not in there:
                phase.run(address, held)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def __str__(self) -> str:
        """The loop program."""
        return str(self.program)
