"""All operations, one module per family."""

from xarr.ir.ops.binary import (
    Add as Add,
)
from xarr.ir.ops.binary import (
    And as And,
)
from xarr.ir.ops.binary import (
    Atan2 as Atan2,
)
from xarr.ir.ops.binary import (
    Complex as Complex,
)
from xarr.ir.ops.binary import (
    Divide as Divide,
)
from xarr.ir.ops.binary import (
    Maximum as Maximum,
)
from xarr.ir.ops.binary import (
    Minimum as Minimum,
)
from xarr.ir.ops.binary import (
    Multiply as Multiply,
)
from xarr.ir.ops.binary import (
    NextAfter as NextAfter,
)
from xarr.ir.ops.binary import (
    Or as Or,
)
from xarr.ir.ops.binary import (
    Power as Power,
)
from xarr.ir.ops.binary import (
    Remainder as Remainder,
)
from xarr.ir.ops.binary import (
    ShiftLeft as ShiftLeft,
)
from xarr.ir.ops.binary import (
    ShiftRightArithmetic as ShiftRightArithmetic,
)
from xarr.ir.ops.binary import (
    ShiftRightLogical as ShiftRightLogical,
)
from xarr.ir.ops.binary import (
    Subtract as Subtract,
)
from xarr.ir.ops.binary import (
    Xor as Xor,
)
from xarr.ir.ops.control import (
    Call as Call,
)
from xarr.ir.ops.control import (
    Case as Case,
)
from xarr.ir.ops.control import (
    GetTupleElement as GetTupleElement,
)
from xarr.ir.ops.control import (
    If as If,
)
from xarr.ir.ops.control import (
    Map as Map,
)
from xarr.ir.ops.control import (
    OptimizationBarrier as OptimizationBarrier,
)
from xarr.ir.ops.control import (
    Tuple as Tuple,
)
from xarr.ir.ops.control import (
    While as While,
)
from xarr.ir.ops.creation import Constant as Constant
from xarr.ir.ops.creation import Iota as Iota
from xarr.ir.ops.elementwise import (
    Binary as Binary,
)
from xarr.ir.ops.elementwise import (
    BitcastConvert as BitcastConvert,
)
from xarr.ir.ops.elementwise import (
    Clamp as Clamp,
)
from xarr.ir.ops.elementwise import (
    Compare as Compare,
)
from xarr.ir.ops.elementwise import (
    Convert as Convert,
)
from xarr.ir.ops.elementwise import (
    Elementwise as Elementwise,
)
from xarr.ir.ops.elementwise import (
    ReducePrecision as ReducePrecision,
)
from xarr.ir.ops.elementwise import (
    Select as Select,
)
from xarr.ir.ops.elementwise import (
    Unary as Unary,
)
from xarr.ir.ops.indexing import (
    DynamicSlice as DynamicSlice,
)
from xarr.ir.ops.indexing import (
    DynamicUpdateSlice as DynamicUpdateSlice,
)
from xarr.ir.ops.indexing import (
    Gather as Gather,
)
from xarr.ir.ops.indexing import (
    Scatter as Scatter,
)
from xarr.ir.ops.movement import (
    BroadcastInDim as BroadcastInDim,
)
from xarr.ir.ops.movement import (
    Concatenate as Concatenate,
)
from xarr.ir.ops.movement import (
    Pad as Pad,
)
from xarr.ir.ops.movement import (
    Reshape as Reshape,
)
from xarr.ir.ops.movement import (
    Reverse as Reverse,
)
from xarr.ir.ops.movement import (
    Slice as Slice,
)
from xarr.ir.ops.movement import (
    Transpose as Transpose,
)
from xarr.ir.ops.reduction import DotGeneral as DotGeneral
from xarr.ir.ops.reduction import Reduce as Reduce
from xarr.ir.ops.reduction import Sort as Sort
from xarr.ir.ops.unary import (
    Abs as Abs,
)
from xarr.ir.ops.unary import (
    Acos as Acos,
)
from xarr.ir.ops.unary import (
    Acosh as Acosh,
)
from xarr.ir.ops.unary import (
    Asin as Asin,
)
from xarr.ir.ops.unary import (
    Asinh as Asinh,
)
from xarr.ir.ops.unary import (
    Atan as Atan,
)
from xarr.ir.ops.unary import (
    Atanh as Atanh,
)
from xarr.ir.ops.unary import (
    Cbrt as Cbrt,
)
from xarr.ir.ops.unary import (
    Ceil as Ceil,
)
from xarr.ir.ops.unary import (
    Cosh as Cosh,
)
from xarr.ir.ops.unary import (
    Cosine as Cosine,
)
from xarr.ir.ops.unary import (
    CountLeadingZeros as CountLeadingZeros,
)
from xarr.ir.ops.unary import (
    Exponential as Exponential,
)
from xarr.ir.ops.unary import (
    ExponentialMinusOne as ExponentialMinusOne,
)
from xarr.ir.ops.unary import (
    Floor as Floor,
)
from xarr.ir.ops.unary import (
    Imag as Imag,
)
from xarr.ir.ops.unary import (
    IsFinite as IsFinite,
)
from xarr.ir.ops.unary import (
    Log as Log,
)
from xarr.ir.ops.unary import (
    Logistic as Logistic,
)
from xarr.ir.ops.unary import (
    LogPlusOne as LogPlusOne,
)
from xarr.ir.ops.unary import (
    Negate as Negate,
)
from xarr.ir.ops.unary import (
    Not as Not,
)
from xarr.ir.ops.unary import (
    Popcnt as Popcnt,
)
from xarr.ir.ops.unary import (
    Real as Real,
)
from xarr.ir.ops.unary import (
    RoundNearestAfz as RoundNearestAfz,
)
from xarr.ir.ops.unary import (
    RoundNearestEven as RoundNearestEven,
)
from xarr.ir.ops.unary import (
    Rsqrt as Rsqrt,
)
from xarr.ir.ops.unary import (
    Sign as Sign,
)
from xarr.ir.ops.unary import (
    Sine as Sine,
)
from xarr.ir.ops.unary import (
    Sinh as Sinh,
)
from xarr.ir.ops.unary import (
    Sqrt as Sqrt,
)
from xarr.ir.ops.unary import (
    Tan as Tan,
)
from xarr.ir.ops.unary import (
    Tanh as Tanh,
)
