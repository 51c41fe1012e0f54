"""LLVM IR to machine code for this processor, in memory or as bytes that a cache can keep.

    code = made(ir, ["kernel"])
    code.addresses["kernel"]

One lock guards LLVM.  It is held across a fork, so that a child finds LLVM idle and the lock free.  Threads share the
parts of a long module meanwhile, each of which has a context of its own.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import mmap
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from xarr.compiler import object_cache
from xarr.errors import BackendError
from xarr_numpy import workers
from xarr_numpy.compiled.codegen.module_parts import join_codes, split_codes, split_module
from xarr_numpy.compiled.codegen.slow_paths import call_formulas
from xarr_numpy.processor import PROCESSOR

if TYPE_CHECKING:
    import llvmlite.binding as llvm

#: How hard LLVM's code generator tries, 0 to 3, and where code is wanted soon: then it takes a quarter of the time.
CODEGEN_LEVEL: Final = 2
QUICK_LEVEL: Final = 0

#: Intel's processors on which gathers take several times as long as loads one by one, since microcode of 2023 keeps
#: them from what others have loaded (INTEL-SA-00828).
_SLOW_GATHERS: Final = (
    *("skylake", "skylake-avx512", "cascadelake", "cooperlake", "cannonlake"),
    *("icelake-client", "icelake-server", "tigerlake", "rocketlake"),
)

#: How machine code, its constants and its variables are mapped, on systems that say.
_MAPPINGS: Final = (
    [
        {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, "prot": mmap.PROT_READ | other}
        for other in (mmap.PROT_EXEC, 0, mmap.PROT_WRITE)
    ]
    if hasattr(mmap, "PROT_READ")
    else []
)
#: What LLVM takes beside: bytes at least, and for each byte of a text or of object code.
_LEAST_MEMORY: Final = 2**20
_MEMORY_OF_TEXT: Final = 100
_MEMORY_OF_CODE: Final = 4

_lock: Final = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class Code:
    """Loaded machine code and the addresses of its functions, which are good while this object lives.

    `origin` says to people where it comes from and how long that took, `is_quick` whether it is not optimised.
    """

    origin = "loaded"
    is_quick = False

    def __init__(self, addresses: dict[str, int], resources: Any) -> None:
        self.addresses = addresses
        # Not left to the garbage collector: LLVM must not be busy when another thread forks.
        weakref.finalize(self, _release, resources).atexit = False


#: What code held that nobody uses any more.
_unused: Final[deque[Any]] = deque()


def _release(resources: Any) -> None:
    """Let go of it now, or with the next code where another thread has LLVM: that one may wait for this thread."""
    _unused.append(resources)
    if _lock.acquire(blocking=False):
        try:
            _close_unused()
        finally:
            _lock.release()


def _close_unused() -> None:
    """The caller holds the lock."""
    while _unused:
        _unused.popleft().close()


def _require_memory(nbytes: int, count: int = 1) -> None:
    """Raise BackendError where the system has no memory for so many objects: LLVM would end the process.

    Code in a ring of objects that nobody uses is let go of before.
    """
    for is_last in (False, True):
        try:
            with ExitStack() as mapped:
                for mapping in _MAPPINGS * count:
                    mapped.enter_context(mmap.mmap(-1, nbytes + _LEAST_MEMORY, **mapping))
            return
        except OSError as error:
            if is_last:
                raise BackendError(
                    f"there is no memory for machine code: {error.strerror}; drop functions that are not called any "
                    "more, or allow the process more memory (ulimit -v) or more mappings (sysctl vm.max_map_count)"
                ) from error
        gc.collect()
        with _lock:
            _close_unused()


def target() -> str:
    """The target of code: LLVM's version, the processor and its features; code for another may crash."""
    with _lock:
        machine = Machine.host()
        return f"LLVM {machine.version}, {machine.triple}, {machine.cpu}, {machine.features}"


def has_float16() -> bool:
    """Whether compiled loops can hold float16; without, `load` refuses them."""
    with _lock:
        return Machine.host().has_float16()


def assemble(ir: str, optimise: bool = False, machine: Machine | None = None) -> bytes:
    """Object code for a module in LLVM IR; `optimise` runs LLVM's passes over it before.

    Raises BackendError for text that is not LLVM IR.
    """
    with _lock:
        return (machine or Machine.host()).object_code(ir, optimise)


def assembly(ir: str) -> str:
    """The machine code of a module in LLVM IR as text, for people; raises as `assemble`."""
    with _lock:
        return Machine.host().assembly(ir)


def compile_module(
    ir: str | Callable[[], str],
    names: Iterable[str],
    serial: tuple[str, ...] = (),
    is_quick: bool = False,
    source: tuple[str, ...] = (),
) -> Code:
    """The code of a module in LLVM IR, ready to run: from the cache, if it was made before for such a processor.

    * `serial` - functions whose names end like one of these call many others: calls that say `alwaysinline` become
      copies, and what one stores for the next stays in registers,
    * `is_quick` - that it is to be made soon, and may run longer, unless the cache knows better code; it computes the
      same,
    * `source` - what `ir` makes the module of, where that is a function: then only if the cache does not know these.

    Raises BackendError for text that is not LLVM IR, or lacks one of the functions.
    """
    with _lock:
        Machine.host()  # LLVM's own loading is not the time of any code
    begin = time.perf_counter()
    level = QUICK_LEVEL if is_quick else CODEGEN_LEVEL
    code, origin = _load_cached(ir, list(names), serial, level, source)
    code.origin = f"{origin} in {1e3 * (time.perf_counter() - begin):.1f} ms"
    return code


def repays_quick_code(lines: int, nanoseconds: float) -> bool:
    """Whether a module of so many lines that takes about so long to run gives its first results sooner without
    optimisation.
    """
    return nanoseconds * PROCESSOR.quick_delay < lines * PROCESSOR.optimising_time


def _load_cached(
    ir: str | Callable[[], str],
    names: list[str],
    serial: tuple[str, ...],
    level: int,
    source: tuple[str, ...],
) -> tuple[Code, str]:
    """As `compile_module`, and a text that says where it comes from."""
    cache = object_cache.present()
    parts = (ir,) if isinstance(ir, str) else source
    key = object_cache.key_of(*parts, target(), *serial)
    if cache is not None:
        for known in sorted({CODEGEN_LEVEL, level}, reverse=True):
            object_code = cache.get(object_cache.key_of(key, f"level {known}"))
            if object_code is not None:
                with suppress(BackendError):  # whole, but no object code of ours: made anew and replaced
                    return _load_of_level(object_code, names, known), "read from the kernel cache"
    object_code = _assemble(ir if isinstance(ir, str) else ir(), serial, level)
    if cache is not None:
        cache.put(object_cache.key_of(key, f"level {level}"), object_code)
    made = "made by LLVM without optimisation" if level == QUICK_LEVEL else "made by LLVM"
    return _load_of_level(object_code, names, level), made


def _load_of_level(object_code: bytes, names: list[str], level: int) -> Code:
    code = load(object_code, names)
    code.is_quick = level == QUICK_LEVEL
    return code


def _assemble(ir: str, serial: tuple[str, ...], level: int) -> bytes:
    """Object code for a module with such functions, as `compile_module` says: of its parts, if threads share them."""
    _require_memory(_MEMORY_OF_TEXT * len(ir))
    ir = call_formulas(ir) if level == QUICK_LEVEL else ir
    parts = split_module(ir, min(workers.count(), ir.count("\n") // PROCESSOR.min_part_lines))
    with _lock:
        machine = Machine.host()
        if len(parts) > 1 and machine.emits_in_threads():
            return join_codes(machine.codes_of_parts(parts, serial, level))
        if not serial and level == CODEGEN_LEVEL:
            return assemble(ir)
        return machine.joined_code(ir, serial, level)


def load(object_code: bytes, names: Iterable[str], machine: Machine | None = None) -> Code:
    """Object code made ready to run.  The caller of its functions keeps the result.

    Raises BackendError for bytes that are no object code or lack one of the functions.
    """
    with _lock:
        _close_unused()
        parts = split_codes(object_code)
        _require_memory(_MEMORY_OF_CODE * len(object_code), len(parts))
        return (machine or Machine.host()).load(parts, list(names))


class Machine:
    """A processor, as LLVM sees it: this one, or its family without what `features` leaves out."""

    def __init__(self, cpu: str | None = None, features: str | None = None) -> None:
        try:
            import llvmlite.binding as llvm
        except ImportError as error:
            raise BackendError("compiled loops need llvmlite: pip install 'xarr[jit]'") from error
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._llvm = llvm
        self.version = ".".join(map(str, llvm.llvm_version_info))
        self.triple = llvm.get_process_triple()
        self.cpu = cpu or llvm.get_host_cpu_name()
        if features is None:
            features = llvm.get_host_cpu_features().flatten()
            features += ",+prefer-no-gather" if self.cpu in _SLOW_GATHERS else ""
        self.features = features
        self._emitters: dict[tuple[int, int], llvm.TargetMachine] = {}
        # The linker owns the target machine that it is given.
        # JITLink keeps the sections of an object together; the older linker aborts the process when they come
        # to lie more than 2 GB apart.
        self._linker = llvm.create_lljit_compiler(
            self._target_machine(CODEGEN_LEVEL), use_jit_link=True, suppress_errors=True
        )
        self._libraries = 0

    @staticmethod
    @functools.cache
    def host() -> Machine:
        """The one there is."""
        return Machine()

    def has_float16(self) -> bool:
        """Whether float16 can be converted: x86 needs F16C, which came in 2012."""
        return not self.triple.startswith(("x86_64", "i686")) or "+f16c" in self.features.split(",")

    def _target_machine(self, level: int) -> llvm.TargetMachine:
        target = self._llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="default"
        )

    def _emitter(self, level: int = CODEGEN_LEVEL, number: int = 0) -> llvm.TargetMachine:
        """A generator of code of a level; threads have one each."""
        key = level, number
        if key not in self._emitters:
            self._emitters[key] = self._target_machine(level)
        return self._emitters[key]

    def object_code(self, ir: str, optimise: bool) -> bytes:
        """As `assemble`."""
        with self._module(ir, 2 if optimise else 0) as module:
            return bytes(self._emitter().emit_object(module))

    def joined_code(self, ir: str, serial: tuple[str, ...], level: int = CODEGEN_LEVEL) -> bytes:
        """Object code of a level, after functions were copied to calls in those that are `serial`."""
        with self._module(ir, 0, serial) as module:
            return bytes(self._emitter(level).emit_object(module))

    def emits_in_threads(self) -> bool:
        """Whether llvmlite lets functions be called without its lock."""
        return hasattr(self._llvm.ffi.lib.LLVMPY_TargetMachineEmitToMemory, "_cfn")

    def codes_of_parts(self, parts: Sequence[str], serial: tuple[str, ...], level: int) -> list[bytes]:
        """As `joined_code` of modules, which threads share."""
        # The first generator of a level says to passes what there is, of another thread meanwhile.
        emitters = [self._emitter(level, number + 1) for number in range(len(parts))]
        codes = [b""] * len(parts)

        def emit(_: int, begin: int, end: int) -> None:
            for number in range(begin, end):
                with self._module(parts[number], 0, serial, self._llvm.create_context()) as module:
                    codes[number] = self._emit_unlocked(emitters[number], module)

        workers.run(emit, 0, len(parts), workers.WORTH_A_THREAD)
        return codes

    def _emit_unlocked(self, emitter: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
        """As `emit_object` of an emitter, which would wait for other threads."""
        ffi = self._llvm.ffi
        with ffi.OutputString() as error:
            memory = ffi.lib.LLVMPY_TargetMachineEmitToMemory._cfn(emitter, module, 1, error)
            if not memory:
                raise RuntimeError(str(error))
        start, size = ffi.lib.LLVMPY_GetBufferStart(memory), ffi.lib.LLVMPY_GetBufferSize(memory)
        code = ctypes.string_at(start, size)
        ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)
        return code

    def assembly(self, ir: str) -> str:
        """As the function `assembly`."""
        with self._module(ir, 0) as module:
            return str(self._emitter().emit_assembly(module))

    @contextmanager
    def _module(
        self, ir: str, level: int, serial: tuple[str, ...] = (), context: llvm.ContextRef | None = None
    ) -> Iterator[llvm.ModuleRef]:
        """The module after LLVM's passes of a level, for code of this machine."""
        try:
            with self._llvm.parse_assembly(ir, context) as module:
                module.verify()
                if serial:
                    self._join_functions(module, serial)
                else:
                    self._run_passes(module, level)
                yield module
        except RuntimeError as error:
            raise BackendError(f"LLVM refused a program: {error}") from error

    def _run_passes(self, module: llvm.ModuleRef, level: int) -> None:
        """Level 0 does no more than inline what is marked so."""
        builder = self._llvm.create_pass_builder(self._emitter(), self._options(level))
        builder.getModulePassManager().run(module, builder)

    def _options(self, level: int) -> Any:
        """The passes of a level, without those that lay out loops anew."""
        options = self._llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        return options

    def _join_functions(self, module: llvm.ModuleRef, serial: tuple[str, ...]) -> None:
        """Copy functions to where calls say so, and simplify those whose names end like one of `serial`.

        No pass changes a bit of what is computed.
        """
        builder = self._llvm.create_pass_builder(self._emitter(), self._options(1))
        inlining = self._llvm.create_new_module_pass_manager()
        inlining.add_always_inliner_pass()
        inlining.add_global_dead_code_eliminate_pass()
        inlining.run(module, builder)
        simplification = builder.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration and function.name.endswith(serial):
                simplification.run(function, builder)

    def load(self, parts: Sequence[bytes], names: list[str]) -> Code:
        """As `load`, of the object codes of parts."""
        self._libraries += 1
        builder = self._llvm.JITLibraryBuilder()
        for part in parts:
            builder.add_object_img(part)
        builder.add_current_process()
        for name in names:
            builder.export_symbol(name)
        try:
            tracker = builder.link(self._linker, f"xarr.{self._libraries}")
        except RuntimeError as error:
            raise BackendError(f"LLVM could not load a program: {error}") from error
        return Code({name: tracker[name] for name in names}, tracker)
