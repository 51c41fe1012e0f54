"""Ops on small arrays with values, computed when they are recorded.

The rule: an op is computed at once if

* one of its operands has a value, and each of the others too or by a short chain of such ops, all on one device, whose
  backend has a function for it (`AbstractBackend.eager_function`); NumPy's backend has, others record.  Where none has
  one, the op ends a long chain of constants, which what follows would not look through.  An operand without a value
  that hangs on some thousand such ops alone is evaluated first; for a write and a mask one of larger arrays, too,
* it is of a kind in `_OPS`, which never fails, has no effects, and takes about as long as its arrays are large, and
  neither an operand nor the result is larger than `Target.max_eager_bytes`, but for operands of products of what a
  BLAS multiplies, of which large constants are evaluated first; a power if all its operands have values,
  since NumPy squares where it sees that all exponents are one 2, which it does not of what was computed before,
* no function is being recorded in any thread, no check of every op is asked for (`config.debug_nans`,
  `config.debug_overflow`), `config.fusion` is not "compiled", and `config.small_arrays` is "eager".

The result is what evaluation would give later, bit for bit as long as no group of ops would have been compiled, and a
leaf with the line that made it; of an op with several results all are.  Ops on larger arrays stay recorded and are
fused; so do ops on constants alone, in short chains, which functions that are recorded later compute inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from xarr import backend as backends
from xarr.base.configuration import current as config
from xarr.base.typing import Array
from xarr.compiler.pipeline import make_program
from xarr.compiler.target import Target
from xarr.errors import XarrError
from xarr.ir import ops
from xarr.ir.device import Device
from xarr.ir.graph import Donated, Graph, Node, element_types, parameter
from xarr.ir.op import Op, infer_type
from xarr.ir.ops.elementwise import Elementwise
from xarr.ir.source import caller
from xarr.ir.types import TensorType, Type
from xarr.runtime.evaluation import run_one
from xarr.runtime.handles import wrap, wrap_leaf
from xarr.runtime.live_values import constants
from xarr.runtime.trace_stack import recording

#: Ops of one operand to apply one after the other, each with the type that it gives.
Steps: TypeAlias = tuple[tuple[Op, TensorType], ...]

Location: TypeAlias = tuple[CodeType, int] | None

#: Stands in keys for functions of ops that may have several results.
_SEVERAL: Final = "several"
#: The kinds of ops that are computed at once.
_OPS: Final = (
    *(Elementwise, ops.Select, ops.Clamp, ops.Convert, ops.BitcastConvert, ops.ReducePrecision),
    *(
        ops.BroadcastInDim,
        ops.Concatenate,
        ops.Iota,
        ops.Pad,
        ops.Reshape,
        ops.Reverse,
        ops.Slice,
        ops.Transpose,
    ),
    *(ops.DynamicSlice, ops.DynamicUpdateSlice, ops.Gather, ops.Scatter),
    *(ops.DotGeneral, ops.Reduce, ops.ReduceWindow, ops.Sort, ops.OptimizationBarrier),
    *(ops.Fft, ops.Cholesky, ops.TriangularSolve, ops.RngBitGenerator),
)
#: Bytes of a result that is too large on every backend: those of a target are no more.
MOST_BYTES: Final = Target.max_eager_bytes
#: Bytes of a larger array that is computed where a write to it, or a mask that selects, wants its values.
MOST_COMPUTED: Final = 2**26
#: Bytes of larger arrays without values that a small one hangs on, which is evaluated as it is computed with: those of
#: an op or two.  What more ops make is left to be fused with what follows.
MOST_BETWEEN: Final = 2**20
#: The codes of the element types that a BLAS multiplies.
_BLAS: Final = frozenset("fdFD")
#: Dimensions of a result that any NumPy can have.
_MOST_DIMENSIONS: Final = 32
#: Ops that a graph may have which is evaluated because an op is computed with its result, and of which kinds.
_MOST_EVALUATED: Final = 2048
_KNOWN: Final = (*_OPS, ops.Constant, ops.Tuple, ops.GetTupleElement)
#: Pending nodes that hang on other ops, or on arrays of more bytes than these.
_recorded: Final[WeakKeyDictionary[Node, int]] = WeakKeyDictionary()
#: Functions that are kept.
_FUNCTIONS_KEPT: Final = 4096
#: Ops of the longest chain without a value that is computed when an op beside it is.
_DEEPEST: Final = 8
#: Bytes, and elements, from which NumPy lets other threads run while it computes.
_MIN_SHARED_BYTES: Final = 2**10
_MIN_SHARED_ELEMENTS: Final = 500


class SmallOp:
    """An op on operands of some types: its function, the type of its result, and whether that may be a view.

    Of an op with several results the type is that of their tuple.  ufunc: as in `EagerFunction`.
    """

    __slots__ = ("call", "is_shared", "is_view", "type", "ufunc")

    def __init__(
        self, call: Callable[..., Any], type: Any, is_view: bool, is_shared: bool, ufunc: Any = None
    ) -> None:
        self.call, self.type, self.is_view, self.is_shared = call, type, is_view, is_shared
        self.ufunc = ufunc


class SmallCall:
    """A function of NumPy's that computed an op for operands of some types, to be called for others of these types.

    state: the settings, as `state_at_once` has them; device: that of the operands, or of the array beside a number.
    """

    __slots__ = ("call", "device", "state", "type")

    def __init__(self, state: object, device: Device, small: SmallOp) -> None:
        self.state, self.device = state, device
        self.call, self.type = small.call, small.type

    def one(self, node: Node, location: Location) -> Array | None:
        """The result for an operand that has a value on the device; None for another one."""
        value, device = node.value, self.device
        if value is None or node.device is not device:
            return None
        return wrap_leaf(self.type, self.call(value), device, False, location)

    def two(self, first: Node, second: Node, location: Location) -> Array | None:
        """As `one`, for two operands."""
        left, right, device = first.value, second.value, self.device
        if left is None or right is None or first.device is not device or second.device is not device:
            return None
        return wrap_leaf(self.type, self.call(left, right), device, False, location)

    def compute_beside(
        self, node: Node, number: ops.Constant, is_first: bool, location: Location
    ) -> Array | None:
        """As `one`, for an operand and a constant without dimensions, before it or after it."""
        value, device = node.value, self.device
        if value is None or node.device is not device:
            return None
        node.handles += 1  # so that nobody writes over it meanwhile
        try:
            if node.value is not value:  # a call in another thread was given the Array just now
                return None
            result = self.call(number.array, value) if is_first else self.call(value, number.array)
        finally:
            node.handles -= 1
        return wrap_leaf(self.type, result, device, False, location)


def ufunc_of(table: SmallOps, key: object, node: Node) -> Any:
    """NumPy's ufunc that computes the op of a key for arrays of any shapes, as it has just done beside `node`."""
    device = node.device
    small = None if device is None else table.get((key, device.committed))
    return None if small is None else small.ufunc


def known_ufunc(table: SmallOps, op: Op, types: tuple[TensorType, ...], device: Device) -> Any:
    """NumPy's ufunc that computes an op for operands of these types on a device; None if it is no such one."""
    key = (op, device.committed, *types)
    small = table[key] if key in table else _keep(table, key, op, types, device)
    return None if small is None else small.ufunc


def small_call(table: SmallOps, key: object, *nodes: Node | None) -> SmallCall | None:
    """The function that has just computed the op of a key for `nodes`, None for a number among them.

    None for one that is to be looked up each time: of a view, and where NumPy lets others run meanwhile.
    """
    state = state_at_once()
    (device, *others) = {node.device for node in nodes if node is not None}
    small = None if device is None or others else table.get((key, device.committed))
    if device is None or small is None or state is None or small.is_view or small.is_shared:
        return None
    return SmallCall(state, device, small)


#: By the op, the types of its operands and the device: what computes it, None for an op that is recorded.
SmallOps = dict[tuple[Any, ...], SmallOp | None]

_tables: Final[dict[str, SmallOps]] = {"auto": {}, "off": {}}
#: The settings by identity, and the functions in force under them.
_known: tuple[tuple[object, object], SmallOps | None] = ((None, None), None)


def small_ops() -> SmallOps | None:
    """The functions of ops that are computed at once under the settings in force; None if ops are recorded."""
    if recording:
        return None
    state, table = _known
    return table if config.is_in(state) else _look_up()[1]


def records_all() -> bool:
    """Whether under the settings in force no op is computed at once."""
    state, table = _known
    return (table if config.is_in(state) else _look_up()[1]) is None


def is_few_pending(node: Node) -> bool:
    """Whether a node has few elements and no value: one that ops beside it may ask for before they are recorded."""
    return node.value is None and node.type.nbytes <= MOST_BYTES


def state_at_once() -> tuple[object, object] | None:
    """The settings in force, by identity, if ops are computed at once under them and nothing forbids it now."""
    if recording:
        return None
    state, table = _known
    if not config.is_in(state):
        state, table = _look_up()
    return None if table is None else state


def _look_up() -> tuple[tuple[object, object], SmallOps | None]:
    """The settings of this thread and the functions under them; what is known may be another thread's by then."""
    global _known
    state = config.state()
    settings = config.now()
    is_eager = settings["small_arrays"] == "eager" and not config.debugging()
    table = _tables.get(settings["fusion"]) if is_eager else None
    _known = state, table
    return state, table


def apply_op(
    op: Op, operands: tuple[Node, ...], type: Type | None = None, location: tuple[CodeType, int] | None = None
) -> Array:
    """An Array of `op` over `operands`: with its value if the rule says so, else it shows a new node.

    Arguments and errors as those of `Node`.
    """
    table = None if type is not None and type.nbytes > MOST_BYTES else small_ops()
    if table is not None:
        array = compute(table, op, operands, location)
        if array is not None:
            return array
    return wrap(Node(op, operands, type, location or caller()))


def compute(
    table: SmallOps,
    op: Op,
    operands: tuple[Node, ...],
    location: tuple[CodeType, int] | None = None,
    steps: tuple[Steps, ...] = (),
    steps_key: object = None,
) -> Array | None:
    """An Array with the value of `op` over `operands`; None if the op is to be recorded.

    steps: what is applied to each operand first, conversions and broadcasts by NumPy's rule; steps_key: stands for the
    op, the steps and the types of the operands in keys, by its identity.
    """
    device: Device | None = None
    values: list[Any] = []
    for node in operands:
        value, own = node.value, node.device
        if value is None or own is None or (own is not device and device is not None):
            device, values = _values_of(table, op, operands)
            break
        device = own
        values.append(value)
    if device is None or not device.backend.computes_small_ops:
        return None
    committed = device.committed
    key = (op, committed, *[node.type for node in operands]) if steps_key is None else (steps_key, committed)
    try:
        small = table[key]
    except KeyError:
        small = _keep(table, key, op, tuple([node.type for node in operands]), device, steps)
    if small is None:
        return None
    value = _call_as_reader(small, operands, values) if small.is_shared else small.call(*values)
    if small.is_view and not _expose(operands):
        return None
    return wrap_leaf(small.type, value, device, small.is_view, location or caller())


def compute_results(op: Op, operands: tuple[Node, ...], count: int) -> list[Array] | None:
    """Arrays with the first `count` results of an op that may have several; None if it is to be recorded."""
    table = small_ops()
    if table is None or not isinstance(op, _OPS):
        return None
    device, values = _values_of(table, op, operands)
    if device is None:
        return None
    types = tuple([node.type for node in operands])
    key = (_SEVERAL, op, device.committed, *types)
    try:
        small = table[key]
    except KeyError:
        small = _keep(table, key, op, types, device, several=True)
    if small is None:
        return None
    value = _call_as_reader(small, operands, values)
    if small.is_view and not _expose(operands):
        return None
    location = caller()
    if isinstance(small.type, TensorType):
        return [wrap_leaf(small.type, value, device, small.is_view, location)]
    rows = list(zip(small.type.elements, value, strict=True))[:count]
    return [wrap_leaf(type, each, device, small.is_view, location) for type, each in rows]


def _values_of(table: SmallOps, op: Op, operands: tuple[Node, ...]) -> tuple[Device | None, list[Any]]:
    """The values of the operands and the device that has them; no device if `op` is to be recorded."""
    device: Device | None = None
    values: list[Any] = []
    types = [node.type for node in operands]
    most = most_operand_bytes(op, types)
    if max([type.nbytes for type in types], default=0) > most:
        return None, values
    for node in operands:
        if node.value is None and node.type.nbytes > MOST_BYTES:
            if _is_of_small_ops(node, most, is_constant=True):
                run_one(node, backends.default_device() if node.device is None else node.device.committed)
        elif node.device is None and node.depth >= _DEEPEST:
            _evaluate_if_small(node, backends.default_device())
        own = node.device
        if own is not device and own is not None:
            if device is not None and own.committed is not device.committed:
                return None, values
            device = own if device is None else own.committed
    if device is None or not device.backend.computes_small_ops:
        return None, values
    has_value = False
    for node in operands:
        value = node.value
        # A long chain of constants ends in a value: what follows would not look through it.
        is_long = node.depth >= _DEEPEST
        if value is None and type(op) is ops.Power:
            return None, values
        if value is None and (value := pending_value(table, node, device)) is None:
            return None, values
        has_value = has_value or is_long or node.value is not None
        values.append(value)
    return (device if has_value else None), values


def compute_beside_number(
    table: SmallOps,
    op: Op,
    node: Node,
    number: ops.Constant,
    is_first: bool,
    location: tuple[CodeType, int] | None,
    steps: tuple[Steps, ...],
    steps_key: object,
) -> Array | None:
    """As `compute`, for a value and a constant without dimensions, before it or after it."""
    value, device = node.value, node.device
    if value is None or device is None or not device.backend.computes_small_ops:
        return None
    key = (steps_key, device.committed)
    try:
        small = table[key]
    except KeyError:
        types = (number.type, node.type) if is_first else (node.type, number.type)
        small = _keep(table, key, op, types, device, steps)
    if small is None:
        return None
    node.handles += 1  # so that nobody writes over it meanwhile
    try:
        if node.value is not value:  # a call in another thread was given the Array just now
            return None
        result = small.call(number.array, value) if is_first else small.call(value, number.array)
        if small.is_view:
            node.exposed = True
    finally:
        node.handles -= 1
    return wrap_leaf(small.type, result, device, small.is_view, location)


def _expose(operands: tuple[Node, ...]) -> bool:
    """Say of operands that a result may be their memory; False if one was just donated to a call in another thread."""
    for node in operands:
        node.exposed = True
        if type(node.op) is Donated:  # whose memory that call may write to
            return False
    return True


def _call_as_reader(small: SmallOp, operands: tuple[Node, ...], values: list[Any]) -> Any:
    """Call while nobody writes over the operands: another thread may run meanwhile."""
    for node in operands:
        node.handles += 1
    try:
        return small.call(*values)
    finally:
        for node in operands:
            node.handles -= 1


def pending_value(table: SmallOps, node: Node, device: Device, most_bytes: int = MOST_BYTES) -> Any:
    """The value on `device` of a node that has none yet, computed now; None if it hangs on more than small ops.

    A node made of constants alone by a short chain stays as it is, since functions that are recorded later compute it
    inside; its value is not to be written to.  Any other is evaluated as if its value were asked for.
    """
    value = _chain_value(table, node, device)
    if value is None and _evaluate_if_small(
        node, device if node.device is None else node.device.committed, most_bytes
    ):
        value = node.value if node.device is not None and node.device.committed is device.committed else None
    return value


def _evaluate_if_small(node: Node, device: Device, most_bytes: int = MOST_BYTES) -> bool:
    """Evaluate a pending node of ops that are computed at once on arrays of at most so many bytes; whether it was one.

    Else all that is computed with it later would be recorded too.
    """
    if not device.backend.computes_small_ops or not _is_of_small_ops(node, most_bytes):
        return False
    run_one(node, device)
    return node.value is not None


def _is_of_small_ops(node: Node, most_bytes: int, is_constant: bool = False) -> bool:
    """Whether a pending node hangs on values and such ops alone; which small one does not is known from then on.

    is_constant: whether it may hang on constants alone, so on no values.
    """
    if type(node.type) is TensorType and node.type.nbytes > most_bytes:
        return False
    between = MOST_BETWEEN
    seen: set[Node] = set()
    stack = [node]
    while stack:
        each = stack.pop()
        if each in seen or (each.value is not None and type(each.op) is not Donated):
            if is_constant and each.value is not None:
                return False
            continue
        seen.add(each)
        is_small = all(
            [
                type(own) is TensorType
                and own.nbytes <= max(most_bytes, MOST_BETWEEN)
                and own.rank <= _MOST_DIMENSIONS
                for own in element_types(each.type)
            ]
        )
        if each.type.nbytes > most_bytes and each.device is not None:  # not made of constants alone
            between -= each.type.nbytes
        is_known = isinstance(each.op, _KNOWN) and is_small and between >= 0 and not each.traced
        if not is_known or _recorded.get(each, -1) >= most_bytes or len(seen) > _MOST_EVALUATED:
            _recorded[node] = max(most_bytes, _recorded.get(node, -1))
            return False
        stack += each.operands
    return True


def _chain_value(table: SmallOps, node: Node, device: Device) -> Any:
    """As `pending_value`, of a short chain of ops, each of which is computed by itself."""
    op = node.op
    if type(op) is ops.Constant and not op.type.shape:
        return op.array
    if node.traced or node.depth > _DEEPEST:
        return None
    owner, value = constants.get(node, (None, None))
    if owner is device.committed:
        return value
    values = []
    for operand in node.operands:
        value = operand.value
        if value is None:
            value = None if type(op) is ops.Power else _chain_value(table, operand, device)
            if value is None:
                return None
        values.append(value)
    types = tuple([operand.type for operand in node.operands])
    key = (op, device.committed, *types)
    try:
        small = table[key]  # in one step, as another thread may clear the table
    except KeyError:
        small = _keep(table, key, op, types, device)
    if small is None:
        return None
    value = small.call(*values)
    if any([operand.value is not None for operand in node.operands]):
        node.settle(value, device.committed, small.is_view)
    else:
        constants[node] = device.committed, value
    return value


def most_operand_bytes(op: Op, types: Sequence[Type]) -> int:
    """The bytes of the largest operand with a value of an op that is computed at once.

    A small product of what BLAS multiplies is no part of anything, however large its operands are.
    """
    if type(op) is not ops.DotGeneral:
        return MOST_BYTES
    is_of_blas = all([isinstance(type, TensorType) and type.dtype.char in _BLAS for type in types])
    return MOST_COMPUTED if is_of_blas else MOST_BYTES


def is_small_op(op: Op) -> bool:
    """Whether an op is of a kind that is computed at once on small arrays."""
    return isinstance(op, _OPS)


def _keep(
    table: SmallOps,
    key: tuple[Any, ...],
    op: Op,
    types: tuple[Type, ...],
    device: Device,
    steps: tuple[Steps, ...] = (),
    several: bool = False,
) -> SmallOp | None:
    small = _small_op(op, types, device, steps, several)
    if len(table) >= _FUNCTIONS_KEPT:
        table.clear()
    table[key] = small
    return small


def _small_op(
    op: Op, types: tuple[Type, ...], device: Device, steps: tuple[Steps, ...], several: bool
) -> SmallOp | None:
    """The function of an op on operands of these types; None if it is none that is computed at once.

    several: whether the op may have several results.
    """
    backend = device.backend
    if not is_small_op(op) or not backend.computes_small_ops:
        return None
    parameters = [parameter(type, location=()) for type in types]
    operands = list(parameters)
    for index, own in enumerate(steps):
        for step, type in own:
            operands[index] = Node(step, (operands[index],), type, ())
    try:
        result = infer_type(op, [node.type for node in operands])
    except XarrError:
        return None  # which the node says again, with the user's line
    node = Node(op, tuple(operands), result, ())
    nodes = [node]
    if not isinstance(result, TensorType):
        if not several:
            return None
        nodes = [Node(ops.GetTupleElement(index), (node,), None, ()) for index in range(len(result.elements))]
    everything = (*types, *[node.type for node in nodes])
    tensors = [type for type in everything if isinstance(type, TensorType) and not type.dynamic]
    most, most_read = min(backend.target.max_eager_bytes, MOST_BYTES), most_operand_bytes(op, types)
    nbytes = max([type.nbytes for type in tensors], default=0)
    if len(tensors) < len(everything) or max([node.type.nbytes for node in nodes]) > most:
        return None
    if nbytes > (most if most_read == MOST_BYTES else most_read):
        return None
    if len(tensors[-1].shape) > _MOST_DIMENSIONS:
        return None
    graph = Graph(parameters, nodes)
    is_converted = any([isinstance(step, ops.Convert) for own in steps for step, _ in own])
    function = backend.eager_function(
        op, None if is_converted else types, lambda: make_program(graph, backend).program
    )
    if function is None:
        return None
    is_shared = nbytes >= _MIN_SHARED_BYTES or max([type.size for type in tensors]) >= _MIN_SHARED_ELEMENTS
    return SmallOp(function.call, result, function.is_view, is_shared, function.ufunc)
