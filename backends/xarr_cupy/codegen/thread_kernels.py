"""The kernel of a phase in which each thread has a point of the grid, or several.

A value is a `const` variable, a loop a `for`.  Indices are int where they and all offsets fit, else long long; they are
computed from the number of the point only where they are used.  Nothing is kept in local arrays.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from math import inf, prod
from typing import Final

import numpy as np

from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.loops import (
    Affine,
    Atomic,
    Buffer,
    Carry,
    Exchange,
    Kernel,
    Loop,
    LoopError,
    Memory,
    Runs,
    Store,
    grid_loops,
    loads_of,
    offset_of,
)
from xarr.compiler.loop_ir.scalars import BOOL, INT64, Value, constant_of, in_order
from xarr_cupy.codegen.kernel_calls import BLOCK, MOST_BLOCKS
from xarr_cupy.codegen.sizes import INDEX_OPERATIONS, Sizes
from xarr_cupy.codegen.spelling import (
    INFIX,
    choose,
    enclose,
    expression,
    helper_of,
    infix,
    literal,
    type_name,
)

#: Names that are no variables of values: by how often they are in use.
_RESERVED: Final = dict.fromkeys(("i", "lanes", "behind", "warp"), 1)
#: Letters of an expression that stands where it is used.
_MOST_INLINED: Final = 44
#: Values that a loop over the terms of a tile carries, from which on all of its iterations are written out.
_MANY_CARRIES: Final = 8
#: Points of a grid up to which their number is an int, which a step of all threads must not exceed.
MOST_NARROW: Final = 2**30
_ATOMICS: Final = {
    Atomic.ADD: "atomicAdd",
    Atomic.MAXIMUM: "atomicMax",
    Atomic.MINIMUM: "atomicMin",
    Atomic.AND: "atomicAnd",
    Atomic.OR: "atomicOr",
    Atomic.XOR: "atomicXor",
}
#: For types that CUDA has no atomics of, what an element and an update are combined to.
_COMBINED: Final = {
    Atomic.ADD: "old + {0}",
    Atomic.MAXIMUM: "old > {0} ? old : {0}",
    Atomic.MINIMUM: "old < {0} ? old : {0}",
    Atomic.AND: "old & {0}",
    Atomic.OR: "old | {0}",
    Atomic.XOR: "old ^ {0}",
}


class ThreadPrinter:
    """The text of one phase, of whose grid each thread has points.

    `names` are the variables that are seen where the next line stands.
    """

    #: The words of the grid.
    words = Runs.GRID | Runs.BLOCK
    #: Whether arrays must lie at multiples of the longest vector.
    has_vectors = False

    def __init__(self, kernel: Kernel, phase: Loop, sizes: Sizes) -> None:
        self.sizes = sizes
        self.lines: list[str] = []
        self.names: ChainMap[Value, str] = ChainMap()
        self.counts = Counter(_RESERVED)
        self.helpers: dict[Value, tuple[str, tuple[Value, ...]]] = {}
        self.grid = grid_loops(phase)
        self.points = prod(_extent(loop) for loop in self.grid)
        _refuse_words(self.words, self.grid)
        loops = [loop for loop in phase.walk() if loop.max_iterations]
        self.ranges = Ranges({loop.index: (0, loop.max_iterations - 1) for loop in loops})
        self.buffers = _buffers_of(kernel, phase)
        self.written = {store.buffer for loop in phase.walk() for store in loop.stores()}
        self.uses, self.typed = _uses_of(phase)
        #: Whether what a block shares has the sizes of tiles, which no shape changes.
        self.has_tiles = any(loop.is_of_tile for loop in phase.walk())

    def definition(self) -> str:
        """The kernel from behind its name on: parameters and body."""
        self.open(self.head())
        self.begin_point()
        self.body(self.grid[-1].body)
        self.close()
        pointers = [
            f"{'' if each in self.written else 'const '}{type_name(each.dtype)} *{each.name}"
            for each in self.buffers
        ]
        parameters = ", ".join([*pointers, *self.sizes.parameters])
        return "\n".join([f"({parameters}) {{", *self.shared_arrays(), *self.lines, "}\n"])

    def shared_arrays(self) -> list[str]:
        """The declarations of what a block shares: none here."""
        return []

    @property
    def blocks(self) -> int:
        """The blocks of the grid."""
        return min(-(-self.points // BLOCK), MOST_BLOCKS)

    def head(self) -> str:
        """The loop over the points of a thread."""
        number, wide = ("int", "") if self.points <= MOST_NARROW else ("int64", "(int64)")
        end = self.grid_size()
        start = f"for ({number} i = {wide}blockIdx.x * blockDim.x + threadIdx.x; i < {end}; "
        return f"{start}i += {wide}gridDim.x * blockDim.x) {{"

    def begin_point(self) -> None:
        """Write what stands before all that is done for a point: nothing here."""

    def grid_size(self) -> str:
        """The number of points of the grid."""
        return self.sizes.number(self.points, "points", "grid", self.points >= 2**31)

    # --- lines and names ---------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * len(self.names.maps) + text)

    def open(self, head: str) -> None:
        self.line(head)
        self.names = self.names.new_child()

    def close(self, end: str = "}") -> None:
        self.names = self.names.parents
        self.line(end)

    def new(self, word: str) -> str:
        """A name that no variable has."""
        self.counts[word] += 1
        if word == "v":
            return f"{word}{self.counts[word]}"
        mark = "_" if word[-1].isdigit() or word in _RESERVED else ""
        return word if self.counts[word] == 1 else f"{word}{mark}{self.counts[word]}"

    # --- values ------------------------------------------------------------------------------------------

    def is_narrow(self, value: Value) -> bool:
        """Whether an int64 is known to be an int."""
        if value.dtype != INT64 or value.op in ("load", "argument", "result"):
            return False
        low, high = self.ranges.of(value)
        return low >= -(2**31) and high < 2**31

    def value(self, root: Value) -> str:
        """The variable of a value; what it needs is computed first, where that is not known already."""
        if root in self.names:
            return self.names[root]
        if root.op == "constant":
            self.names[root] = literal(root)
        elif root.op == "index":
            self.names[root] = self.grid_index(root)
        else:
            self.define(root, self.expression(root))
        return self.names[root]

    def expression(self, root: Value) -> str:
        """The operation or the load of a value; what it needs is computed first."""
        for value in self.missing(root):
            text = self.own_expression(value)
            if value is root:
                return text
            if self.is_inlined(value, text):
                self.names[value] = text
                self.sizes.note(value)
            else:
                self.define(value, text)
        raise AssertionError("a value is the last of those that it needs")

    def own_expression(self, value: Value) -> str:
        """The operation or the load of a value, of operands that have names."""
        return self.load(value) if value.op == "load" else self.operation(value)

    def missing(self, root: Value) -> list[Value]:
        """A value and what it needs, operands first, without what has a name and what has one where it is used."""
        order: dict[Value, None] = {}
        stack = [root]
        while stack:
            value = stack[-1]
            _, operands = self.helper(value)
            needed = [x for x in reversed(operands) if x not in order and not self.has_name(x)]
            if value in order or not needed:
                order[value] = None
                stack.pop()
            else:
                stack += needed
        return list(order)

    def helper(self, value: Value) -> tuple[str, tuple[Value, ...]]:
        """The helper that computes a value of several operations at once, if there is one, and its arguments."""
        if value not in self.helpers:
            self.helpers[value] = helper_of(value) or ("", value.operands)
        return self.helpers[value]

    def has_name(self, value: Value) -> bool:
        """Whether a value has a name, or gets one where it is used: most loads need the number of the point alone."""
        return value in self.names or value.op in ("constant", "index")

    def is_inlined(self, value: Value, text: str) -> bool:
        """Whether an expression stands where it is used, once, instead of a variable."""
        if self.uses[value] != 1 or len(text) > _MOST_INLINED or value in self.typed:
            return False
        # Of a load only where nothing is stored meanwhile; others are computed as int.
        if value.op == "load" and value.attribute.buffer in self.written:
            return False
        # In C++ too it is to be an int.
        if self.is_narrow(value) and any(x.dtype == INT64 and not self.is_narrow(x) for x in value.operands):
            return False
        return value.dtype == BOOL or (value.dtype.kind in "iuf" and value.dtype.itemsize >= 4)

    def assign(self, target: str, value: Value) -> None:
        """Assign a value to a variable, or to an element."""
        text = self.inline(value)
        if text != target:
            self.line(f"{target} = {text};")

    def inline(self, root: Value) -> str:
        """The expression of a value that is used at once; its variable where it has one, or others use it too."""
        if self.has_name(root) or (root.op == "load" and not self.is_inlined(root, "")):
            return self.value(root)
        return self.expression(root)

    def term(self, value: Value) -> str:
        """The expression of a value that is used at once, or its variable where it is long too."""
        if self.has_name(value):
            return self.value(value)
        text = self.expression(value)
        if self.is_inlined(value, text):
            return text
        self.define(value, text)
        return self.names[value]

    def define(self, value: Value, text: str) -> None:
        type = "int" if self.is_narrow(value) else type_name(value.dtype)
        name = self.new("v")
        self.line(f"const {type} {name} = {text};")
        self.names[value] = name
        self.sizes.note(value)

    def grid_index(self, index: Value) -> str:
        """The variable of a grid's loop, from the number of the point."""
        (axis,) = [k for k, loop in enumerate(self.grid) if loop.index is index]
        if self.points == _extent(self.grid[axis]):
            return "i"
        if _extent(self.grid[axis]) == 1:
            return "0"
        below = self.points_of(range(axis + 1, len(self.grid)))
        text = f"i / {below}" if below != "1" else "i"
        if axis:
            text += f" % {self.points_of([axis])}"
        name = self.new(index.attribute)
        self.line(f"const {'int' if self.is_narrow(index) else 'int64'} {name} = {text};")
        return name

    def points_of(self, axes: Iterable[int]) -> str:
        """The number of indices of some of the grid's loops."""
        longer = tuple([axis for axis in axes if _extent(self.grid[axis]) != 1])
        count = prod(_extent(self.grid[axis]) for axis in longer)
        return self.sizes.number(count, "extent" if len(longer) == 1 else "stride", longer)

    def stride(self, axis: int) -> int:
        """Points from one index of a grid's loop to the next."""
        return prod(_extent(loop) for loop in self.grid[axis + 1 :])

    def operation(self, value: Value) -> str:
        helper, arguments = self.helper(value)
        if helper:
            return f"{helper}({', '.join(map(self.value, arguments))})"
        names = [self.sizes.constant(value, k) or self.value(x) for k, x in enumerate(value.operands)]
        narrow = [self.is_narrow(operand) for operand in value.operands]
        if (
            self.is_narrow(value)
            and value.op in INDEX_OPERATIONS
            and all(
                fits or operand.dtype != INT64 for fits, operand in zip(narrow, value.operands, strict=True)
            )
        ):
            return self.index_operation(value, names)
        # Of what is an int each other operation makes a longer number by itself.
        # But the bits and the shift of a long one are wanted: C++ shifts an int by less than 32.
        if value.op in ("bitcast", "shr") and narrow[0]:
            names = [f"(int64){enclose(names[0], 11)}", *names[1:]]
        return expression(value, names)

    def index_operation(self, value: Value, names: Sequence[str]) -> str:
        """An operation on indices, which cannot overflow."""
        if value.op == "convert":
            return f"(int){enclose(names[0], 11)}"
        if value.op == "neg":
            return f"-{enclose(names[0], 11)}"
        if value.op == "div" and names[1] == "1":
            return names[0]
        if value.op in INFIX:
            return infix(INFIX[value.op], *names)
        return expression(value, names)

    def load(self, value: Value) -> str:
        access = value.attribute
        text = f"{access.buffer.name}[{self.offset(offset_of(value), access.buffer)}]"
        if not access.masked:
            return text
        return choose(self.value(value.operands[-1]), text, f"{type_name(value.dtype)}{{}}")

    def offset(self, offset: Affine, buffer: Buffer) -> str:
        """The text of an offset in a buffer, whose values have names."""
        terms = self.merge_terms(offset)
        bound = abs(offset.constant) + sum(abs(f) * self.most(value) for value, _, f in terms)
        # Numbers that are not known to fit are long already, and make the sum long.
        is_wide = bound >= 2**31
        terms = [term for term in terms if term[1] != "0"]
        parts = []
        for value, name, factor in terms:
            if factor != 1:
                parts.append(infix("*", self.stride_in(buffer, factor, name, is_wide), name))
            else:
                parts.append(
                    f"(int64){enclose(name, 11)}" if is_wide and value is not None else enclose(name, 9)
                )
        if len(parts) == 1 and not offset.constant and terms[0][2] == 1 and not is_wide:
            return terms[0][1]
        if offset.constant or not parts:
            parts.append(self.stride_in(buffer, offset.constant, "offset"))
        return " + ".join(parts).replace("+ -", "- ")

    def stride_in(self, buffer: Buffer, number: int, key: str, is_wide: bool = False) -> str:
        """A factor of an offset, or its constant."""
        if buffer.memory is Memory.SHARED and self.has_tiles:
            return str(number)
        return self.sizes.number(number, "offset" if key == "offset" else "stride", (buffer, key), is_wide)

    def merge_terms(self, offset: Affine) -> list[tuple[Value | None, str, int]]:
        """The terms of an offset: values, names and factors; a multiple of the point where all indices make one."""
        terms = dict(offset.terms)
        rows = [(axis, loop.index) for axis, loop in enumerate(self.grid) if loop.extent != 1]
        factors = {terms.get(index, 0) / self.stride(axis) for axis, index in rows}
        first = min(factors, default=0)
        if len(factors) == 1 and first and first == int(first):
            rest = [
                (value, factor) for value, factor in terms.items() if all(value is not x for _, x in rows)
            ]
            return [(None, "i", int(first)), *[(value, self.term(value), f) for value, f in rest]]
        return [(value, self.term(value), factor) for value, factor in terms.items()]

    def most(self, value: Value | None) -> float:
        """The greatest magnitude of an index; 0 for a number that is an int64 anyway."""
        if value is None:
            return self.points
        low, high = self.ranges.of(value)
        return 0 if inf in (-low, high) or not self.is_narrow(value) else max(-low, high)

    # --- loops and stores --------------------------------------------------------------------------------

    def body(self, parts: Sequence[Loop | Store]) -> None:
        for kind, group in groupby(parts, type):
            if kind is Loop:
                for inner in group:
                    assert isinstance(inner, Loop)
                    self.loop(inner)
            else:
                self.stores([part for part in group if isinstance(part, Store)])

    def stores(self, stores: Sequence[Store]) -> None:
        """All that is stored is computed before a store changes what it is computed of."""
        if len(stores) == 1 and stores[0].atomic is None:
            (store,) = stores
            value = self.inline(store.value)
            self.line(f"{store.buffer.name}[{self.offset(store.offset, store.buffer)}] = {value};")
            return
        rows = [(store, self.value(store.value)) for store in stores]
        self.write(rows)

    def write(self, rows: Sequence[tuple[Store, str]]) -> None:
        """Store values that are computed."""
        targets = [f"{store.buffer.name}[{self.offset(store.offset, store.buffer)}]" for store, _ in rows]
        for (store, value), target in zip(rows, targets, strict=True):
            if isinstance(store.atomic, Exchange):
                self.exchange(store.atomic, target, value)
            else:
                self.line(f"{target} = {value};" if store.atomic is None else _atomic(store, target, value))

    def exchange(self, exchange: Exchange, target: str, value: str) -> None:
        """Combine an element with a value by any computation."""
        self.open(f"combine(&{target}, [=]({type_name(exchange.old.dtype)} old) {{")
        self.names.update({exchange.old: "old", exchange.new: value})
        self.line(f"return {self.value(exchange.combined)};")
        self.close("});")

    def loop(self, loop: Loop) -> None:
        if loop.runs or loop.accumulators or loop.prefixes or loop.search or loop.bounds:
            raise LoopError(
                f"no CUDA C++ for a loop that runs by {loop.runs} and leaves more than it carries"
            )
        if loop.extent == 1 and loop.condition is None:
            self.run_once(loop)
            return
        rows = [(carry, self.declare_carry(carry)) for carry in loop.carries]
        if loop.max_iterations == 1 and loop.extent != 1 and not rows and loop.condition is None:
            self.open(f"if ({self.condition(loop)}) {{")
            self.names[loop.index] = "0"
            self.body(loop.body)
            self.close()
        elif (chosen := _find_condition(loop)) is not None and loop.is_of_tile:
            self.open(f"if ({self.value(chosen)}) {{")
            self.iterate(loop, str(loop.max_iterations), rows)
            self.close()
        else:
            self.iterate(loop, self.extent(loop), rows)
        self.names.update({carry.result: name for carry, name in rows})

    def iterate(self, loop: Loop, extent: str, rows: Sequence[tuple[Carry, str]]) -> None:
        """The iterations of a loop, with the variables of its carries."""
        index = self.new(loop.index.attribute)
        number = "int" if self.is_narrow(loop.index) else "int64"
        self.sizes.note_loop(loop)
        if loop.is_of_tile and rows:
            # What is read for a term of a product serves many sums, and the next terms are read meanwhile.
            self.line("#pragma unroll" if len(rows) >= _MANY_CARRIES else "#pragma unroll 4")
        self.open(f"for ({number} {index} = 0; {index} < {extent}; {index}++) {{")
        self.names[loop.index] = index
        for carry, name in rows:
            self.names[carry.argument] = name
        if loop.condition is not None:
            self.line(f"if (!{self.value(loop.condition)}) break;")
            for carry in loop.carries:
                self.value(carry.following)
        self.body(loop.body)
        self.carry_on(rows)
        self.close()

    def extent(self, loop: Loop) -> str:
        """The number of iterations of a loop."""
        self.sizes.note_loop(loop)
        if not isinstance(loop.extent, int):
            return self.value(loop.extent)
        # Threads share loops over the same rows.
        key = loop.runs if loop.runs else loop.index
        return str(loop.extent) if loop.is_of_tile else self.sizes.number(loop.extent, "extent", key)

    def declare_carry(self, carry: Carry) -> str:
        """The variable of a carry, which has its initial value."""
        initial = self.initial(carry)
        name = self.new("carry")
        self.line(f"{type_name(carry.argument.dtype)} {name} = {initial};")
        return name

    def run_once(self, loop: Loop) -> None:
        """The body of a loop of one iteration."""
        self.names[loop.index] = "0"
        self.names.update({carry.argument: self.value(carry.initial) for carry in loop.carries})
        self.body(loop.body)
        self.names.update({carry.result: self.value(carry.following) for carry in loop.carries})

    def condition(self, loop: Loop) -> str:
        """Whether a loop runs, of one that runs once at most."""
        assert isinstance(loop.extent, Value)
        chosen = _find_condition(loop)
        return self.value(loop.extent if chosen is None else chosen)

    def initial(self, carry: Carry) -> str:
        """The initial value of a carry: a constant index may be a size."""
        number = carry.initial
        if number.op == "constant" and number.dtype == INT64 and abs(int(constant_of(number))) < 2**62:
            return self.sizes.number(int(constant_of(number)), "bound", carry.argument)
        return self.term(number)

    def carry_on(self, rows: Sequence[tuple[Carry, str]]) -> None:
        """Assign what the next iteration finds.  What is a carry of this one is kept until all are assigned."""
        variables = {name for _, name in rows}
        if len(rows) == 1:
            self.assign(rows[0][1], rows[0][0].following)
            return
        following = []
        for carry, name in rows:
            new = self.value(carry.following)
            if new in variables and new != name:
                kept = self.new("v")
                self.line(f"const {type_name(carry.argument.dtype)} {kept} = {new};")
                new = kept
            following.append((name, new))
        for name, new in following:
            if new != name:
                self.line(f"{name} = {new};")


def _find_condition(loop: Loop) -> Value | None:
    """The condition on which all iterations of a loop run, and none else; None of other loops."""
    extent = loop.extent
    if not isinstance(extent, Value) or extent.op != "select":
        return None
    condition, *counts = extent.operands
    if any(each.op != "constant" for each in counts):
        return None
    whole, none = map(int, map(constant_of, counts))
    return condition if whole == loop.max_iterations and none == 0 else None


def _extent(loop: Loop) -> int:
    if not isinstance(loop.extent, int):
        raise LoopError("a grid runs a fixed number of points")
    return loop.extent


def _refuse_words(words: Runs, grid: Sequence[Loop]) -> None:
    if any(loop.runs != words for loop in grid) or any(
        each.accumulators or each.carries or each.prefixes or each.search or each.bounds or each.condition
        for each in grid
    ):
        raise LoopError(
            f"no CUDA C++ for an outermost loop that runs by {grid[0].runs}; wanted grid, or grid block"
        )


def _uses_of(phase: Loop) -> tuple[Counter[Value], set[Value]]:
    """Count the uses of each value of a phase, and list those that are needed as variables of their own type."""
    roots: list[Value] = []
    for loop in phase.walk():
        roots += loop.roots()
        roots += [loop.extent] if isinstance(loop.extent, Value) else []
        for accumulator in loop.accumulators:
            roots += [*accumulator.identities, *accumulator.combined, *accumulator.step]
        roots += [carry.initial for carry in loop.carries]
        for prefix in loop.prefixes:
            roots += [prefix.initial, prefix.combined]
        roots += [store.atomic.combined for store in loop.stores() if isinstance(store.atomic, Exchange)]
    values = in_order(*roots)
    uses = Counter([*roots, *[operand for value in values for operand in value.operands]])
    typed = {value.operands[0] for value in values if value.op == "bitcast"}
    # Of what stands in memory the parameters of templates may not know the type.
    templates = [value for value in values if value.op in ("maximum", "minimum", "convert")]
    typed |= {each for value in templates for each in value.operands if each.op in ("load", "argument")}
    return uses, typed


def _buffers_of(kernel: Kernel, phase: Loop) -> tuple[Buffer, ...]:
    """The buffers that a phase reads or writes, in the order of the program."""
    used = {store.buffer for loop in phase.walk() for store in loop.stores()}
    used |= {load.attribute.buffer for load in loads_of(phase)}
    return tuple([each for each in (*kernel.inputs, *kernel.outputs, *kernel.scratch) if each in used])


def _atomic(store: Store, target: str, value: str) -> str:
    """The statement that combines an element with a value."""
    dtype, atomic = store.buffer.dtype, store.atomic
    assert isinstance(atomic, Atomic)
    if atomic is Atomic.ADD and dtype.kind == "f" and dtype.itemsize >= 4:
        return f"atomicAdd(&{target}, {value});"
    if atomic is Atomic.ADD and dtype.kind == "c":
        return f"add_parts(&{target}, {value});"
    if dtype.kind not in "iu":
        raise LoopError(f"no CUDA C++ for an atomic {atomic.value} of {dtype}")
    if dtype.itemsize < 4:
        type = type_name(dtype)
        return (
            f"combine(&{target}, [=]({type} old) {{ return ({type})({_COMBINED[atomic].format(value)}); }});"
        )
    if dtype == np.int64 and atomic is Atomic.ADD:
        return f"atomicAdd((uint64 *)&{target}, (uint64){value});"
    return f"{_ATOMICS[atomic]}(&{target}, {value});"
