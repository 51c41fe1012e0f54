"""Modules, functions, regions and operations, in the generic form and in the pretty ones."""

from __future__ import annotations

from typing import Any, Final

from xarr.errors import ParseError, XarrError
from xarr.ir.stablehlo.attribute_syntax import (
    read_attribute,
    read_dictionary,
    read_named,
    read_untyped,
)
from xarr.ir.stablehlo.distributed.mesh_syntax import read_axes, read_sdy_mesh, read_shardings
from xarr.ir.stablehlo.lexer import Lexer, Text, Token
from xarr.ir.stablehlo.pretty_forms import UNNAMED, form
from xarr.ir.stablehlo.syntax_tree import (
    Attribute,
    DynamicType,
    FunctionType,
    ParsedArgument,
    ParsedFunction,
    ParsedOperation,
    ParsedRegion,
    ParsedValue,
    ReadType,
    SourceModule,
)
from xarr.ir.stablehlo.type_syntax import Aliases, read_function_type, read_type, read_types
from xarr.ir.types import TensorType

#: Names that stand without their dialect directly inside a function.
_SHORT: Final = {"return": "func.return", "call": "func.call", "constant": "func.constant"}
_END_OF_HEAD: Final = (":", "{", "}", "")


def read_module(content: str, filename: str = "<stablehlo>") -> SourceModule:
    """The text of a module, or of functions without a module around them, as records.

    Raises ParseError with line and column for anything that is not MLIR, and for several modules in one text.
    """
    return _Parser(Text(content, filename)).module()


class _Parser:
    def __init__(self, text: Text) -> None:
        self.lexer = Lexer(text)
        self.text = text
        self.aliases: Aliases = {}
        self.source = SourceModule(text)

    # --- modules ---

    def module(self) -> SourceModule:
        is_module = False
        while self.lexer.token.kind != "end":
            if self._step_alias() or self._step_resources():
                continue
            if self._is_module():
                if is_module:
                    self.lexer.fail("one module")
                self._wrapped_module()
                is_module = True
            elif is_module or not self._step_function():
                self.lexer.fail("a module or a function")
        if not self.source.functions:
            raise self.text.error("expected a function, got none", max(0, len(self.text.content) - 1))
        return self.source

    def _is_module(self) -> bool:
        return self.lexer.at("module", "builtin.module", '"builtin.module"')

    def _wrapped_module(self) -> None:
        lexer = self.lexer
        is_generic = lexer.advance().kind == "string"
        if is_generic:
            lexer.expect("(")
            lexer.expect(")")
            self._module_name(self._properties().get("sym_name"))
            lexer.expect("(")
        elif lexer.token.kind == "symbol":
            self.source.name = lexer.symbol()
        if lexer.accept("attributes"):
            self._braces()
        lexer.expect("{", "before the functions of the module")
        while not lexer.at("}"):
            if not self._step_function():
                lexer.fail("a function or the end of the module")
        lexer.advance()
        if is_generic:
            lexer.expect(")")
            self._module_name(self._braces().get("sym_name") if lexer.at("{") else None)
            lexer.expect(":")
            read_function_type(lexer, self.aliases)
        self._location()

    def _module_name(self, name: Attribute) -> None:
        if isinstance(name, str):
            self.source.name = name

    def _step_alias(self) -> bool:
        """`#name = attribute` or `!name = type`."""
        token = self.lexer.token
        if token.kind not in ("hash", "bang"):
            return False
        self.lexer.advance()
        self.lexer.expect("=", "after the name of an alias")
        read = read_attribute if token.kind == "hash" else read_type
        self.aliases[token.text] = read(self.lexer, self.aliases)
        return True

    def _step_resources(self) -> bool:
        r"""`{-# dialect_resources: { builtin: { name: "0x…" } } #-}`."""
        if not self.lexer.accept("{-#"):
            return False
        for _ in self.lexer.items("#-}", "after the resources"):
            section = self.lexer.take("word", "a section of resources").text
            self.lexer.expect(":")
            resources = self._resources()
            if section == "dialect_resources":
                for entries in resources.values():
                    self._add_resources(entries)
        return True

    def _resources(self) -> dict[str, Any]:
        self.lexer.expect("{")
        resources: dict[str, Any] = {}
        with self.lexer.deeper():
            for _ in self.lexer.items("}", "after the resources"):
                key = self.lexer.string() if self.lexer.token.kind == "string" else self._key()
                self.lexer.expect(":")
                resources[key] = (
                    self._resources() if self.lexer.at("{") else read_attribute(self.lexer, self.aliases)
                )
        return resources

    def _key(self) -> str:
        return self.lexer.take("word", "the name of a resource").text

    def _add_resources(self, entries: object) -> None:
        if isinstance(entries, dict):
            for name, blob in entries.items():
                if isinstance(blob, str) and blob.startswith("0x"):
                    self.source.resources[name] = blob[2:]

    # --- functions ---

    def _step_function(self) -> bool:
        if self.lexer.at("func.func", "func"):
            function = self._pretty_function()
        elif self.lexer.at('"func.func"'):
            function = self._generic_function(self.operation())
        elif self.lexer.at("sdy.mesh"):
            return self._mesh()
        else:
            return False
        if function.name in self.source.functions:
            raise self.text.error(f"a second function @{function.name}", function.position)
        self.source.functions[function.name] = function
        return True

    def _mesh(self) -> bool:
        """`sdy.mesh @mesh = <["x"=2]> {attributes}`."""
        self.lexer.advance()
        name = self.lexer.symbol()
        self.lexer.expect("=")
        self.source.meshes[name] = read_sdy_mesh(self.lexer)
        if self.lexer.at("{"):
            self._braces()
        self._location()
        return True

    def _pretty_function(self) -> ParsedFunction:
        lexer = self.lexer
        position = lexer.advance().start
        if lexer.at("public", "private", "nested"):
            lexer.advance()
        name = lexer.symbol("the name of the function")
        arguments = self._arguments()
        results: tuple[ReadType, ...] = ()
        if lexer.accept("->"):
            results = self._function_results()
        if lexer.accept("attributes"):
            self._braces()
        body = self.region(arguments) if lexer.at("{") else None
        self._location()
        return ParsedFunction(name, arguments, results, body, position)

    def _function_results(self) -> tuple[ReadType, ...]:
        if not self.lexer.accept("("):
            return (read_type(self.lexer, self.aliases),)
        types = []
        for _ in self.lexer.items(")", "after the types of the results"):
            types.append(read_type(self.lexer, self.aliases))
            if self.lexer.at("{"):
                self._braces()
        return tuple(types)

    def _generic_function(self, operation: ParsedOperation) -> ParsedFunction:
        name, type = operation.attributes.get("sym_name"), operation.attributes.get("function_type")
        if not isinstance(name, str) or not isinstance(type, FunctionType) or len(operation.regions) != 1:
            message = "expected func.func with sym_name, function_type and one region"
            raise self.text.error(message, operation.position)
        (region,) = operation.regions
        arguments = region.arguments
        if not region.operations:
            numbered = enumerate(type.parameters)
            arguments = [ParsedArgument(f"%{index}", each, operation.position) for index, each in numbered]
        if tuple(argument.type for argument in arguments) != type.parameters:
            raise self.text.error("the arguments differ from the function_type", operation.position)
        return ParsedFunction(
            name, arguments, type.results, region if region.operations else None, operation.position
        )

    def _arguments(self) -> list[ParsedArgument]:
        """`(%a: type {attributes} loc(…), …)`; a declaration may leave the names out."""
        lexer = self.lexer
        lexer.expect("(", "before the arguments")
        arguments: list[ParsedArgument] = []
        for _ in lexer.items(")", "after the arguments"):
            token = lexer.token
            name = f"%{len(arguments)}"
            if token.kind == "value":
                name = lexer.advance().text
                lexer.expect(":", f"after {name}")
            arguments.append(ParsedArgument(name, read_type(lexer, self.aliases), token.start))
            if lexer.at("{"):
                self._braces()
            self._location()
        return arguments

    def _location(self) -> None:
        if self.lexer.at("loc") and self.lexer.follows("("):
            self.lexer.advance()
            self.lexer.skip_group()

    def _braces(self) -> dict[str, Attribute]:
        self.lexer.expect("{", "before the attributes")
        return read_dictionary(self.lexer, self.aliases)

    def _properties(self) -> dict[str, Attribute]:
        """`<{name = attribute}>`, if it comes now."""
        if not self.lexer.at("<"):
            return {}
        self.lexer.advance()
        attributes = self._braces()
        self.lexer.expect(">", "after the properties")
        return attributes

    # --- regions ---

    def region(self, arguments: list[ParsedArgument] | None = None) -> ParsedRegion:
        """`{ ^bb0(%a: type): operations }`; with `arguments`, the block has these and no label."""
        lexer = self.lexer
        position = lexer.expect("{", "before the operations").start
        own = list(arguments or ())
        if lexer.token.kind == "caret":
            lexer.advance()
            own = self._arguments() if lexer.at("(") else own
            lexer.expect(":", "after the label of the block")
        operations = []
        with lexer.deeper():
            while not lexer.at("}"):
                if lexer.token.kind == "caret":
                    raise self.text.error(
                        "a second block: branches between blocks are not supported", lexer.token.start
                    )
                operations.append(self.operation())
        lexer.advance()
        return ParsedRegion(own, operations, position)

    # --- operations ---

    def operation(self) -> ParsedOperation:
        """One operation with its results."""
        lexer = self.lexer
        results = self._results()
        if lexer.token.kind == "string":
            operation = self._generic()
        elif lexer.token.kind == "word":
            operation = self._pretty()
        else:
            lexer.fail("an operation")
        operation.results = results
        count = len(operation.result_types)
        if results and sum(number for _, number in results) != count:
            raise self.text.error(
                f"{operation.name} has {count} results, not those named", operation.position
            )
        self._location()
        return operation

    def _results(self) -> list[tuple[str, int]]:
        results: list[tuple[str, int]] = []
        while self.lexer.token.kind == "value":
            name = self._plain(self.lexer.advance())
            results.append(
                (name, self.lexer.integer("the number of results") if self.lexer.accept(":") else 1)
            )
            if not self.lexer.accept(","):
                break
        if results:
            self.lexer.expect("=", "after the names of the results")
        return results

    def _plain(self, token: Token) -> str:
        if "#" in token.text:
            raise self.text.error(f"expected a name without #, got {token.text!r}", token.start)
        return token.text

    def _value(self) -> ParsedValue:
        token = self.lexer.take("value", "a value that starts with %")
        name, _, index = token.text.partition("#")
        if len(index) > 9:
            raise self.text.error(f"there is no result number {index[:20]}", token.start)
        return ParsedValue(name, int(index or 0), token.start)

    def _values(self) -> list[ParsedValue]:
        """`(%a, %b)`."""
        self.lexer.expect("(", "before the operands")
        return [self._value() for _ in self.lexer.items(")", "after the operands")]

    def _generic(self) -> ParsedOperation:
        """`"name"(%a) <{properties}> ({ region }) {attributes} : (types) -> types`."""
        lexer = self.lexer
        position = lexer.token.start
        operation = ParsedOperation(lexer.string(), position, self._values())
        if lexer.at("["):
            lexer.skip_group()
        operation.attributes.update(self._properties())
        if lexer.accept("("):
            operation.regions.append(self.region())
            while lexer.accept(","):
                operation.regions.append(self.region())
            lexer.expect(")", "after the regions")
        if lexer.at("{"):
            operation.attributes.update(self._braces())
        lexer.expect(":", f"before the types of {operation.name}")
        self._signature(operation)
        return operation

    def _signature(self, operation: ParsedOperation) -> None:
        types = read_function_type(self.lexer, self.aliases)
        self._check_count(operation, len(types.parameters))
        operation.operand_types, operation.result_types = types.parameters, types.results

    def _check_count(self, operation: ParsedOperation, count: int) -> None:
        if count != len(operation.operands):
            message = f"{operation.name} has {len(operation.operands)} operands but {count} types of operands"
            raise self.text.error(message, operation.position)

    def _pretty(self) -> ParsedOperation:
        token = self.lexer.advance()
        name = _SHORT.get(token.text, token.text)
        if "." not in name:
            raise self.text.error(f"expected an operation with its dialect, got {name!r}", token.start)
        operation = ParsedOperation(name, token.start)
        special = _SPECIAL.get(name)
        if special is not None:
            special(self, operation)
        else:
            self._regular(operation)
        return operation

    def _regular(self, operation: ParsedOperation) -> None:
        unnamed: list[Attribute] = []
        self._items(operation, unnamed)
        if self.lexer.at("{"):
            operation.attributes.update(self._braces())
        self._finish(operation, unnamed)
        if operation.operands or self.lexer.at(":"):
            self.lexer.expect(":", f"before the types of {operation.name}")
            self._types(operation)
        if self.lexer.at("{"):
            operation.attributes.update(self._braces())

    def _finish(self, operation: ParsedOperation, unnamed: list[Attribute]) -> None:
        row = form(operation.name)
        if len(unnamed) == 1 and not row.positional:
            operation.attributes[UNNAMED] = unnamed[0]
        try:
            row.apply(operation, unnamed)
        except ParseError:
            raise
        except XarrError as error:
            raise self.text.error(f"{operation.name}: {error}", operation.position) from None

    def _items(self, operation: ParsedOperation, unnamed: list[Attribute]) -> None:
        """Operands and attributes, with commas between most of them."""
        lexer = self.lexer
        while not lexer.at(*_END_OF_HEAD) and not (lexer.at("loc") and lexer.follows("(")):
            opened = lexer.token.text
            if opened == "(":
                lexer.advance()
                with lexer.deeper():
                    self._items(operation, unnamed)
                lexer.expect(")", "after the operands")
            elif opened == ")":
                return
            else:
                self._item(operation, unnamed)
            named = lexer.token.kind == "word" and lexer.follows("=")
            if not lexer.accept(",") and not (
                lexer.at("(", "[") or (opened == "(" and named) or opened[:1] in '"@'
            ):
                return

    def _item(self, operation: ParsedOperation, unnamed: list[Attribute]) -> None:
        lexer = self.lexer
        if lexer.token.kind == "value":
            operation.operands.append(self._value())
        elif lexer.token.kind == "word" and lexer.follows("="):
            key, value = read_named(lexer, self.aliases)
            operation.attributes[key] = value
        else:
            unnamed.append(read_untyped(lexer, self.aliases))

    def _types(self, operation: ParsedOperation) -> None:
        lexer = self.lexer
        position = lexer.token.start
        is_group = lexer.at("(")
        left = list(read_types(lexer, self.aliases))
        while not is_group and lexer.accept(","):
            left.append(read_type(lexer, self.aliases))
        right = read_types(lexer, self.aliases) if lexer.accept("->") else None
        if right is not None:
            self._check_count(operation, len(left))
        elif not left:
            raise self.text.error("expected a type", position)
        form(operation.name).set_types(operation, tuple(left), right)

    # --- operations with a form of their own ---

    def _slice(self, operation: ParsedOperation) -> None:
        """`stablehlo.slice %a [0:2, 1:9:2] : (type) -> type`."""
        lexer = self.lexer
        operation.operands.append(self._value())
        lexer.expect("[", "before the ranges")
        rows: list[tuple[int, int, int]] = []
        for _ in lexer.items("]", "after the ranges"):
            start = lexer.integer()
            lexer.expect(":", "between start and limit")
            limit = lexer.integer()
            rows.append((start, limit, lexer.integer() if lexer.accept(":") else 1))
        names = ("start_indices", "limit_indices", "strides")
        operation.attributes.update({name: tuple(row[k] for row in rows) for k, name in enumerate(names)})
        self._tail(operation)

    def _tail(self, operation: ParsedOperation) -> None:
        """`{attributes} : (types) -> types`."""
        if self.lexer.at("{"):
            operation.attributes.update(self._braces())
        self.lexer.expect(":", f"before the types of {operation.name}")
        self._signature(operation)

    def _while(self, operation: ParsedOperation) -> None:
        """`stablehlo.while(%x = %a) : type attributes {…} cond { … } do { … }`."""
        lexer = self.lexer
        lexer.expect("(", "before the carried values")
        names: list[Token] = []
        for _ in lexer.items(")", "after the carried values"):
            names.append(lexer.take("value", "a value that starts with %"))
            lexer.expect("=", f"after {names[-1].text}")
            operation.operands.append(self._value())
        types: list[ReadType] = []
        while lexer.accept("," if types else ":"):
            types.append(read_type(lexer, self.aliases))
        self._check_count(operation, len(types))
        operation.operand_types = operation.result_types = tuple(types)
        if lexer.accept("attributes"):
            operation.attributes.update(self._braces())
        pairs = list(zip(names, types, strict=True))
        for word in ("cond", "do"):
            lexer.expect(word, "before a region of the loop")
            arguments = [ParsedArgument(self._plain(name), type, name.start) for name, type in pairs]
            operation.regions.append(self.region(arguments))

    def _manual_computation(self, operation: ParsedOperation) -> None:
        """`sdy.manual_computation(%a) in_shardings=[…] out_shardings=[…] manual_axes={…} (%b: type) {…} : … -> …`."""
        lexer = self.lexer
        operation.operands = self._values()
        for name in ("in_shardings", "out_shardings"):
            lexer.expect(name, "of a manual_computation")
            lexer.expect("=", f"after {name}")
            operation.attributes[name] = read_shardings(lexer)
        lexer.expect("manual_axes", "of a manual_computation")
        lexer.expect("=", "after manual_axes")
        operation.attributes["manual_axes"] = read_axes(lexer)
        operation.regions.append(self.region(self._arguments()))
        self._tail(operation)

    def _reduce(self, operation: ParsedOperation) -> None:
        """`stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [0] : (types) -> type`.

        Or, with a computation: `… across dimensions = [0] : (types) -> type reducer(%x: t, %y: t) { … }`.
        """
        lexer = self.lexer
        initial: list[ParsedValue] = []
        while not initial or lexer.accept(","):
            lexer.expect("(", "before an operand")
            operation.operands.append(self._value())
            lexer.expect("init")
            lexer.expect(":")
            initial.append(self._value())
            lexer.expect(")", "after an initial value")
        operation.operands += initial
        applied = lexer.advance() if lexer.accept("applies") else None
        lexer.expect("across")
        key, value = read_named(lexer, self.aliases)
        operation.attributes[key] = value
        self._tail(operation)
        operation.regions.append(self._read_applied_op(operation, applied) if applied else self._reducer())

    def _reducer(self) -> ParsedRegion:
        self.lexer.expect("reducer", "and the computation")
        pairs = []
        while self.lexer.at("("):
            position = self.lexer.token.start
            pairs.append(self._arguments())
            if len(pairs[-1]) != 2:
                raise self.text.error("expected two arguments", position)
        return self.region([pair[side] for side in range(2) for pair in pairs])

    def _read_applied_op(self, operation: ParsedOperation, name: Token) -> ParsedRegion:
        """The computation that consists of one operation."""
        types = operation.operand_types or ()
        if name.kind != "word" or len(types) != 2 or not isinstance(types[0], TensorType | DynamicType):
            raise self.text.error("expected the name of an operation that combines one array", name.start)
        scalar = TensorType((), types[0].dtype)
        arguments = [ParsedArgument(f"%{side}", scalar, name.start) for side in ("lhs", "rhs")]
        values = [ParsedValue(argument.name, 0, name.start) for argument in arguments]
        combine = ParsedOperation(
            name.text, name.start, values, {}, [], (scalar, scalar), (scalar,), [("%0", 1)]
        )
        result = ParsedOperation(
            "stablehlo.return", name.start, [ParsedValue("%0", 0, name.start)], {}, [], (scalar,)
        )
        return ParsedRegion(arguments, [combine, result], name.start)


_SPECIAL: Final = {
    "sdy.manual_computation": _Parser._manual_computation,
    "stablehlo.slice": _Parser._slice,
    "stablehlo.while": _Parser._while,
    "stablehlo.reduce": _Parser._reduce,
}
