"""A toy engine: prints loop programs as C, and runs plans with what the C compiler makes of them.

It is what an engine needs at least, to be read beside `xarr/compiler/loop_ir/loops.py` and
`xarr/compiler/plan/program_plan.py`.  A loop is a `for`, a value is a `const` variable, a step of a plan is a call.
What is no loop program (an FFT, a sort) is computed by its library, the reference interpreter: c_library.py says why.

The types of C are called by NumPy's letters: `f4` is float, `u1` an unsigned byte, `c16` a complex double.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import subprocess
import tempfile
from collections import ChainMap
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tests.support.c_library import library_program
from tests.support.plan_engine import PlanRun, flat_results, packed_results
from xarr.backend import AbstractBackend, get, read_only
from xarr.compiler.fusion import stage
from xarr.compiler.loop_ir.loops import Kernel, Loop, Store, constant_of
from xarr.compiler.loop_ir.scalars import BOOL, DType, Value, in_order
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.arena import aligned_size
from xarr.compiler.plan.planner import plan as plan_of, plan_for
from xarr.compiler.schedule import Schedule
from xarr.compiler.schedules.serial.builders import SCHEDULE, computes, program_of
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import Type

Array = np.ndarray[Any, Any]

# --- 1. A loop program as C ----------------------------------------------------------------------------

PRELUDE = """\
typedef _Bool b1; typedef _Float16 f2; typedef float f4; typedef double f8;
typedef __INT8_TYPE__ i1; typedef __INT16_TYPE__ i2; typedef __INT32_TYPE__ i4; typedef __INT64_TYPE__ i8;
typedef __UINT8_TYPE__ u1; typedef __UINT16_TYPE__ u2; typedef __UINT32_TYPE__ u4; typedef __UINT64_TYPE__ u8;
typedef float _Complex c8; typedef double _Complex c16;
#define BITS(to, x) ({ __typeof__(x) x_ = (x); to y_; __builtin_memcpy(&y_, &x_, sizeof y_); y_; })
#define NAN_OR(x, y, other) (x != x ? x : y != y ? y : (other))
#define MAXIMUM(x, y) NAN_OR(x, y, x > y || (x == y && !__builtin_signbit((f8)x)) ? x : y)
#define MINIMUM(x, y) NAN_OR(x, y, x < y || (x == y && __builtin_signbit((f8)x)) ? x : y)
#define SATURATED(to, low, high, x) (x != x ? 0 : x <= (f8)(low) ? (low) : x >= (f8)(high) ? (high) : (to)x)
"""
INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", "shl": "<<"}
INFIX |= {"shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
FUNCTIONS = {"abs": "fabs", "rem": "fmod"}  # others have their own names
#: Of the operands, the type of the result, and its bytes.
PATTERNS = {
    "select": "{0} ? {1} : {2}",
    "rarely": "{0} ? {2} : {1}",
    "neg": "-{0}",
    "not": "{0} ^ ({to})-1",
    "rem": "{0} % {1}",
    "maximum": "MAXIMUM({0}, {1})",
    "minimum": "MINIMUM({0}, {1})",
    "real": "__real__ {0}",
    "imag": "__imag__ {0}",
    "complex": "__builtin_complex({0}, {1})",
    "bitcast": "BITS({to}, {0})",
    "popcount": "__builtin_popcountll(BITS(u{size}, {0}))",
    "count_leading_zeros": "{0} ? __builtin_clzll(BITS(u{size}, {0})) - (64 - 8 * {size}) : 8 * {size}",
}


def literal(value: Value) -> str:
    """A constant, to the bit."""
    number, dtype = constant_of(value), value.dtype
    if dtype.kind == "f":
        bits = f"BITS({dtype.str[1:]}, (u{dtype.itemsize}){int(number.view(f'u{dtype.itemsize}'))}ull)"
        return f"(({dtype.str[1:]}){float(number).hex()})" if np.isfinite(number) else bits
    return f"(({dtype.str[1:]}){int(number) % 2**64}ull)"


def expression(value: Value, names: Sequence[str]) -> str:
    """The operation of a value on variables."""
    op, dtype, access = value.op, value.dtype, value.attribute
    if op == "load":
        text = f"{access.buffer.name}[{linear_index(names, access.factors, access.constant)}]"
        return f"{names[-1]} ? {text} : 0" if access.masked else text
    if op in INFIX:
        return f"{names[0]} {INFIX[op]} {names[1]}"
    if op == "convert":
        return conversion(names[0], value.operands[0].dtype, dtype)
    if op in PATTERNS and not (op == "rem" and dtype.kind == "f"):
        return PATTERNS[op].format(*names, to=dtype.str[1:], size=dtype.itemsize)
    # sqrt, fma …: those of float16 are those of float, rounded
    return f"__builtin_{FUNCTIONS.get(op, op)}{'' if dtype.itemsize == 8 else 'f'}({', '.join(names)})"


def conversion(name: str, old: DType, new: DType) -> str:
    if old.kind == "f" and new.kind in "iu":
        low, high = (f"({new.str[1:]}){int(x) % 2**64}ull" for x in (np.iinfo(new).min, np.iinfo(new).max))
        return f"SATURATED({new.str[1:]}, {low}, {high}, {name})"
    return f"{name} != 0" if new == BOOL else name


def linear_index(names: Iterable[str], factors: Iterable[int], constant: int) -> str:
    return " + ".join([*[f"{f} * {name}" for name, f in zip(names, factors, strict=False)], str(constant)])


class Printer:
    """The C function of a kernel.  `names` are the variables that are seen where the next line stands."""

    def function(self, kernel: Kernel, name: str = "run") -> str:
        self.lines: list[str] = []
        self.names: ChainMap[Value, str] = ChainMap()
        for number, buffer in enumerate((*kernel.inputs, *kernel.outputs, *kernel.scratch)):
            self.line(f"{buffer.dtype.str[1:]} *{buffer.name} = buffers[{number}];")
        for phase in kernel.phases:
            self.open("")
            self.loop(phase)
            self.close()
        return "\n".join([f"void {name}(void **buffers) {{", *self.lines, "}\n"])

    def while_loop(self, condition: Kernel, body: Kernel) -> str:
        """A function of the buffers of two loop programs, which share the inputs: the carried values."""
        text, count = [self.function(condition, "condition"), self.function(body, "body")], len(body.inputs)
        text.append(
            f"void run(void ***buffers) {{\n    while (condition(buffers[0]), *(b1 *)buffers[0][{count}]) {{"
        )
        text.append("        body(buffers[1]);")
        for k, out in enumerate(body.outputs):
            text.append(f"        __builtin_memcpy(buffers[1][{k}], buffers[1][{count + k}], {out.nbytes});")
        return "\n".join([*text, "    }", "}\n"])

    def line(self, text: str) -> None:
        self.lines.append("    " * len(self.names.maps) + text)

    def open(self, head: str) -> None:
        self.line(f"{head}{{")
        self.names = self.names.new_child()

    def close(self) -> None:
        self.names = self.names.parents
        self.line("}")

    def value(self, root: Value) -> str:
        """The variable of a value; what it needs is computed first, where that is not known already."""
        for value in in_order(root):
            if value.op == "constant":
                self.names[value] = literal(value)
            elif value not in self.names:
                text = expression(value, [self.names[operand] for operand in value.operands])
                self.names[value] = name = f"v{len(self.lines)}"
                self.line(f"const {value.dtype.str[1:]} {name} = {text};")
        return self.names[root]

    def loop(self, loop: Loop) -> None:
        kept = (loop.accumulators, loop.carries, loop.prefixes, loop.search, loop.bounds, loop.condition)
        assert not any(kept) and loop.first is None, "serial loops begin at 0, and leave values in buffers"
        extent = str(loop.extent) if isinstance(loop.extent, int) else self.value(loop.extent)
        index = f"k{len(self.lines)}"
        self.open(f"for (i8 {index} = 0; {index} < {extent}; {index}++) ")
        self.names[loop.index] = index
        self.body(loop.body)
        self.close()

    def body(self, parts: Sequence[Loop | Store]) -> None:
        assert len(set(map(type, parts))) == 1, "serial loops hold loops or stores"
        for inner in (part for part in parts if isinstance(part, Loop)):
            self.loop(inner)
        # All that is stored is computed before a store changes what it is computed of.
        stores = [part for part in parts if isinstance(part, Store)]
        for store, at, value in [(each, each.offset, self.value(each.value)) for each in stores]:
            names, factors = [self.value(x) for x, _ in at.terms], [x for _, x in at.terms]
            self.line(f"{store.buffer.name}[{linear_index(names, factors, at.constant)}] = {value};")


# --- 2. The C compiler ---------------------------------------------------------------------------------

#: Integers wrap, nothing is rounded otherwise than written, and results may lie over operands of another type.
COMMAND = "cc -O1 -shared -fPIC -fwrapv -fno-strict-aliasing -ffp-contract=off -fno-math-errno -x c - -lm -o"
CACHE = Path(tempfile.gettempdir()) / f"xarr-c-{os.getuid()}"


def compile_program(text: str) -> Callable[[Any], None]:
    """The function `run` of a C text, whose shared object is kept."""
    text = PRELUDE + text
    CACHE.mkdir(exist_ok=True)
    path = CACHE / f"{hashlib.sha256(f'{COMMAND}{text}'.encode()).hexdigest()[:32]}.so"
    if not path.exists():
        own = path.with_suffix(f".{os.getpid()}")
        subprocess.run([*shlex.split(COMMAND), str(own)], input=text.encode(), check=True)
        own.replace(path)
    return ctypes.CDLL(str(path)).run


function_of = lru_cache(None)(lambda kernel: compile_program(Printer().function(kernel)))


def launch(kernel: Kernel, arrays: Sequence[Array], workspace: Array) -> None:
    """Run a loop program of inputs and outputs; scratch buffers lie one after the other in the workspace."""
    buffers, start = [each.ctypes.data for each in arrays], workspace.ctypes.data
    for buffer in kernel.scratch:
        buffers.append(start)
        start += aligned_size(buffer.nbytes)
    function_of(kernel)((ctypes.c_void_p * len(buffers))(*buffers))


def launch_loop(graphs: Sequence[Graph], state: Sequence[Array]) -> None:
    """Run the loop programs of a condition and a body as one C function, over what they carry."""
    kernels = [verify(program_of(graph)) for graph in graphs]
    own = [[np.empty(x.size, x.dtype) for x in (*each.outputs, *each.scratch)] for each in kernels]
    addresses = [[x.ctypes.data for x in (*state, *arrays)] for arrays in own]
    buffers = [(ctypes.c_void_p * len(each))(*each) for each in addresses]
    compile_program(Printer().while_loop(*kernels))((ctypes.c_void_p * 2)(*map(ctypes.addressof, buffers)))


# --- 3. Plans ------------------------------------------------------------------------------------------


class Run(PlanRun):
    """A run of a plan, whose groups are C."""

    def step(self, step: program_plan.Step, space: Any) -> None:
        if isinstance(step, program_plan.Launch) and step.program is not None:
            arrays = [self.array(number) for number in (*step.inputs, *step.outputs)]
            launch(step.program, arrays, self.arena[space.offset :] if space else self.arena)
        else:
            super().step(step, space)

    def compute(self, step: program_plan.Step, inputs: list[Array]) -> Sequence[Array]:
        if isinstance(step, program_plan.LaunchLoop):
            state = [np.array(each) for each in inputs]
            launch_loop(step.op.graphs, state)
            return [state[k] for k in step.carried]
        return flat_results(one_operation(step.op, tuple(x.type for x in step.node.operands))(*inputs))


@lru_cache(None)
def one_operation(op: Op, types: tuple[Type, ...]) -> Callable[..., Any]:
    """A loop program where there is one, else what the reference interpreter computes."""
    operands = [parameter(type) for type in types]
    graph = Graph(operands, [Node(op, tuple(operands))])
    if not computes(graph.results[0]):
        return library_program(graph)
    group = Node(ops.Fusion(graph, ()), tuple(operands))
    plan = plan_of(Graph(operands, [group]), views=False, schedule=lambda: SCHEDULE)
    return lambda *arrays: Run.of(plan, arrays)


# --- 4. The backend ------------------------------------------------------------------------------------


class Program:
    """A compiled graph: its plan, and the C text of its kernels."""

    def __init__(self, plan: program_plan.Plan) -> None:
        self.plan = plan

    @property
    def text(self) -> str:
        steps = [step for plan in self.plan.walk() for step in plan.steps]
        kernels = dict.fromkeys(step.program for step in steps if isinstance(step, program_plan.Launch))
        return "\n".join([f"{self.plan}\n", *[Printer().function(kernel) for kernel in kernels if kernel]])

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        return packed_results(self.plan.graph.result_types, Run.of(self.plan, flat_results(arguments)))


class Backend(AbstractBackend):
    """`xarr.use_backend("toy_c")`, in tests: arrays of NumPy in row-major order."""

    name: ClassVar[str] = "toy_c"
    has_views, target = False, SCHEDULE.target

    def supports(self, op: type[Op]) -> bool:
        return get("reference").supports(op)

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        return stage.fuse(graph, self.target, self.schedule, hot=True)

    def schedule(self) -> Schedule:
        return SCHEDULE

    def compile(self, graph: Graph) -> Program:
        return Program(plan_for(graph, self))

    def from_host(self, array: Array) -> Array:
        return read_only(np.asarray(array, order="C"))

    def to_host(self, buffer: Array) -> Array:
        return buffer

    def plan_of(self, program: Any) -> program_plan.Plan:
        return program.plan
