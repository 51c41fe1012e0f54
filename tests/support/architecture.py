"""Rules of imports: checks over the source by `ast`, without importing anything.

Every check takes a `Tree` and returns its problems as lines of text, none when all is well, so that
the tests can show on made-up trees that each check is able to fail.
"""

import ast
import graphlib
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

FRONTEND = "xarr"

# Lowest first; a module imports from its own row and the rows above it in this table, never from a
# row below.  A longer pattern wins over a shorter one.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("base", "base.*", "errors", "numpy_errors", "dtypes", "shapes", "tree", "tree_util"),
    # How the members of a distributed program reach one another.
    ("communication", "communication.*"),
    ("ir", "ir.*"),
    ("explanation", "explanation.*"),
    ("backend", "compiler.target"),
    # Loop programs, graphs rewritten before they are grouped, and plans, for no machine in particular.
    (*("compiler", "compiler.loop_ir", "compiler.loop_ir.*", "compiler.functions", "compiler.functions.*"),),
    (
        *("compiler.passes", "compiler.passes.*", "compiler.dynamic", "compiler.dynamic.*"),
        *(
            "compiler.sort_keys",
            "compiler.narrow_integers",
            "compiler.fusion.groups",
            "compiler.fusion.window_work",
        ),
        *("compiler.fusion.scan_windows", "compiler.fusion.scatter_windows"),
        "compiler.fusion.partial_updates",
    ),
    (
        "compiler.schedule",
        "compiler.memory_traffic",
        "compiler.kernel_templates",
        "compiler.symbolic_numbers",
        "compiler.wide_products",
    ),
    ("compiler.while_loops", "compiler.while_loops.*"),
    ("compiler.plan", "compiler.plan.*"),
    ("compiler.fusion", "compiler.fusion.*"),
    (
        *("compiler.limits", "compiler.pipeline", "compiler.programs", "compiler.object_cache"),
        *("compiler.collection", "compiler.processors", "compiler.manual_computations"),
    ),
    ("runtime", "runtime.*"),
    ("lax", "lax.*"),
    ("calls", "calls.*"),
    ("indexing", "indexing.*"),
    ("numpy_api", "numpy_api.*"),
    ("arrays", "arrays.*"),
    # Namespaces beside the main one, and what stands at the edge.
    (
        *(
            "emath",
            "fft",
            "lib",
            "lib.*",
            "linalg",
            "linalg.*",
            "polynomial",
            "polynomial.*",
            "random",
            "random.*",
        ),
        *("distributed", "distributed.*", "doctor", "einops_backend", "pandas_groups", "stablehlo"),
    ),
    ("transforms", "transforms.*"),
    ("chunks", "chunks.*"),
    ("explainers", "explainers.*"),
    ("puzzles", "puzzles.*"),
    ("broadcast_trace", "debug"),
    ("__init__", "__main__"),
    # How loops run on one kind of machine: backends choose, the frontend does not ask.
    ("compiler.schedules", "compiler.schedules.*"),
)

# What a backend may know of the frontend.
OPEN_TO_BACKENDS = (
    *("ir", "ir.*", "dtypes", "shapes", "base.layouts", "backend", "errors", "base.configuration"),
    *(
        "base.progress",
        "base.custom_calls",
        "base.python_build",
        "base.process_rng",
        "base.at_once.complex_quotients",
        "base.at_once.numpy_calls",
        "base.at_once.numpy_warnings",
        "base.frozen_dataclasses",
        "base.host.memory",
        "communication.*",
    ),
    # From groups of ops to loops, which each backend writes in its own language.
    "compiler.*",
)

# Imports for annotations alone that go up: the class of handles, which lower floors return and cannot import, and
# plans and schedules, which a backend is asked for by what runs them.
TYPES_FROM_ABOVE = (
    *(
        ("base.typing", "arrays.array"),
        ("backend", "compiler.plan.program_plan"),
        ("backend", "compiler.schedule"),
    ),
)

# Which modules ask how much broadcasting may stay unsaid: where implicit becomes explicit, and nowhere else.
READ_BROADCASTING = (
    "calls.call_plans",
    "calls.operands",
    "lax.elementwise",
    "numpy_api.linear_algebra.products",
)

# Modules that are no part of the package around them where imports between packages are looked at: the numbers of
# a machine, of which a backend has one, while all else of the compiler stands on backends.
ALONE = ("compiler.target",)
# Modules that lie beside `base`, since users import them, and that count as its own there.
BESIDE_BASE = ("dtypes", "errors", "numpy_errors", "shapes", "tree", "tree_util")

# Words of one kind of machine, in names of code; words of Python's own functions are none of these.
MACHINE_WORDS = re.compile(
    r"(?:^|_)(avx|caches?|cpu|cuda|lanes?|llvm|processors?|simd|threads?|warps?)(?:_|$)", re.I
)
#: What a file has whose names have some, so that no other one is cut in tokens, which takes longest.
MACHINE_WORDS_INSIDE = re.compile(rb"avx|cache|cpu|cuda|lane|llvm|processor|simd|thread|warp", re.I)
NO_MACHINE = {"cache", "cached_property", "lru_cache"}
# What of the compiler may say them: schedules, the numbers of a machine and who asks for them, and the words by which
# a loop says who runs it.  Object code is kept in a cache of files.
NAMES_MACHINES = (
    *("compiler.schedules.*", "compiler.schedule", "compiler.target", "compiler.memory_traffic"),
    *("compiler.loop_ir.loops", "compiler.loop_ir.verifier", "compiler.object_cache", "compiler.processors"),
)

# A function-level import of one of these hides a dependency without saving anything: they are always
# installed.  Optional packages (cupy, mpi4py ...) may be imported where they are used.
ALWAYS_INSTALLED = sys.stdlib_module_names | {"numpy", "ml_dtypes", "typing_extensions"}

# Except these, which take long to import and are needed by few.
COSTLY = (
    *("difflib", "importlib.metadata", "xarr_numpy.compiled"),
    *("xarr.explanation.broadcast", "xarr.explanation.sheets.contraction", "xarr.explanation.values"),
    "xarr.ir.pictures.drawing",
    "xarr.transforms.sharding.split_calls",
    *("xarr.compiler.fusion.form_groups", "xarr.compiler.while_loops.lowering"),
    "xarr_numpy.compiled.schedule",
    *("xarr.puzzles.array_checker", "xarr.puzzles.array_hints"),  # with NumPy, which a browser may lack
)


@dataclass(frozen=True)
class Import:
    """One imported module, seen from the module that imports it."""

    importer: str
    imported: str
    line: int
    in_function: bool
    type_only: bool = False

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


@dataclass(frozen=True)
class Tree:
    """The modules of the frontend and the backends, by dotted name."""

    modules: Mapping[str, Path]
    backends: tuple[str, ...] = ()
    imports: tuple[Import, ...] = field(init=False)
    type_imports: tuple[Import, ...] = field(init=False)

    def __post_init__(self) -> None:
        every = [one for name in self.modules for one in _imports_of(name, self.modules)]
        object.__setattr__(self, "imports", tuple(one for one in every if not one.type_only))
        object.__setattr__(self, "type_imports", tuple(one for one in every if one.type_only))

    @classmethod
    def of_checkout(cls, checkout: Path) -> "Tree":
        """The tree under `checkout`: the package `xarr`, and each package in `backends/`."""
        backends = tuple(sorted(path.parent.name for path in checkout.glob("backends/*/__init__.py")))
        modules = _modules_under(checkout, FRONTEND)
        for backend in backends:
            modules |= _modules_under(checkout / "backends", backend)
        return cls(modules, backends)


def _modules_under(root: Path, package: str) -> dict[str, Path]:
    paths = sorted((root / package).rglob("*.py"))
    return {_dotted_name(path.relative_to(root)): path for path in paths}


def _dotted_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_of(name: str, modules: Mapping[str, Path]) -> Iterator[Import]:
    path = modules[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    visitor = _ImportVisitor(package, modules)
    visitor.visit(ast.parse(path.read_text(encoding="utf-8"), str(path)))
    return (Import(name, *each) for each in visitor.imports)


class _ImportVisitor(ast.NodeVisitor):
    """Collects (imported module, line, inside a function?, under `if TYPE_CHECKING:`?)."""

    def __init__(self, package: str, modules: Mapping[str, Path]) -> None:
        self.package = package
        self.modules = modules
        self.depth = 0
        self.type_only = False
        self.imports: list[tuple[str, int, bool, bool]] = []

    def add(self, imported: str, node: ast.AST) -> None:
        line = getattr(node, "lineno", 0)
        self.imports.append((imported, line, self.depth > 0, self.type_only))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self.absolute(node.module or "", node.level)
        for alias in node.names:
            submodule = f"{base}.{alias.name}"
            self.add(submodule if submodule in self.modules else base, node)

    def absolute(self, module: str, level: int) -> str:
        if level == 0:
            return module
        parents = self.package.split(".")
        parents = parents[: len(parents) - level + 1]
        return ".".join([*parents, module] if module else parents)

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        # Written out only if it ends so, which takes longest.
        own = name in ("import_module", "__import__") and ast.unparse(node.func)
        if own in ("importlib.import_module", "import_module", "__import__") and node.args:
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                self.add(self.absolute(*_split_dots(argument.value)), node)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            self.type_only = True
            for statement in node.body:
                self.visit(statement)
            self.type_only = False
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)

    def visit_function(self, node: ast.AST) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_function


def _split_dots(name: str) -> tuple[str, int]:
    bare = name.lstrip(".")
    return bare, len(name) - len(bare)


def import_cycles(tree: Tree) -> list[str]:
    """One import cycle, function-level imports counted, or nothing."""
    graph: dict[str, set[str]] = {name: set() for name in tree.modules}
    for one in tree.imports:
        if one.imported in tree.modules:
            graph[one.importer].add(one.imported)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        # graphlib lists a cycle from the imported to the importer.
        return ["import cycle: " + " -> ".join(reversed(error.args[1]))]
    return []


def package_cycles(tree: Tree) -> list[str]:
    """One cycle of imports between the folders of the frontend, or nothing; the frontend's `__init__` is above all."""
    graph: dict[str, set[str]] = {}
    for one in tree.imports:
        pair = _folder(one.importer), _folder(one.imported)
        if pair[0] != pair[1] and all(pair) and FRONTEND not in (one.importer, one.imported):
            graph.setdefault(pair[0], set()).add(pair[1])
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return ["cycle of packages: " + " -> ".join(reversed(error.args[1]))]
    return []


def _folder(module: str) -> str:
    """The folder or single module below the frontend that a module is part of; "" outside of the frontend."""
    if _package(module) != FRONTEND:
        return ""
    name = module.removeprefix(f"{FRONTEND}.")
    if name in BESIDE_BASE:
        return "base"
    return name if name in ALONE else name.partition(".")[0]


def layer_of(module: str, layers: Sequence[Sequence[str]] = LAYERS) -> int | None:
    """The row of a frontend module in the table; None if no pattern matches."""
    name = module.removeprefix(FRONTEND).removeprefix(".") or "__init__"
    rows = [(len(p), row) for row, patterns in enumerate(layers) for p in patterns if fnmatchcase(name, p)]
    return max(rows)[1] if rows else None


def upward_imports(tree: Tree, layers: Sequence[Sequence[str]] = LAYERS) -> list[str]:
    """Frontend imports that go up the table of layers, and modules that are not in it."""
    problems = [
        f"{name} is in no layer: add it to a row of LAYERS in tests/support/architecture.py"
        for name in tree.modules
        if _package(name) == FRONTEND and layer_of(name, layers) is None
    ]
    for one in tree.imports:
        if _package(one.importer) == _package(one.imported) == FRONTEND:
            low, high = layer_of(one.importer, layers), layer_of(one.imported, layers)
            if low is not None and high is not None and low < high:
                problems.append(f"{one}, which lies {high - low} layer(s) higher")
    return problems


def upward_type_imports(tree: Tree, layers: Sequence[Sequence[str]] = LAYERS) -> list[str]:
    """Imports for annotations alone that go up the table of layers, beyond `TYPES_FROM_ABOVE`."""
    problems = []
    for one in tree.type_imports:
        low, high = layer_of(one.importer, layers), layer_of(one.imported, layers)
        inside = _package(one.importer) == _package(one.imported) == FRONTEND
        pair = one.importer.removeprefix(f"{FRONTEND}."), one.imported.removeprefix(f"{FRONTEND}.")
        allowed = not inside or pair in TYPES_FROM_ABOVE
        if not allowed and low is not None and high is not None and low < high:
            problems.append(f"{one} for its types, which lies {high - low} layer(s) higher")
    return problems


def shadowed_modules(modules: Mapping[str, object]) -> list[str]:
    """Loaded modules which an attribute of their package hides: `import a.b as c` would give that attribute."""
    inside = {name: name.rpartition(".") for name in modules if _package(name) == FRONTEND and "." in name}
    return [
        f"{name} is hidden by an object of that name in {package}: call the module otherwise"
        for name, (package, _, leaf) in sorted(inside.items())
        if package in modules and getattr(modules[package], leaf, None) is not modules[name]
    ]


def readers_of_broadcasting(tree: Tree) -> list[str]:
    """Modules that read `config.broadcasting` beyond `READ_BROADCASTING`."""
    return [
        f"{module}:{node.lineno} reads {ast.unparse(node)}; only {', '.join(READ_BROADCASTING)} may"
        for module, path in tree.modules.items()
        if not _matches(module, READ_BROADCASTING)
        # Most modules do not have the word, and need not be parsed.
        if "broadcasting" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "broadcasting"
        if ast.unparse(node.value) in ("config", "current", "xarr.config")
    ]


def frontend_imports_of_backends(tree: Tree) -> list[str]:
    """The frontend finds backends by name and imports none."""
    inside = [one for one in tree.imports if _package(one.importer) == FRONTEND]
    return [f"{one}, a backend" for one in inside if _package(one.imported) in tree.backends]


def backend_imports_of_closed_modules(tree: Tree) -> list[str]:
    """List what backends import of the frontend beyond `OPEN_TO_BACKENDS`."""
    outside = [one for one in tree.imports if _package(one.importer) in tree.backends]
    return [
        f"{one}; backends may import {', '.join(OPEN_TO_BACKENDS)}"
        for one in outside
        if _package(one.imported) == FRONTEND and not _is_open(one.imported)
    ]


def backend_imports_of_backends(tree: Tree) -> list[str]:
    """List what backends import of each other: what two of them need lies in the frontend."""
    return [
        f"{one}, another backend; what several backends need belongs to xarr.compiler or xarr.ir"
        for one in tree.imports
        if _package(one.importer) in tree.backends
        and _package(one.imported) in tree.backends
        and _package(one.importer) != _package(one.imported)
    ]


def compiler_names_of_machines(tree: Tree) -> list[str]:
    """Names in the compiler that mean one kind of machine: what knows none serves every backend."""
    return [
        f"{module}:{line} names {word!r}; what a machine has belongs to xarr.compiler.schedules and to Target"
        for module, path in tree.modules.items()
        if module.startswith(f"{FRONTEND}.compiler.") and not _matches(module, NAMES_MACHINES)
        for word, line in _machine_words(path)
    ]


def _machine_words(path: Path) -> Iterator[tuple[str, int]]:
    with path.open("rb") as file:
        if not MACHINE_WORDS_INSIDE.search(file.read()):
            return
        file.seek(0)
        for token in tokenize.tokenize(file.readline):
            is_word = token.type == tokenize.NAME and token.string not in NO_MACHINE
            if is_word and MACHINE_WORDS.search(token.string):
                yield token.string, token.start[0]


def _is_open(module: str) -> bool:
    return _matches(module, OPEN_TO_BACKENDS)


def _matches(module: str, patterns: Sequence[str]) -> bool:
    name = module.removeprefix(f"{FRONTEND}.")
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def needless_function_level_imports(tree: Tree) -> list[str]:
    """Imports inside functions of something that is always there."""
    always = ALWAYS_INSTALLED | {FRONTEND, *tree.backends}
    return [
        f"{one} inside a function; only an optional dependency may be imported there"
        for one in tree.imports
        if one.in_function and _package(one.imported) in always and not one.imported.startswith(COSTLY)
    ]


def _package(module: str) -> str:
    return module.partition(".")[0]
