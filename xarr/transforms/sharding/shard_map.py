"""`shard_map`: a function of the parts of arrays, recorded once and run by all replicas of a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from xarr import tree
from xarr.base.configuration import current as config
from xarr.base.pytrees import register_static
from xarr.base.tracebacks import keep_text, shorten
from xarr.calls.operands import as_array, observe_call, observers
from xarr.communication.communicator import current_communicator
from xarr.distributed.meshes import ReplicaMesh, mesh_of
from xarr.distributed.sharded_array import ShardedArray, ranks_here
from xarr.distributed.shardings import NamedSharding, PartitionSpec
from xarr.distributed.simulation import run_parts
from xarr.errors import ArgumentError, InputError, ShapeError, XarrError
from xarr.ir.graph import parameter
from xarr.runtime.handles import Handle, weak_kind, wrap
from xarr.runtime.materialisation import evaluate
from xarr.runtime.named_axes import bind_axes, current_mesh, current_names
from xarr.runtime.trace_stack import is_tracing, is_unrecorded
from xarr.transforms.mapped_arguments import words_of
from xarr.transforms.recording import operands_of, record
from xarr.transforms.sharding.members import embed, split_of
from xarr.transforms.sharding.varying_axes import varying_axes
from xarr.transforms.signature import BoundCall, Signature, TracedArgument, call_of, exact
from xarr.transforms.traced import Traced

Function = Callable[..., Any]
#: Programs of one function that are kept; those not used for longest go first.
_KEPT: Final = 64


def shard_map(
    f: Function | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any,
    mesh: ReplicaMesh | None = None,
    axis_names: Set[str] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """`f` as a function of whole arrays, which each replica of a mesh runs on its own parts.

    f: takes and returns pytrees of arrays, the parts; in it the axes of the mesh have their names, for `lax.psum` and
        the like.  It is recorded once for the shapes of the parts, as under `jit`, and is one program for all replicas.
    in_specs: a PartitionSpec for each argument, or pytrees of them that are prefixes of the arguments; None is
        PartitionSpec(), and for what is no array a value with a hash, for each of which `f` is recorded.  A dimension
        with an axis is split over it, an argument is whole where no axis is named.
    out_specs: the same for results; where an axis is not named, the result must be the same along it.
    mesh: None stands for that of the function under shard_map around.
    axis_names: the axes that the function is split along, which are those that have names in it; without any all of
        the mesh, but for those of functions around.  Along the others all members compute the same.
    check_vma: whether that is checked, on the graph.

    The arguments are arrays, whole and in a world of several replicas the same at all of them, or ShardedArrays; the
    results are ShardedArrays, whose parts go into the next call as they are.  In a program of one process each call
    starts a thread for every replica.

    In a function that is recorded, as by jit, arguments and results are whole arrays, and the call is a part of its
    graph; so it is in a function under shard_map, which is split along other axes of the same mesh.

    Raises ShapeError for a size that is not divisible, ArgumentError for other specifications and for a result that
    differs along an axis which its specification does not name; what a replica raises, as `simulate` does.
    Source: jax.shard_map.
    """
    if f is None:
        return functools.partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    if not callable(f):
        raise InputError(f"shard_map: wanted a function, got {f!r}")
    if mesh is not None and not isinstance(mesh, ReplicaMesh):
        raise InputError(f"shard_map: wanted a Mesh, as xarr.distributed.make_mesh makes one, got {mesh!r}")
    if not isinstance(axis_names, Set):
        raise InputError(f"shard_map: wanted a set of names of axes for axis_names, got {axis_names!r}")
    mapped = ShardMapped(f, mesh, in_specs, out_specs, frozenset(axis_names), check_vma)
    if mesh is not None:
        mapped.check_names(mesh)
    return mapped


class ShardMapped:
    """A function that `shard_map` made."""

    def __init__(
        self,
        f: Function,
        mesh: ReplicaMesh | None,
        in_specs: Any,
        out_specs: Any,
        axis_names: frozenset[str],
        check: bool,
    ) -> None:
        functools.update_wrapper(self, f)
        self._function, self._given_mesh, self._axis_names, self._check = f, mesh, axis_names, check
        self._name = getattr(f, "__name__", type(f).__name__)
        self._in_specs, self._out_specs = in_specs, out_specs
        self._programs: dict[Signature, tuple[Traced, list[NamedSharding]]] = {}

    def __call__(self, *args: Any) -> Any:
        try:
            return self._call(args)
        except XarrError as error:
            keep_text(error)
            shorten(error)
            raise

    def __repr__(self) -> str:
        return f"<{self._name} over {self._mesh!r}>"

    def lower(self, *args: Any) -> Any:
        """The graph that every replica runs, for such arguments."""
        return self._record(self._parts(self._fix(args))[0])[0].graph

    @property
    def _mesh(self) -> ReplicaMesh:
        """The mesh of a call here: that of functions around, if there are some."""
        around = current_mesh()
        if around is None:
            if self._given_mesh is None:
                raise ArgumentError(
                    f"{self._name}: wanted a mesh, since no function under shard_map is around; make_mesh makes one"
                )
            return self._given_mesh
        mesh = mesh_of(around)
        if self._given_mesh not in (None, mesh):
            raise ArgumentError(
                f"{self._name}: wanted the mesh of the function under shard_map around, {mesh!r}, got "
                f"{self._given_mesh!r}; let one mesh have the axes of both, and name in axis_names those of each"
            )
        return mesh

    def check_names(self, mesh: ReplicaMesh) -> tuple[str, ...]:
        """The axes that a call here is split along; ArgumentError if one is not there, or split already."""
        around = current_names()
        free = [name for name in mesh.axis_names if name not in around]
        wrong = sorted(self._axis_names.difference(free))
        if wrong or not free:
            others = f"; {', '.join(map(repr, around))} are those of functions around" if around else ""
            raise ArgumentError(
                f"{self._name}: wanted axes of the mesh in axis_names that are free, {tuple(free)}, got "
                f"{wrong or tuple(around)}{others}"
            )
        return tuple([name for name in free if not self._axis_names or name in self._axis_names])

    def _sharding(self, spec: PartitionSpec) -> NamedSharding:
        """The sharding of a specification, which names axes that this function is split along."""
        sharding, names = NamedSharding(self._mesh, spec), self.check_names(self._mesh)
        if not sharding.names.issubset(names):
            raise ArgumentError(
                f"{self._name}: wanted axes that the function is split along, {names}, got {spec}; axis_names says "
                "which these are"
            )
        return sharding

    def _fix(self, args: tuple[Any, ...]) -> Any:
        """The arguments, with what is no array, and has None for a specification, as a part of their structure."""
        leaves, structure = tree.flatten(args)
        if all(map(_is_array, leaves)):
            return args
        specs = _leaves_of(self._name, "in_specs", self._in_specs, args)
        fixed = [
            Fixed(exact(leaf), leaf) if spec is None and not _is_array(leaf) else leaf
            for leaf, spec in zip(leaves, specs, strict=True)
        ]
        return tree.unflatten(structure, fixed)

    def _call_parts(self, *args: Any) -> Any:
        """The result for parts of arguments, of which some are fixed."""
        return self._function(*tree.map(_value_of, args, is_leaf=lambda each: isinstance(each, Fixed)))

    def _call(self, args: tuple[Any, ...]) -> Any:
        args = self._fix(args)
        if is_tracing():
            return self._embed(args)
        calls = self._parts(args)
        traced, shardings = self._record(calls[0])
        observe_call(self._name, traced.graph)
        program: Callable[[Sequence[Any]], Any]
        if config.debugging():
            program = functools.partial(self._run_unrecorded, traced)
        else:
            traced.compile()
            program = traced.run
        ranks = ranks_here(self._mesh)
        if current_communicator().size > 1:
            results = [tree.flatten(program(calls[0].leaves))[0]]
        else:
            run = [functools.partial(program, call.leaves) for call in calls]
            results = [tree.flatten(each)[0] for each in run_parts(run)]
        arrays: list[Any] = []
        for number, sharding in enumerate(shardings):
            parts = {rank: each[number] for rank, each in zip(ranks, results, strict=True)}
            shape = sharding.global_shape(tuple(results[0][number].shape))
            arrays.append(ShardedArray(parts, sharding, shape))
        if is_unrecorded() or current_mesh() is not None:  # as in a function that is recorded
            arrays = [as_array(np.asarray(each)) for each in arrays]
        return tree.unflatten(traced.structure, arrays)

    def _embed(self, args: tuple[Any, ...]) -> Any:
        """The result as whole arrays, of a call in a function that is recorded."""
        leaves, structure = tree.flatten(args)
        paths = [f"{self._name}{path}" for path in structure.paths("")]
        shardings = [self._sharding(spec) for spec in specs_of(self._name, "in_specs", self._in_specs, args)]
        pairs = [_stand_in(*each) for each in zip(paths, leaves, shardings, strict=True)]
        own = tree.unflatten(structure, [part for part, _ in pairs])
        call = call_of(self._name, [], _label(own))
        traced, outputs = self._record(call)
        operands = operands_of(traced, [whole for _, whole in pairs], call.signature.device)
        before = [split_of(shardings[index]) for index in traced.arrays]
        after = [split_of(sharding) for sharding in outputs]
        names = self.check_names(self._mesh)
        is_inside = current_mesh() is not None
        results = embed(traced, operands, self._mesh.grid, names, (before, after), is_inside)
        return tree.unflatten(traced.structure, results)

    def _run_unrecorded(self, traced: Traced, leaves: Sequence[Any]) -> Any:
        """The result of one replica operation by operation, each of which is checked, as of functions under jit."""
        with self._bind():
            result = tree.map(as_array, self._call_parts(*self._arguments(traced, leaves)))
        evaluate(*tree.leaves(result))
        return result

    def _parts(self, args: tuple[Any, ...]) -> list[BoundCall]:
        """The call of the function for each replica in this process, with the parts of the arguments."""
        leaves, structure = tree.flatten(args)
        paths = [f"{self._name}{path}" for path in structure.paths("")]
        specs = specs_of(self._name, "in_specs", self._in_specs, args)
        ranks = ranks_here(self._mesh)
        split = [
            _split(path, leaf, self._sharding(spec), ranks)
            for path, leaf, spec in zip(paths, leaves, specs, strict=True)
        ]
        calls = []
        for number in range(len(ranks)):
            own = tree.unflatten(structure, [each[number] for each in split])
            calls.append(call_of(self._name, [], _label(own)))
        return calls

    def _bind(self) -> AbstractContextManager[None]:
        """Let the axes have their names in the block."""
        mesh = self._mesh
        return bind_axes(mesh.grid, (*current_names(), *self.check_names(mesh)))

    def _record(self, call: BoundCall) -> tuple[Traced, list[NamedSharding]]:
        """The program for such parts, and how each result is split."""
        known = self._programs.pop(call.signature, None)
        if known is None or observers:  # who are told of what the function does while it is recorded
            with self._bind():
                traced = record(self._name, self._call_parts, call.signature, frozenset())
            known = traced, self._result_shardings(traced)
        # What uses an argument of an outer traced function holds within that function only.
        if any(node.traced for node in known[0].captured):
            return known
        self._programs[call.signature] = known
        while len(self._programs) > _KEPT:
            del self._programs[next(iter(self._programs))]
        return known

    def _result_shardings(self, traced: Traced) -> list[NamedSharding]:
        stand_ins = tree.unflatten(traced.structure, list(range(traced.structure.count)))
        specs = specs_of(self._name, "out_specs", self._out_specs, stand_ins)
        shardings = [self._sharding(spec) for spec in specs]
        results = [traced.graph.results[number] for number in traced.result_numbers]
        paths = list(traced.structure.paths("the result"))
        for path, node, sharding in zip(paths, results, shardings, strict=True):
            try:
                sharding.counts(tuple(node.shape))
            except ShapeError as error:
                raise ShapeError(f"{self._name}: {path}: {error}") from None
        if self._check:
            self._check_results(traced, paths, shardings)
        return shardings

    def _check_results(
        self, traced: Traced, paths: Sequence[str], shardings: Sequence[NamedSharding]
    ) -> None:
        """ArgumentError for a result that may differ along an axis that its specification does not name."""
        graph = traced.graph
        leaves = specs_of(
            self._name,
            "in_specs",
            self._in_specs,
            self._arguments(traced, range(len(traced.signature.types))),
        )
        split = [NamedSharding(self._mesh, spec).names for spec in leaves]
        own = [split[leaf] for leaf in traced.arrays]
        rest = len(graph.parameters) - len(own)
        around = current_names()
        checked = [name for name in self._mesh.axis_names if name not in around]
        axes = varying_axes(graph, self._mesh.grid, [*own, *[frozenset()] * rest])
        for path, number, sharding in zip(paths, traced.result_numbers, shardings, strict=True):
            wrong = [name for name in checked if name in axes[number] - sharding.names]
            if wrong:
                source = graph.results[number].source
                names = ", ".join(map(repr, wrong))
                raise ArgumentError(
                    f"{self._name}: {path} may differ along {names}, and its specification {sharding.spec} says that "
                    f"it is the same there; reduce it, as by lax.psum(…, {wrong[0]!r}), or name {names} in out_specs, "
                    f"or pass check_vma=False if you know that it is the same\nIt is made at {source}"
                )

    def _arguments(self, traced: Traced, leaves: Iterable[Any]) -> tuple[Any, ...]:
        """The arguments of which these are the leaves."""
        rest = iter(leaves)
        arguments: list[Any] = []
        for argument in traced.signature.arguments:
            assert isinstance(argument, TracedArgument)
            structure = argument.structure
            arguments.append(tree.unflatten(structure, [next(rest) for _ in range(structure.count)]))
        return tuple(arguments)


def specs_of(name: str, what: str, specs: Any, values: Any) -> list[PartitionSpec]:
    """The specification of each leaf of `values`, of which that of `specs` is a prefix.

    Raises ArgumentError where it is none, and for what is no PartitionSpec.
    """
    return [PartitionSpec() if spec is None else spec for spec in _leaves_of(name, what, specs, values)]


def _leaves_of(name: str, what: str, specs: Any, values: Any) -> list[PartitionSpec | None]:
    """The specification of each leaf as it stands there, None included."""
    wanted = "a PartitionSpec, or None,"
    return words_of(name, what, specs, values, wanted, lambda each: isinstance(each, PartitionSpec))


@register_static
@dataclass(frozen=True)
class Fixed:
    """An argument that is no array: a part of the structure of the arguments around it."""

    exact: Any
    value: Any = field(compare=False)


def _value_of(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, Fixed) else leaf


def _is_array(leaf: Any) -> bool:
    """Whether an argument is an array or a number."""
    return weak_kind(leaf) is not None or isinstance(leaf, Handle) or hasattr(leaf, "__array__")


def _split(path: str, value: Any, sharding: NamedSharding, ranks: Sequence[int]) -> list[Any]:
    """The parts of an argument for replicas; a number is one for all."""
    if isinstance(value, ShardedArray):
        if value.sharding != sharding and not _is_same(value.sharding, sharding, value.ndim):
            raise ArgumentError(
                f"{path}: wanted an array split by {sharding.spec} over {sharding.mesh!r}, got one split by "
                f"{value.sharding.spec} over {value.sharding.mesh!r}; a split is never changed unasked: join the parts "
                "by np.asarray, and split them anew by device_put"
            )
        return [value.part(rank) for rank in ranks]
    if type(value) in (bool, int, float, complex) and not sharding.names:
        return [value] * len(ranks)  # takes the element type of what it meets, as under jit
    array = as_array(value)
    shape = tuple(array.shape)
    try:
        sharding.shard_shape(shape)
    except ShapeError as error:
        raise ShapeError(f"{path}: {error}") from None
    return [array[sharding.index_of(rank, shape)] if sharding.names else array for rank in ranks]


def _stand_in(path: str, value: Any, sharding: NamedSharding) -> tuple[Any, Any]:
    """A stand-in for the part of an argument of a call that is recorded, and the argument; a number is both."""
    if isinstance(value, ShardedArray):
        raise ArgumentError(
            f"{path}: wanted a whole array, got {value!r}; arrays are whole in a function that is recorded, as by "
            "jit: join the parts by np.asarray before"
        )
    if weak_kind(value) is not None and not sharding.names:
        return value, value
    array = as_array(value)
    try:
        shape = sharding.shard_shape(tuple(array.shape))
    except ShapeError as error:
        raise ShapeError(f"{path}: {error}") from None
    node = array._node
    return wrap(parameter(node.tensor_type.with_shape(shape), node.device)), array


def _label(args: Sequence[Any]) -> list[tuple[int | str, str, Any]]:
    return [(index, f"args[{index}]", each) for index, each in enumerate(args)]


def _is_same(one: NamedSharding, other: NamedSharding, ndim: int) -> bool:
    """Whether two shardings split arrays of a rank alike: None at the end counts as nothing."""

    def axes(sharding: NamedSharding) -> tuple[tuple[str, ...], ...]:
        return (*sharding.spec.axes, *((),) * (ndim - len(sharding.spec)))

    return one.mesh == other.mesh and axes(one) == axes(other)
