"""What is known of a kernel before it is known whether it shares its machine code."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from xarr.compiler.kernel_templates import TemplateKernel
from xarr.compiler.loop_ir.loops import Kernel, Loop, copied_buffers
from xarr_numpy.compiled.codegen import emitter
from xarr_numpy.compiled.codegen.templates import code_of_template
from xarr_numpy.compiled.threads import costs
from xarr_numpy.compiled.threads.phases import shared_phase
from xarr_numpy.processor import PROCESSOR


def _copy_of(program: Kernel, phase: Loop) -> tuple[int, int] | None:
    buffers = copied_buffers(phase)
    if buffers is None or buffers[0].role != "out" or buffers[1].role != "in":
        return None
    return program.outputs.index(buffers[0]), program.inputs.index(buffers[1])


class Draft:
    """The text of a kernel with placeholders, and what calls of it need to know.

    * `phases` - its phases, whose code is nowhere yet,
    * `copies` - for each the result and the operand of which it does nothing but make a copy, None for others,
    * `operands` - the number of arrays that it reads,
    * `scratch` - sizes and types of arrays that live as long as a call,
    * `template_code` - what it shares with kernels that are alike.
    """

    def __init__(self, program: Kernel) -> None:
        self.functions, self.names = emitter.functions_of(program, lambda phase: not costs.is_shared(phase))
        self.phases = [shared_phase(0, phase) for phase in program.phases]
        self.copies = [_copy_of(program, phase) for phase in program.phases]
        self.operands = len(program.inputs)
        self.scratch: list[tuple[int, np.dtype[Any]]] = [(each.size, each.dtype) for each in program.scratch]
        self.template_code = code_of_template(self.functions.template())

    @property
    def nanoseconds(self) -> float:
        return sum([phase.work for phase in self.phases])

    @property
    def is_long(self) -> bool:
        """Whether reading numbers from an array may take longer than making code with constants."""
        return self.nanoseconds > PROCESSOR.max_shared_code_nanoseconds

    def numbers(self) -> list[Any]:
        """The numbers in which kernels that are alike differ."""
        numbers: list[Any] = [size for size, _ in self.scratch]
        for phase in self.phases:
            numbers += [phase.extent, phase.cost]
        for template in self.functions.templates:
            numbers += template.numbers
        return numbers

    def with_numbers(self, numbers: Sequence[Any]) -> Draft:
        """The draft of a kernel that is alike, with these numbers."""
        rest = iter(numbers)
        draft = copy(self)
        draft.scratch = [(next(rest), dtype) for _, dtype in self.scratch]
        draft.phases = [phase.with_work(next(rest), next(rest)) for phase in self.phases]
        draft.functions = self.functions.with_numbers(rest)
        return draft


def prepare(program: Kernel) -> tuple[Draft, list[Any]]:
    """The draft of a kernel, and its numbers."""
    draft = Draft(program)
    return draft, draft.numbers()


def draft_of(program: Kernel) -> Draft:
    """The draft of a kernel, made of another one if they are alike."""
    if type(program) is not TemplateKernel:
        return Draft(program)
    draft, numbers = program.draft
    made: Draft = draft.with_numbers(numbers)
    return made
