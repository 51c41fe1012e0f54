"""The flat Python function that runs a repeated call of a traced function.

It is generated as text, one for each nesting of arguments and results:

    def make(program, explain, device, backend, settings, overridden, T0, O0, P0):
        def replay(args, kwargs):
            if recording or observers or kwargs or len(args) != 2:
                return MISSED
            x0, x1 = args
            ...

It checks that the call has the signature that it was made for, mostly by identity, and returns MISSED if
it has not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from keyword import iskeyword
from typing import Any, Final

import numpy as np

from xarr.arrays.array import Array
from xarr.backend import AbstractBackend
from xarr.base.configuration import current as config
from xarr.base.host_arrays import scalar
from xarr.calls.operands import observers
from xarr.compiler.programs import CompiledGraph
from xarr.dtypes import COMPLEX, EXTENDED_FLOAT, INTEGER, info
from xarr.ir.graph import Leaf, Node, data_of
from xarr.ir.types import TensorType
from xarr.runtime import handles, trace_stack
from xarr.runtime.check_flags import attach_results, flags_of, unread
from xarr.runtime.evaluation import explain
from xarr.transforms.donation import claim, give_away, note_loss
from xarr.transforms.signature import PARTS, BoundCall, Static, TracedArgument, exact
from xarr.transforms.traced import Converted, Traced
from xarr.tree import Structure, flatten, unflatten

Replay = Callable[[tuple[Any, ...], dict[str, Any]], Any]
#: Bytes above which a NumPy array is not copied into a program.
_LARGE: Final = 2**16
#: Arrays and results of which a function is made when a call comes again: it has several lines for each.
_MANY_LEAVES: Final = 256
#: What a replay function returns for a call that it was not made for.
MISSED: Final = object()


def unshare(backend: AbstractBackend, value: Any, lent: tuple[np.ndarray[Any, Any], ...]) -> Any:
    """A result as a buffer that shares no memory with arrays of the caller, who may write to them.

    Of a backend whose buffers lie in the memory of the host.
    """
    host = backend.to_host(value)
    if any(np.may_share_memory(host, array) for array in lent):
        return backend.from_host(host.copy())
    return value


def static_types(types: Sequence[Any]) -> tuple[TensorType | None, ...] | None:
    """The types, None for float; None if one is neither that nor an array's without dynamic dimensions."""
    static = tuple([None if each is float else each for each in types])
    is_static = all(each is None or (type(each) is TensorType and not each.dynamic) for each in static)
    return static if is_static else None


def has_fast_path(call: BoundCall) -> bool:
    """Whether `replay` can be made for calls like this one."""
    return "other" not in call.sources and PARTS not in call.sources


def is_wanted(traced: Traced, call: BoundCall) -> bool:
    """Whether the function is to be made after this call: a long one when such a call has come before."""
    if len(traced.arrays) + len(traced.result_numbers) <= _MANY_LEAVES or call.sources in traced.called:
        return True
    traced.called.add(call.sources)
    return False


def replay(traced: Traced, call: BoundCall) -> tuple[Replay, str]:
    """The function for calls that look like `call`, which gives MISSED for any other, and its text."""
    settings, overridden = config.state()
    compiled = traced.compile()
    is_final = traced.owner.backend.is_final(compiled.program)  # asked before it is read what there is
    known = traced.texts.get(call.sources) or _ReplayWriter(traced, call, is_final).write()
    if is_final:
        traced.texts[call.sources] = known
    text, constants = known
    values = {
        "program": compiled.program,
        "explain": partial(_explain_loss if traced.donation.leaves else explain, compiled=compiled),
        "device": traced.owner,
        "backend": traced.owner.backend,
        "settings": settings,
        "overridden": overridden,
        **constants,
    }
    return _maker(text)(**values), text


def _explain_loss(error: BaseException, compiled: CompiledGraph) -> None:
    """Do what `explain` does, and add that what was donated is gone."""
    try:
        explain(error, compiled)
    except MemoryError as other:
        note_loss(other)
        raise
    note_loss(error)


#: A name within this package, so that the line of a user who calls it counts as the caller.
_FILE: Final = f"{os.path.dirname(os.path.abspath(__file__))}{os.sep}<replay>"


@lru_cache(maxsize=1024)
def _maker(text: str) -> Callable[..., Replay]:
    scope = dict(_SCOPE)
    exec(compile(text, _FILE, "exec"), scope)
    return scope["make"]  # type: ignore[no-any-return]


_SCOPE: Final[dict[str, Any]] = {
    "Array": Array,
    "Leaf": Leaf,
    "Share": handles.Share,
    "scalar_value": handles.scalar_value,
    "new": object.__new__,
    "recording": trace_stack.recording,
    "observers": observers,
    "unread": unread,
    "flags_of": flags_of,
    # Its dict: reading an attribute of an object whose class has `__getattr__` takes three times as long.
    "config": config.__dict__,
    "overrides": config._overrides.get,
    "MISSED": MISSED,
    "unshare": unshare,
    "claim": claim,
    "give_away": give_away,
    "release": handles.release,
    "exact": exact,
    "scalar": scalar,
    "array": np.array,
    "ndarray": np.ndarray,
    "flatten": flatten,
    "unflatten": unflatten,
}


class _ReplayWriter:
    """Writes the text of one replay function and collects the objects that it refers to."""

    def __init__(self, traced: Traced, call: BoundCall, is_final: bool) -> None:
        self.traced = traced
        self.call = call
        self.is_final = is_final
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        #: The names of constants by prefix and identity.
        self._names: dict[str, dict[int, str]] = {}
        self.checks: list[str] = []
        self.leaves = 0
        self.containers = 0
        #: The program as one call, if it is that and gives nothing away.
        self.direct = (
            None if traced.donation.leaves else traced.owner.backend.direct_call(traced.compile().program)
        )

    def write(self) -> tuple[str, dict[str, Any]]:
        self._arguments()
        self._unless("config['_global'] is not settings", "overrides() is not overridden")
        if not self.is_final:
            self._unless("backend.is_final(program)")  # which there is another function for
        self._buffers()
        self._leaves()
        self.lines += [f"{name} = {text}" for name, text in self.traced.definitions]
        for index, number in enumerate(self.traced.numbers):
            self._number(f"c{index}", number)
        self._call()
        self._results()
        names = ", ".join(
            ["program", "explain", "device", "backend", "settings", "overridden", *self.constants]
        )
        body = "\n".join([f"        {line}" for line in self.lines])
        text = f"def make({names}):\n    def replay(args, kwargs):\n{body}\n    return replay\n"
        return text, self.constants

    def _name(self, prefix: str, value: Any) -> str:
        """A name for an object that has no literal."""
        names = self._names.setdefault(prefix, {})
        if id(value) not in names:  # kept among the constants, so that its id is its own
            names[id(value)] = name = f"{prefix}{len(names)}"
            self.constants[name] = value
        return names[id(value)]

    def _unless(self, *conditions: str) -> None:
        """Go on unless one of these conditions holds."""
        self.lines += [f"if {' or '.join(conditions)}:", "    return MISSED"]

    # --- arguments ---------------------------------------------------------------------------------

    def _arguments(self) -> None:
        arguments = self.call.signature.arguments
        count = sum(isinstance(argument.key, int) for argument in arguments)
        names = frozenset(argument.key for argument in arguments if isinstance(argument.key, str))
        keywords = f"kwargs.keys() != {self._name('N', names)}" if names else "kwargs"
        self._unless("recording", "observers", keywords, f"len(args) != {count}")
        values = self._names_of_arguments()
        if count:
            self.lines.append(f"{', '.join([values[index] for index in range(count)])}, = args")
        for argument in arguments:
            if isinstance(argument, TracedArgument):
                self._unpack(argument.structure, values[argument.key])
            else:
                self._static(argument, values[argument.key])

    def _names_of_arguments(self) -> dict[int | str, str]:
        """Expressions for the arguments; one that is a leaf has the leaf's name at once."""
        values: dict[int | str, str] = {}
        leaves = 0
        for argument in self.call.signature.arguments:
            key = argument.key
            structure = argument.structure if isinstance(argument, TracedArgument) else None
            if isinstance(key, str):
                values[key] = f"kwargs[{_key(key, self._name)}]"
            else:
                is_leaf = structure is not None and structure.container is None
                values[key] = f"x{leaves}" if is_leaf else f"a{key}"
            leaves += structure.count if structure else 0
        return values

    def _static(self, argument: Static, value: str) -> None:
        same, equal = self._name("S", argument.value), self._name("E", argument.exact)
        self._unless(f"{value} is not {same} and exact({value}) != {equal}")

    def _unpack(self, structure: Structure, value: str) -> None:
        """Check the nesting of `value` and give its leaves names."""
        if structure.container is None:
            if value != f"x{self.leaves}":
                self.lines.append(f"x{self.leaves} = {value}")
            self.leaves += 1
            return
        if structure.container is type(None):
            self._unless(f"{value} is not None")
            return
        name = f"t{self.containers}"
        self.containers += 1
        self.lines.append(f"{name} = {value}")
        if not structure.is_plain:
            self._flatten(structure, name)
            return
        self._unless(*self._nesting(structure, name))
        for child, way in zip(structure.children, _ways(structure, name, self._name), strict=True):
            self._unpack(child, way)

    def _flatten(self, structure: Structure, name: str) -> None:
        """The leaves of a container that only the functions of its class can take apart."""
        self._unless(f"type({name}) is not {self._name('C', structure.container)}")
        own = [f"x{self.leaves + index}" for index in range(structure.count)]
        self.lines.append(f"l{name}, s{name} = flatten({name})")
        self._unless(f"s{name} != {self._name('U', structure)}")
        self.lines += [f"{', '.join(own)}, = l{name}"] if own else []
        self.leaves += structure.count

    def _nesting(self, structure: Structure, name: str) -> list[str]:
        container = structure.container
        if container is dict:
            keys = self._name("K", frozenset(structure.keys))
            return [f"type({name}) is not dict", f"{name}.keys() != {keys}"]
        if container in (tuple, list):
            kind = "tuple" if container is tuple else "list"
            return [f"type({name}) is not {kind}", f"len({name}) != {len(structure.keys)}"]
        return [f"type({name}) is not {self._name('C', container)}"]

    # --- leaves ------------------------------------------------------------------------------------

    def _leaves(self) -> None:
        pairs = list(enumerate(zip(self.call.sources, self.call.signature.types, strict=True)))
        arrays = [(index, type_) for index, (source, type_) in pairs if source == "Array"]
        if arrays:
            self._unless(*[f"type(x{index}) is not Array" for index, _ in arrays])
        for index, (source, type_) in pairs:
            if source != "Array":
                self._leaf(index, source, type_)
        for index, type_ in arrays:
            self._array(index, type_)
        if not self.traced.owner.backend.is_on_host:  # there arguments may hang on flags of checks
            nodes = "".join([f"n{index}, " for index, _ in arrays])
            self._unless(f"unread and flags_of(({nodes}*{self._name('V', self.traced.captured)},))")

    def _array(self, index: int, type_: Any) -> None:
        x, b, n = f"x{index}", f"b{index}", f"n{index}"
        self.lines += [f"{n} = {x}._shown or {x}._node", f"{b} = {n}.value"]
        self._unless(
            f"{n}.type is not {self._name('T', type_)}",
            f"{n}.device is not device",
            f"{b} is None",
        )

    def _leaf(self, index: int, source: str, type_: Any) -> None:
        x, b = f"x{index}", f"b{index}"
        if source == "ndarray":
            shape, dtype = self._name("H", type_.shape), self._name("D", type_.dtype)
            self._unless(f"type({x}) is not ndarray", f"{x}.shape != {shape}", f"{x}.dtype != {dtype}")
            # A copy: the result may share memory with it, and the caller may write to its own.
            value = x if self._is_lent(index) or not self.traced.owner.backend.is_on_host else f"array({x})"
            door = "from_host" if type_.shape else "from_number"
            self.lines.append(f"{b} = backend.{door}({value})")
        elif source == "generic":
            self._unless(f"type({x}) is not {self._name('G', type_.dtype.type)}")
            self.lines.append(f"{b} = backend.from_number(array({x}))")
        else:
            self._unless(f"type({x}) is not {type_.__name__}")

    def _number(self, buffer: str, number: Converted) -> None:
        """The number as a buffer of an element type; what does not fit there is for `scalar` to refuse."""
        x, kind, dtype = number.text, number.kind, number.dtype
        if not x.isidentifier():
            x = buffer.replace("c", "z")
            self.lines.append(f"{x} = {number.text}")
        d = self._name("D", dtype)
        value = f"array({x}, {d})"
        if dtype in COMPLEX or kind is complex or (kind is int and dtype in EXTENDED_FLOAT):
            value = f"scalar({x}, {d})"
        elif kind is not bool:
            limits = info(dtype)
            python = int if dtype in INTEGER else float
            low, high = self._name("L", python(limits.min)), self._name("L", python(limits.max))
            value += f" if {low} <= {x} <= {high} else scalar({x}, {d})"
        self.lines.append(f"{buffer} = backend.from_number({value})")

    # --- results -----------------------------------------------------------------------------------

    def _buffers(self) -> None:
        """Buffers for the results of a program that is one call."""
        if self.direct is not None:
            make = self._name("M", self.direct.make)
            for index, spec in enumerate(self.direct.specs):
                if spec is not None:
                    arguments = ", ".join([self._name("R", each) for each in spec])
                    self.lines.append(f"v{index} = {make}({arguments})")

    def _call(self) -> None:
        compiled = self.traced.compile()
        buffers = [f"b{index}" for index in self.traced.arrays]
        buffers += [f"c{index}" for index in range(len(self.traced.numbers))]
        buffers += [self._name("B", buffer) for buffer in compiled.hidden]
        values = "".join(f"v{index}, " for index in range(len(self.traced.graph.results)))
        values += "*flags" if compiled.checks is not None else ""
        run = f"program({', '.join(buffers)})"
        idle = [run] if self.traced.graph.ordered else ["pass"]
        call = [f"{values.strip()} = {run}"] if values else idle
        direct, tests = self.direct, []
        if direct is not None:
            made = [f"v{index}" for index, spec in enumerate(direct.specs) if spec is not None]
            tests = [f"if not {self._name('F', direct.run)}({', '.join(buffers + made)}):"]
            handed_on = [
                f"v{index} = {buffers[k]}" for index, k in enumerate(direct.arguments) if k is not None
            ]
            if not direct.holds_lock:
                call, tests = [*tests, f"    {call[0]}", *(["else:"] if handed_on else [])], []
                call += [f"    {line}" for line in handed_on]
        called = [
            *self._read(),
            "try:",
            *[f"    {line}" for line in [*self._claims(), *call]],
            "except BaseException as error:",
            "    explain(error)",
            "    raise",
            *self._releases(),
        ]
        if tests:
            self.lines += [*self._again(self.traced.numbers), *tests]
            called = [f"    {line}" for line in called]
        self.lines += called

        lent = "".join([f"x{index}, " for index in self.traced.arrays if self._is_lent(index)])
        if lent:
            for index in range(len(self.traced.graph.results)):
                self.lines.append(f"v{index} = unshare(backend, v{index}, ({lent.strip()}))")

    def _is_lent(self, index: int) -> bool:
        """Whether the program reads the caller's memory: where a copy takes longer than looking at the results."""
        if self.call.sources[index] != "ndarray" or not self.traced.owner.backend.is_on_host:
            return False
        is_large = self.call.signature.types[index].nbytes > _LARGE
        return is_large and self._has_static_results

    @cached_property
    def _has_static_results(self) -> bool:
        return static_types(self.traced.graph.result_types) is not None

    def _nodes(self) -> list[tuple[int, int]]:
        """Which leaves are Arrays, and their numbers among the arrays."""
        return [pair for pair in enumerate(self.traced.arrays) if self.call.sources[pair[1]] == "Array"]

    def _read(self) -> list[str]:
        """The lines that count the call among the readers of its arguments, and say what its results expose.

        Since a value was read nothing has been called, so that no other thread has taken it.
        """
        again = self._again(self.traced.numbers or self.direct)
        exposed = [
            f"n{index}.exposed = True" for number, index in self._nodes() if self.traced.exposes(number)
        ]
        return [*again, *[f"n{index}.handles += 1" for _, index in self._nodes()], *exposed]

    def _again(self, is_needed: object) -> list[str]:
        """The lines that read the values once more, where something has been called since they were read."""
        leaves = [index for _, index in self._nodes()]
        if not is_needed or not leaves:
            return []
        tests = [f"b{index} is None" for index in leaves]
        return [
            *[f"b{index} = n{index}.value" for index in leaves],
            *[f"if {' or '.join(tests)}:", "    return MISSED"],
        ]

    def _claims(self) -> list[str]:
        donation = self.traced.donation
        leaves = [index for index in donation.leaves if self.call.sources[index] == "Array"]
        taker = self._name("W", donation.taker) if leaves else ""
        pairs = "".join([f"(x{index}, n{index}), " for index in leaves])
        gifts = [f"give_away(({pairs.strip()}), {taker})"] if leaves else []
        return [*gifts, *[f"claim(n{index}, device, {taker})" for index in leaves]]

    def _releases(self) -> list[str]:
        lines = [
            f"    release(n{index})" if index in self.traced.donation.leaves else f"    n{index}.handles -= 1"
            for _, index in self._nodes()
        ]
        return ["finally:", *lines] if lines else []

    def _results(self) -> None:
        results, backend = self.traced.graph.results, self.traced.owner.backend
        for number, index in enumerate(self.traced.result_numbers):
            node = results[index]
            if backend.computes_small_ops and isinstance(node.type, TensorType) and node.type.is_plain:
                self.lines += self._plain_result(number, index, node)
            else:
                self.lines += self._result(number, index, node)
        compiled = self.traced.compile()
        if compiled.checks is not None:
            nodes = "".join([f"m{number}, " for number in range(len(self.traced.result_numbers))])
            keep = self._name("F", partial(attach_results, compiled.checks, self.traced.result_numbers))
            self.lines.append(f"{keep}(({nodes.rstrip()}), flags, device)")
        names = iter([f"y{number}" for number in range(len(self.traced.result_numbers))])
        self.lines.append(f"return {self._pack(self.traced.structure, names)}")

    def _plain_result(self, number: int, index: int, node: Node) -> list[str]:
        """The lines that make an Array of a small value, without a node."""
        y = f"y{number}"
        value = f"v{index}" if node.shape else f"scalar_value(v{index})"
        return [
            f"{y} = new(Array)",
            f"{y}._shown = None",
            f"{y}._value = {value}",
            f"{y}._device = device",
            f"{y}._location = {self._name('P', node._location)}",
        ]

    def _result(self, number: int, index: int, node: Node) -> list[str]:
        """The lines that make an Array of a value, with its node."""
        m, s, y = f"m{number}", f"s{number}", f"y{number}"
        return [
            f"{m} = new(Leaf)",
            f"{m}.op = {self._name('O', data_of(node.type))}",
            f"{m}.type = {self._name('T', node.type)}",
            f"{m}.value = v{index}",
            f"{m}.device = device",
            f"{m}.exposed = {self.traced.is_exposed(index)}",
            f"{m}.handles = 1",
            f"{m}._location = {self._name('P', node._location)}",
            f"{s} = new(Share)",
            f"{s}.node = {m}",
            f"{y} = new(Array)",
            f"{y}._share, {y}._shown, {y}._value = {s}, {m}, None",
        ]

    def _pack(self, structure: Structure, names: Iterator[str]) -> str:
        """The expression for a result of this structure."""
        container = structure.container
        if container is None:
            return next(names)
        if container is type(None):
            return "None"
        if not structure.is_plain:
            leaves = "".join([f"{next(names)}, " for _ in range(structure.count)])
            return f"unflatten({self._name('U', structure)}, ({leaves.rstrip()}))"
        inner = [self._pack(child, names) for child in structure.children]
        if container is tuple:
            return f"({''.join(f'{each}, ' for each in inner).rstrip()})"
        if container is list:
            return f"[{', '.join(inner)}]"
        if container is dict:
            keys = [_key(key, self._name) for key in structure.keys]
            return f"{{{', '.join(f'{key}: {each}' for key, each in zip(keys, inner, strict=True))}}}"
        fields = [
            f"{key}={each}" if _is_plain(key) else f"**{{{self._name('K', key)}: {each}}}"
            for key, each in zip(structure.keys, inner, strict=True)
        ]
        return f"{self._name('C', container)}({', '.join(fields)})"


def _is_plain(key: Any) -> bool:
    """Whether a name may be written into the text: the fields of a class may be any strings, of any class."""
    return type(key) is str and key.isidentifier() and not iskeyword(key)


def _key(key: Any, name: Callable[[str, Any], str]) -> str:
    """A key as an expression: never the text that a class of the user's prints."""
    return repr(key) if type(key) in (str, int) else name("K", key)


def _ways(structure: Structure, value: str, name: Callable[[str, Any], str]) -> list[str]:
    """The expressions for the children of a container that is called `value`."""
    container = structure.container
    assert container is not None
    if container is dict:
        return [f"{value}[{_key(key, name)}]" for key in structure.keys]
    if issubclass(container, tuple | list):
        return [f"{value}[{index}]" for index in range(len(structure.keys))]
    return [
        f"{value}.{key}" if _is_plain(key) else f"getattr({value}, {name('K', key)})"
        for key in structure.keys
    ]
