"""All operations, one module per family."""

from xarr.ir.ops import dynamic_rules as dynamic_rules
from xarr.ir.ops.batch_axes import IndexAlongAxis as IndexAlongAxis, StackAlongAxis as StackAlongAxis
from xarr.ir.ops.binary import *
from xarr.ir.ops.collectives import (
    AllGather as AllGather,
    AllReduce as AllReduce,
    AllToAll as AllToAll,
    CollectiveBroadcast as CollectiveBroadcast,
    CollectivePermute as CollectivePermute,
    CrossReplicaSum as CrossReplicaSum,
    PartitionId as PartitionId,
    ReduceScatter as ReduceScatter,
    ReplicaId as ReplicaId,
)
from xarr.ir.ops.composite import *
from xarr.ir.ops.control import (
    Call as Call,
    Case as Case,
    GetTupleElement as GetTupleElement,
    If as If,
    Map as Map,
    OptimizationBarrier as OptimizationBarrier,
    Progress as Progress,
    Tuple as Tuple,
    While as While,
)
from xarr.ir.ops.convolution import Convolution as Convolution
from xarr.ir.ops.creation import Constant as Constant, Iota as Iota
from xarr.ir.ops.custom_calls import CustomCall as CustomCall
from xarr.ir.ops.dynamic_sizes import (
    GetDimensionSize as GetDimensionSize,
    SetDimensionSize as SetDimensionSize,
)
from xarr.ir.ops.effects import (
    AfterAll as AfterAll,
    Infeed as Infeed,
    Outfeed as Outfeed,
    Recv as Recv,
    Send as Send,
)
from xarr.ir.ops.elementwise import (
    Binary as Binary,
    BitcastConvert as BitcastConvert,
    Compare as Compare,
    Convert as Convert,
    Elementwise as Elementwise,
    ReducePrecision as ReducePrecision,
    Select as Select,
    Unary as Unary,
)
from xarr.ir.ops.factorisations import (
    Eig as Eig,
    Eigh as Eigh,
    Geqrf as Geqrf,
    HouseholderProduct as HouseholderProduct,
    Lu as Lu,
    Svd as Svd,
)
from xarr.ir.ops.fourier import Fft as Fft
from xarr.ir.ops.fusion import (
    Empty as Empty,
    Fusion as Fusion,
    NativeWhile as NativeWhile,
    StridedUpdate as StridedUpdate,
)
from xarr.ir.ops.indexing import (
    DynamicSlice as DynamicSlice,
    DynamicUpdateSlice as DynamicUpdateSlice,
    Gather as Gather,
    Scatter as Scatter,
)
from xarr.ir.ops.linear_algebra import Cholesky as Cholesky, TriangularSolve as TriangularSolve
from xarr.ir.ops.movement import (
    BroadcastInDim as BroadcastInDim,
    Concatenate as Concatenate,
    Pad as Pad,
    Reshape as Reshape,
    Reverse as Reverse,
    Slice as Slice,
    Transpose as Transpose,
)
from xarr.ir.ops.normalisation import (
    BatchNormGrad as BatchNormGrad,
    BatchNormInference as BatchNormInference,
    BatchNormTraining as BatchNormTraining,
)
from xarr.ir.ops.parts import ManualComputation as ManualComputation
from xarr.ir.ops.random import Rng as Rng, RngBitGenerator as RngBitGenerator
from xarr.ir.ops.reduction import DotGeneral as DotGeneral, Reduce as Reduce, Sort as Sort
from xarr.ir.ops.special import (
    BesselI1e as BesselI1e,
    Digamma as Digamma,
    Erf as Erf,
    Erfc as Erfc,
    ErfInv as ErfInv,
    Lgamma as Lgamma,
)
from xarr.ir.ops.systems import Check as Check, LogDeterminant as LogDeterminant, Solve as Solve
from xarr.ir.ops.unary import *
from xarr.ir.ops.windows import ReduceWindow as ReduceWindow, SelectAndScatter as SelectAndScatter
