"""Functions that are written by hand in Python's syntax with machine types, as LLVM IR.

    def step_to(array: ptr, axis: i64, index: i64) -> i64:
        size = array.SIZES.i64[axis]
        if index < 0:
            index += size
        return index * array.STRIDES.i64[axis] if unsigned(index) < size else LEAST

A variable has the type of what it is assigned first, integers are int64 beside nothing that says otherwise, and `/`
rounds them towards 0 as in C.  Pointers and integers are true unless they are 0.  Beside Python's own there are

    array.SIZES, array.SIZES = x            a field, so many bytes behind an address
    sizes.i64[axis], sizes.i64[axis] = n    an element
    array + 8                               an address so many bytes behind another
    over: i32                               a variable without a value; address(over): where it lies
    stack(ptr, 8)                           memory for so many elements, until the function returns
    i64(x), double(x), i1(x)                conversions, of signed integers; bits(x): the bits of a double
    float(x), double(x)                     conversions of floats of 32 and 64 bits
    unsigned(x) < y, >> and /               of unsigned integers
    hold(x, y), release(x, y)               count references to objects of Python
    call(ptr, f, x, y)                      a function at an address, with what it returns
    atomic_load(p), atomic_store(p, x)      an int64 that several threads read and write, in one order for all
    atomic_and(p, x), _sub, _xchg           what was there before
    exchange_if(p, x, y)                    y in place of x, and whether it was x
    goto(slow), label(slow)                 what several ways lead to
    @inline, @exported                      functions that are copied to calls, or found from outside

Outside of functions stand constants, in capital letters, and functions that are defined elsewhere:

    SIZES = 32
    RANK: i32 = 24                          a field of this type, where others are pointers
    def PyTuple_Pack(n: i64, *others) -> ptr: ...

`None` and `null` are Python's object and no address; other names are those of objects outside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from xarr_numpy.compiled.codegen.integer_division import write_float

_FLOATS: Final = ("double", "float")
_ALIGNMENTS: Final = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "float": 4}
_BITS: Final = {"i1": 1, "i8": 8, "i32": 32, "i64": 64, "ptr": 64}
_COUNTS: Final = {"hold": "Py_IncRef", "release": "Py_DecRef"}
_OPERATORS: Final = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "sdiv"} | {
    **{ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "ashr"},
}
_OF_FLOATS: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "sdiv": "fdiv"}
_OF_UNSIGNED: Final = {"sdiv": "udiv", "ashr": "lshr"}
_COMPARISONS: Final = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"} | {
    **{ast.Eq: "eq", ast.Is: "eq", ast.NotEq: "ne", ast.IsNot: "ne"},
}


class _Signature(NamedTuple):
    """The type of a function: of its result and its arguments, and whether others may follow."""

    result: str
    arguments: list[str]
    is_open: bool


class _Value(NamedTuple):
    type: str
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


class _Names(NamedTuple):
    """Meanings of names outside of a function; types: of fields that are no pointers."""

    functions: dict[str, _Signature]
    constants: dict[str, int | float]
    types: dict[str, str]


def compile_functions(text: str) -> str:
    """The functions of a text as LLVM IR, without the objects outside that they refer to."""
    names, lines, own = _Names({}, {}, {}), [], []
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef(name, _, [ast.Expr(ast.Constant())]):
                names.functions[name] = signature = _signature(node)
                types = [*signature.arguments, *(["..."] if signature.is_open else [])]
                lines.append(f"declare {signature.result} @{_symbol(name)}({', '.join(types)})")
            case ast.FunctionDef(name):
                names.functions[name] = _signature(node)
                own.append(node)
            case ast.AnnAssign(ast.Name(name), type, ast.expr() as value):
                names.types[name], names.constants[name] = _type_of(type), ast.literal_eval(value)
            case ast.Assign([ast.Name(name)], value):
                names.constants[name] = ast.literal_eval(value)
    return "\n".join([*lines, *[_TypedFunction(node, names).text() for node in own], ""])


def _signature(node: ast.FunctionDef) -> _Signature:
    result = "void" if node.returns is None else _type_of(node.returns)
    arguments = [_type_of(argument.annotation) for argument in node.args.args]
    return _Signature(result, arguments, node.args.vararg is not None)


def _symbol(name: str) -> str:
    """The name of a function in LLVM IR: LLVM's own have dots."""
    return name.replace("_", ".") if name.startswith("llvm_") else name


def _type_of(node: ast.expr | None) -> str:
    match node:
        case ast.Name(name) | ast.Constant(str(name)):
            return name
    raise TypeError("a type is a name")


def _assigned_names(nodes: Sequence[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Assign([ast.Name(name)]) | ast.AugAssign(ast.Name(name)):
                yield name
            case ast.If(_, body, others) | ast.For(_, _, body, others) | ast.While(_, body, others):
                yield from _assigned_names([*body, *others])


def _is_alone(test: ast.expr) -> bool:
    """Whether a condition is one number, which nothing else decides."""
    match test:
        case ast.Compare(_, [_]) | ast.Name() | ast.Call():
            return True
    return False


class _TypedFunction:
    """The text of one function, as its statements are gone through."""

    def __init__(self, node: ast.FunctionDef, names: _Names) -> None:
        self._node, self._names, self._signature = node, names, _signature(node)
        self._slots: list[str] = []
        self._lines: list[str] = []
        self._variables: dict[str, str] = {}
        self._arguments = {each.arg: _type_of(each.annotation) for each in node.args.args}
        self._count = 0
        self._is_open = True
        #: Where `continue` and `break` go.
        self._loops: list[tuple[str, str]] = []

    def text(self) -> str:
        node = self._node
        assigned = {*_assigned_names(node.body)}
        heads = [f"{type} %{name}" for name, type in self._arguments.items()]
        for name in [name for name in self._arguments if name in assigned]:
            self._store_in(name, _Value(self._arguments[name], f"%{name}"))
        self._run(node.body)
        if self._is_open:
            self._end("ret void" if self._signature.result == "void" else "unreachable")
        words = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
        linkage, inline = (
            "" if "exported" in words else "internal ",
            " alwaysinline" if "inline" in words else "",
        )
        head = (
            f"define {linkage}{self._signature.result} @{node.name}({', '.join(heads)}){inline} nounwind {{"
        )
        return "\n".join([head, *self._slots, *self._lines, "}"])

    # --- blocks ----------------------------------------------------------------------------------------------

    def _new(self) -> str:
        self._count += 1
        return str(self._count)

    def _emit(self, instruction: str) -> None:
        if self._is_open:
            self._lines.append(f"  {instruction}")

    def _end(self, instruction: str) -> None:
        """End a block; what follows without a label is never run."""
        self._emit(instruction)
        self._is_open = False

    def _go(self, block: str) -> None:
        self._end(f"br label %{block}")

    def _begin(self, block: str) -> None:
        if self._is_open:
            self._go(block)
        self._lines.append(f"{block}:")
        self._is_open = True

    def _set(self, type: str, instruction: str) -> _Value:
        name = f"%.{self._new()}"
        self._emit(f"{name} = {instruction}")
        return _Value(type, name)

    # --- memory ----------------------------------------------------------------------------------------------

    def _slot(self, name: str, type: str, count: int = 1) -> str:
        self._slots.append(f"  {name} = alloca [{count} x {type}], align {_ALIGNMENTS.get(type, 8)}")
        return name

    def _declare(self, name: str, type: str) -> str:
        if name not in self._variables:
            self._variables[name] = type
            self._slot(f"%{name}.slot", type)
        return f"%{name}.slot"

    def _store_in(self, name: str, value: _Value) -> None:
        self._store(_Value("ptr", self._declare(name, value.type)), value)

    def _store(self, address: _Value, value: _Value) -> None:
        self._emit(f"store {value}, {address}, align {_ALIGNMENTS.get(value.type, 8)}")

    def _load(self, address: _Value, type: str) -> _Value:
        return self._set(type, f"load {type}, {address}, align {_ALIGNMENTS.get(type, 8)}")

    def _offset(self, address: _Value, type: str, index: _Value) -> _Value:
        return address if index.text == "0" else self._set("ptr", f"getelementptr {type}, {address}, {index}")

    def _locate(self, node: ast.expr) -> tuple[_Value, str]:
        """Where an element or a field lies, and its type."""
        match node:
            case ast.Subscript(ast.Attribute(base, type), index):
                return self._offset(self._value(base), type, self._value(index)), type
            case ast.Attribute(base, name):
                offset = _Value("i64", str(self._names.constants[name]))
                return self._offset(self._value(base), "i8", offset), self._names.types.get(name, "ptr")
        raise TypeError(f"{ast.unparse(node)} is no element")

    # --- statements ------------------------------------------------------------------------------------------

    def _run(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(ast.Call(ast.Name("label"), [ast.Name(name)])):
                self._begin(f"at.{name}")
            case ast.Expr(ast.Call(ast.Name("goto"), [ast.Name(name)])):
                self._go(f"at.{name}")
            case ast.Expr(value):
                self._value(value)
            case ast.Assign([target], value):
                self._assign(target, value)
            case ast.AugAssign(target, operator, value):
                left = ast.Name(target.id) if isinstance(target, ast.Name) else target
                self._assign(target, ast.BinOp(left, operator, value))
            case ast.AnnAssign(ast.Name(name), type, None):
                self._declare(name, _type_of(type))
            case ast.If(test, body, others):
                self._choose(test, body, others)
            case ast.While(test, body):
                self._repeat(body, test)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), bounds), body):
                self._count_up(name, bounds, body)
            case ast.Return(result) if result is not None:
                self._end(f"ret {self._value(result, self._signature.result)}")
            case ast.Return():
                self._end("ret void")
            case ast.Break():
                self._go(self._loops[-1][1])
            case ast.Continue():
                self._go(self._loops[-1][0])
            case _:
                raise TypeError(f"{ast.unparse(node)} is no statement of these functions")

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name(name):
                self._store_in(name, self._value(value, self._variables.get(name)))
            case ast.Tuple(targets):
                made = self._value(value)
                for index, (part, type) in enumerate(
                    zip(targets, made.type.strip("{}").split(", "), strict=True)
                ):
                    assert isinstance(part, ast.Name), "parts of what a function returns are variables"
                    self._store_in(part.id, self._set(type, f"extractvalue {made}, {index}"))
            case _:
                address, type = self._locate(target)
                self._store(address, self._value(value, type))

    def _choose(self, test: ast.expr, body: Sequence[ast.stmt], others: Sequence[ast.stmt]) -> None:
        yes, no, end = (f"{word}.{self._new()}" for word in ("yes", "no", "end"))
        self._branch(test, yes, no if others else end)
        self._begin(yes)
        self._run(body)
        if others:
            if self._is_open:
                self._go(end)
            self._begin(no)
            self._run(others)
        self._begin(end)

    def _repeat(self, body: Sequence[ast.stmt], test: ast.expr, last: ast.stmt | None = None) -> None:
        head, inside, step, end = (f"{word}.{self._new()}" for word in ("head", "body", "step", "end"))
        self._begin(head)
        self._branch(test, inside, end)
        self._begin(inside)
        self._loops.append((step, end))
        self._run(body)
        self._loops.pop()
        self._begin(step)
        if last is not None:
            self._statement(last)
        self._go(head)
        self._begin(end)

    def _count_up(self, name: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        first, stop = bounds if len(bounds) == 2 else (ast.Constant(0), bounds[0])
        count, limit = ast.Name(name), ast.Name(f"{name}.stop")
        self._store_in(name, self._value(first))
        self._store_in(limit.id, self._value(stop))
        step = ast.AugAssign(count, ast.Add(), ast.Constant(1))
        self._repeat(body, ast.Compare(count, [ast.Lt()], [limit]), step)

    # --- conditions ------------------------------------------------------------------------------------------

    def _branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Go where a condition says, without what decides nothing any more."""
        match node:
            case ast.BoolOp(operator, [*values, last]):
                for value in values:
                    further = f"and.{self._new()}"
                    both = (further, no) if isinstance(operator, ast.And) else (yes, further)
                    self._branch(value, *both)
                    self._begin(further)
                self._branch(last, yes, no)
            case ast.UnaryOp(ast.Not(), operand):
                self._branch(operand, no, yes)
            case ast.Compare(left, [first, second], [middle, right]):
                pair = ast.Compare(left, [first], [middle]), ast.Compare(middle, [second], [right])
                self._branch(ast.BoolOp(ast.And(), list(pair)), yes, no)
            case _:
                self._end(f"br {self._truth(self._value(node))}, label %{yes}, label %{no}")

    def _truth(self, value: _Value) -> _Value:
        if value.type == "i1":
            return value
        return self._set("i1", f"icmp ne {value}, {'null' if value.type == 'ptr' else 0}")

    def _select(self, test: ast.expr, on_true: ast.expr, on_false: ast.expr, wanted: str | None) -> _Value:
        if all(isinstance(each, ast.Constant | ast.Name) for each in (on_true, on_false)) and _is_alone(test):
            condition, first = self._truth(self._value(test)), self._value(on_true, wanted)
            return self._set(first.type, f"select {condition}, {first}, {self._value(on_false, first.type)}")
        yes, no, end = (f"{word}.{self._new()}" for word in ("yes", "no", "end"))
        self._branch(test, yes, no)
        self._begin(yes)
        first = self._value(on_true, wanted)
        slot = _Value("ptr", self._slot(f"%.{self._new()}", first.type))
        self._store(slot, first)
        self._go(end)
        self._begin(no)
        self._store(slot, self._value(on_false, first.type))
        self._begin(end)
        return self._load(slot, first.type)

    # --- values ----------------------------------------------------------------------------------------------

    def _value(self, node: ast.expr, wanted: str | None = None) -> _Value:
        """A value; `wanted` is the type of numbers that stand alone."""
        value = self._compute(node, wanted)
        assert wanted in (None, value.type), f"{ast.unparse(self._node)}: {ast.unparse(node)} is {value.type}"
        return value

    def _compute(self, node: ast.expr, wanted: str | None) -> _Value:
        match node:
            case ast.Constant(constant):
                return self._constant(constant, wanted)
            case ast.Name(name):
                return self._look_up(name, wanted)
            case ast.Attribute() | ast.Subscript():
                return self._load(*self._locate(node))
            case ast.UnaryOp(ast.USub(), operand):
                return self._negative(self._value(operand, wanted))
            case ast.UnaryOp(ast.Invert(), operand):
                value = self._value(operand, wanted)
                return self._set(value.type, f"xor {value}, -1")
            case ast.BinOp(left, operator, right):
                return self._operation(left, _OPERATORS[type(operator)], right, wanted)
            case ast.Compare(left, [operator], [right]):
                return self._comparison(left, _COMPARISONS[type(operator)], right)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(ast.Not()):
                return self._select(node, ast.Constant(True), ast.Constant(False), "i1")
            case ast.IfExp(test, on_true, on_false):
                return self._select(test, on_true, on_false, wanted)
            case ast.Call(ast.Name(name), arguments):
                return self._call(name, arguments)
        raise TypeError(f"{ast.unparse(node)} is no value of these functions")

    def _constant(self, value: object, wanted: str | None) -> _Value:
        if value is None:
            return _Value("ptr", "@_Py_NoneStruct")
        if isinstance(value, bool):
            return _Value("i1", str(value).lower())
        if isinstance(value, float) or (isinstance(value, int) and wanted == "double"):
            return _Value("double", write_float(value))
        return _Value(wanted or "i64", str(value))

    def _look_up(self, name: str, wanted: str | None) -> _Value:
        if name in self._variables:
            return self._load(_Value("ptr", f"%{name}.slot"), self._variables[name])
        if name in self._arguments:
            return _Value(self._arguments[name], f"%{name}")
        if name in self._names.constants:
            return self._constant(self._names.constants[name], wanted)
        return _Value("ptr", name if name == "null" else f"@{name}")

    def _negative(self, value: _Value) -> _Value:
        if value.type == "double":
            return self._set(value.type, f"fneg {value}")
        if not value.text.startswith("%"):
            return _Value(value.type, str(-int(value.text)))
        return self._set(value.type, f"sub {value.type} 0, {value.text}")

    def _pair(
        self, left: ast.expr, right: ast.expr, wanted: str | None = None, beside_pointers: str = "ptr"
    ) -> tuple[_Value, _Value, bool]:
        """Two values, of one type but for what is added to pointers, and whether they are unsigned."""
        match left:
            case ast.Call(ast.Name("unsigned"), [own]):
                return (*self._pair(own, right, wanted)[:2], True)
            case ast.Constant() if not isinstance(right, ast.Constant):
                second = self._value(right, wanted)
                return self._value(left, second.type), second, False
        first = self._value(left, wanted)
        return first, self._value(right, beside_pointers if first.type == "ptr" else first.type), False

    def _operation(self, left: ast.expr, word: str, right: ast.expr, wanted: str | None) -> _Value:
        first, second, is_unsigned = self._pair(left, right, None if wanted == "ptr" else wanted, "i64")
        if first.type == "ptr":
            assert word == "add", f"{ast.unparse(left)} is an address, to which numbers are added alone"
            return self._offset(first, "i8", second)
        if is_unsigned:
            word = _OF_UNSIGNED.get(word, word)
        word = _OF_FLOATS[word] if first.type in _FLOATS else word
        return self._set(first.type, f"{word} {first}, {second.text}")

    def _comparison(self, left: ast.expr, word: str, right: ast.expr) -> _Value:
        first, second, is_unsigned = self._pair(left, right)
        if first.type in _FLOATS:
            return self._set("i1", f"fcmp {'une' if word == 'ne' else f'o{word}'} {first}, {second.text}")
        sign = "" if word in ("eq", "ne") else "u" if is_unsigned else "s"
        return self._set("i1", f"icmp {sign}{word} {first}, {second.text}")

    # --- calls -----------------------------------------------------------------------------------------------

    def _call(self, name: str, nodes: Sequence[ast.expr]) -> _Value:
        match name, nodes:
            case "hold" | "release", _:
                for node in nodes:
                    self._emit(f"call void @{_COUNTS[name]}({self._value(node, 'ptr')})")
                return _Value("void", "")
            case "address", [ast.Name(variable)]:
                return _Value("ptr", f"%{variable}.slot")
            case "stack", [ast.Name(type), count]:
                number = self._value(count, "i64").text
                if number.startswith("%"):
                    return self._set("ptr", f"alloca {type}, i64 {number}, align {_ALIGNMENTS.get(type, 8)}")
                return _Value("ptr", self._slot(f"%.{self._new()}", type, int(number)))
            case "atomic_load", [node]:
                return self._set("i64", f"load atomic i64, {self._value(node, 'ptr')} seq_cst, align 8")
            case "atomic_store", [at, node]:
                self._emit(
                    f"store atomic {self._value(node, 'i64')}, {self._value(at, 'ptr')} seq_cst, align 8"
                )
                return _Value("void", "")
            case "atomic_and" | "atomic_sub" | "atomic_xchg", [at, node]:
                pair = f"{self._value(at, 'ptr')}, {self._value(node, 'i64')}"
                return self._set("i64", f"atomicrmw {name[7:]} {pair} seq_cst")
            case "exchange_if", [at, old, new]:
                numbers = [
                    str(self._value(each, kind)) for each, kind in ((at, "ptr"), (old, "i64"), (new, "i64"))
                ]
                made = self._set("{ i64, i1 }", f"cmpxchg {', '.join(numbers)} seq_cst seq_cst")
                return self._set("i1", f"extractvalue {made}, 1")
            case "bits", [node]:
                return self._set("i64", f"bitcast {self._value(node, 'double')} to i64")
            case "call", [ast.Name(type), function, *others]:
                values = [str(self._value(node)) for node in others]
                return self._write_call(type, f"{type} {self._value(function).text}({', '.join(values)})")
            case _ if name in _BITS or name in _FLOATS:
                return self._convert(self._value(nodes[0]), name)
        result, arguments, is_open = self._names.functions[name]
        symbol = _symbol(name)
        kinds = [*arguments, *[None] * (len(nodes) - len(arguments))] if is_open else arguments
        values = [str(self._value(node, kind)) for node, kind in zip(nodes, kinds, strict=True)]
        types = f" ({', '.join([*arguments, '...'])})" if is_open else ""
        return self._write_call(result, f"{result}{types} @{symbol}({', '.join(values)})")

    def _write_call(self, result: str, call: str) -> _Value:
        if result == "void":
            self._emit(f"call {call}")
            return _Value("void", "")
        return self._set(result, f"call {call}")

    def _convert(self, value: _Value, type: str) -> _Value:
        if type == "i1":
            return self._truth(value)
        if "ptr" in (type, value.type):
            word = "inttoptr" if type == "ptr" else "ptrtoint"
        elif {type, value.type} == set(_FLOATS):
            word = "fpext" if type == "double" else "fptrunc"
        elif "double" in (type, value.type):
            word = "sitofp" if type == "double" else "fptosi"
        elif _BITS[type] < _BITS[value.type]:
            word = "trunc"
        else:
            word = "zext" if value.type == "i1" else "sext"
        return value if type == value.type else self._set(type, f"{word} {value} to {type}")
