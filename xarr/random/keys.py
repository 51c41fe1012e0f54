"""Keys, and the bits that come of them.  Source of all rules: jax.random, and Salmon et al. (2011)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax, tree
from xarr.dtypes import BOOL, INTEGER, UNSIGNED, KeyType, canonical
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError
from xarr.functions import elementwise_functions as elementwise, manipulation_functions as manipulation
from xarr.functions._core import as_array
from xarr.functions.creation_functions import asarray
from xarr.host import is_weak
from xarr.ir.ops.ciphers import U32, U64, Pair, joined, threefry2x32, words
from xarr.ir.ops.formula import Term, filled, spread
from xarr.ir.ops.random import places
from xarr.lax import _constants as constants
from xarr.lax.core import ArrayLike, integer, integers
from xarr.lazy import Handle, wrap

if TYPE_CHECKING:
    from xarr.array import Array

Shape = int | Sequence[int]
_IMPL: Final = "threefry2x32"


@dataclass(frozen=True, eq=False, repr=False)
class Key:
    """A random key, or an array of keys.  `data` holds two uint32 words for each, in the last dimension.

    A pytree: keys go through cond, scan and while_loop like arrays.  They have no arithmetic; functions that only
    arrange elements (stack, concatenate, tile, broadcast_to, reshape, ravel, expand_dims, where, full_like) take them.
    """

    data: Array
    impl: ClassVar[str] = _IMPL

    def __post_init__(self) -> None:
        data: Any = self.data
        if isinstance(data, np.ndarray):  # as functions of pytrees and callbacks put in for an Array
            object.__setattr__(self, "data", as_array(data))

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the array of keys, () for a single one."""
        return self.data.shape[:-1]

    @property
    def ndim(self) -> int:
        """Number of dimensions of the array of keys."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of keys."""
        return prod(self.shape)

    @property
    def dtype(self) -> KeyType:
        """Their element type, which is below `dtypes.prng_key`."""
        return key_dtype()

    @property
    def at(self) -> _At:
        """`keys.at[i].set(key)` and `keys.at[i].get()`, as of arrays."""
        return _At(self)

    @property
    def T(self) -> Key:
        """The keys with their dimensions the other way round."""
        return self.transpose()

    def reshape(self, *shape: Any) -> Key:
        """The keys in another shape, of which one size may be -1.  Raises ShapeError."""
        return self._by(manipulation.reshape, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Key:
        """The keys in one dimension."""
        return self.reshape(-1)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Key:
        """The keys without dimensions of size 1.  Raises ShapeError, AxisError."""
        return self._by(manipulation.squeeze, axis)

    def transpose(self, *axes: Any) -> Key:
        """The keys with permuted dimensions.  Raises ShapeError, AxisError."""
        return self._by(manipulation.transpose, axes or None)

    def copy(self) -> Key:
        """New keys that are equal to these."""
        return Key(self.data.copy())

    def block_until_ready(self) -> Key:
        """The keys, computed."""
        self.data.block_until_ready()
        return self

    def _by(self, function: Callable[..., Array], *args: Any) -> Key:
        arranged: Key = self._arrange(function, (self, *args), {})
        return arranged

    @staticmethod
    def _arrange(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The result for keys of a function that only arranges elements: it is called with their numbers instead."""
        leaves, structure = tree.flatten((args, kwargs), _is_key)
        keys = [leaf for leaf in leaves if _is_key(leaf)]
        arrays = [as_array(leaf) for leaf in leaves if isinstance(leaf, Handle | np.ndarray)]
        if any(array.dtype not in BOOL for array in arrays):
            raise InputError(f"{function.__name__}: keys cannot be put beside numbers")
        starts = accumulate([each.size for each in keys], initial=0)
        numbers = iter([_numbers(each.shape, start) for each, start in zip(keys, starts, strict=False)])
        leaves = [next(numbers) if _is_key(leaf) else leaf for leaf in leaves]
        args, kwargs = tree.unflatten(structure, leaves)
        words = lax.concatenate([lax.reshape(each.data, (each.size, 2)) for each in keys], 0)
        return tree.map(
            lambda leaf: (
                Key(words.at[leaf].get(mode="promise_in_bounds")) if isinstance(leaf, Handle) else leaf
            ),
            function(*args, **kwargs),
        )

    def __len__(self) -> int:
        if not self.shape:
            raise InputError("len() of a single key; split makes several of it")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Key:
        items = index if isinstance(index, tuple) else (index,)
        if not self.shape and items != (...,):
            raise InputError("a single key cannot be indexed; split makes several of it")
        full = items if any(item is Ellipsis for item in items) else (*items, ...)
        return Key(self.data[(*full, slice(None))])

    def __iter__(self) -> Iterator[Key]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> Any:
        """Whether the keys are the same, element by element, as bools; keys broadcast.

        Raises DTypeError beside numbers, BroadcastError.  As an Array, a key has no hash.  Source: jax.random.
        """
        return self._same_words(other) if self._is_comparable(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        """Whether the keys differ; see `==`."""
        return lax.bitwise_not(self._same_words(other)) if self._is_comparable(other) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _is_comparable(self, other: object) -> bool:
        if is_weak(other) or isinstance(other, Handle | np.ndarray | np.generic):
            raise DTypeError(
                "a key is compared with keys, not with numbers; random.key_data(key) are its numbers"
            )
        return isinstance(other, Key)

    def _same_words(self, other: Any) -> Array:
        same = elementwise.equal(self.data, other.data)
        return lax.reduce_and(same, (same.ndim - 1,))

    def __repr__(self) -> str:
        if self.data._node.traced:
            return f"Key(<traced {_IMPL}{list(self.shape)}>)"
        return f"Key({np.asarray(self.data).tolist()}, impl={_IMPL!r})"


class _At:
    """Keys with an index, for an update that gives new ones."""

    def __init__(self, keys: Key, index: Any = None) -> None:
        self._keys, self._index = keys, index

    def __getitem__(self, index: Any) -> _At:
        items = index if isinstance(index, tuple) else (index,)
        full = items if any(item is Ellipsis for item in items) else (*items, ...)
        return _At(self._keys, (*full, slice(None)))

    def set(self, values: Key, *, mode: str | None = None) -> Key:
        """The keys with `values` at the index.  Raises InputError for values that are no keys."""
        if not isinstance(values, Key):
            raise InputError(f"keys.at[…].set: wanted a key, which random.key(seed) makes, got {values!r}")
        return Key(self._keys.data.at[self._index].set(values.data, mode=mode))

    def get(self, *, mode: str | None = None) -> Key:
        """The keys at the index."""
        return Key(self._keys.data.at[self._index].get(mode=mode))


def _is_key(value: Any) -> bool:
    return isinstance(value, Key)


def _numbers(shape: tuple[int, ...], start: int) -> Array:
    """start, start + 1, … in this shape."""
    count = constants.iota(np.int64, prod(shape))
    return lax.reshape(lax.add(count, np.int64(start)), shape)


def key_dtype(impl_spec: str | None = None) -> KeyType:
    """The element type of arrays of keys.  InputError for another generator.  Source: jax.random.key_dtype."""
    if impl_spec not in (None, _IMPL):
        raise InputError(f"key_dtype: wanted {_IMPL!r} for impl_spec, got {impl_spec!r}")
    return KeyType("fry")


#: A Key, or its two words as PRNGKey gives them.
KeyLike = Any


def key(seed: ArrayLike, *, impl: str | None = None) -> Key:
    """A key from an integer: a Python int in [-2**63, 2**64), or an integer scalar.

    impl: "threefry2x32" or None.  Raises InputError for another, for an array, for a float;
    ValueRangeError for an int beyond 64 bits.  Source: jax.random.key.
    """
    return Key(_seeded("key", seed, impl))


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """The two words of `key(seed)` as a uint32 array, which all functions take for a key.

    Source: jax.random.PRNGKey.
    """
    return _seeded("PRNGKey", seed, impl)


def _seeded(name: str, seed: ArrayLike, impl: str | None) -> Array:
    if impl not in (None, _IMPL):
        raise InputError(f"{name}: wanted {_IMPL!r} for impl, got {impl!r}")
    if isinstance(seed, Key):
        raise InputError(f"{name}: wanted an integer seed, got a key; fold_in mixes a number into it")
    if isinstance(seed, bool | np.bool_):
        raise InputError(f"{name}: wanted an integer seed, got the bool {seed}")
    if is_weak(seed) and isinstance(seed, int):
        if not -(2**63) <= seed < 2**64:
            raise ValueRangeError(f"{name}: wanted a seed of 64 bits, in [-2**63, 2**64), got a larger one")
        return asarray(np.array([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32), device=None)
    array = asarray(seed, device=None)
    if array.shape or array.dtype not in INTEGER:
        raise InputError(
            f"{name}: wanted an integer scalar as seed, got {array._node.tensor_type.short()}; "
            "split makes several keys of one"
        )
    if array.dtype.itemsize < 8:
        low, high = lax.convert_element_type(array, U32), lax.full_like(array, 0, U32)
    else:
        wide = Term(lax.convert_element_type(array, U64)._node)
        high, low = (wrap(term.node, array._backend) for term in words(wide))
    return lax.concatenate([lax.reshape(high, (1,)), lax.reshape(low, (1,))], 0)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None) -> Key:
    """Keys from their words, uint32 of shape (…, 2): the inverse of key_data.

    Source: jax.random.wrap_key_data.
    """
    if impl not in (None, _IMPL):
        raise InputError(f"wrap_key_data: wanted {_IMPL!r} for impl, got {impl!r}")
    return Key(_words_of("wrap_key_data", key_bits_array))


def key_data(keys: KeyLike) -> Array:
    """The words of keys, uint32 of shape (*keys.shape, 2).  Source: jax.random.key_data."""
    return keys.data if isinstance(keys, Key) else _words_of("key_data", keys)


def key_impl(keys: KeyLike) -> str:
    """The name of the generator: "threefry2x32".  Source: jax.random.key_impl."""
    key_data(keys)
    return _IMPL


def clone(key: KeyLike) -> KeyLike:
    """The same key, for readers who watch that each is used once.  Source: jax.random.clone."""
    key_data(key)
    return key


def _words_of(name: str, value: ArrayLike) -> Array:
    if not isinstance(value, Handle | np.ndarray):
        raise InputError(f"{name}: wanted a key, which random.key(seed) makes, got {value!r}")
    array = as_array(value)
    if array.dtype != U32 or array.shape[-1:] != (2,):
        raise InputError(
            f"{name}: wanted a key or its two words u32[2], got {array._node.tensor_type.short()}"
        )
    return array


def one_key(name: str, key: KeyLike) -> Array:
    """The words of a single key, shape (2,)."""
    data = key.data if isinstance(key, Key) else _words_of(name, key)
    if data.ndim != 1:
        raise InputError(
            f"{name}: wanted a single key, got an array of keys of shape {data.shape[:-1]}; call it for each"
        )
    return data


def sizes_of(name: str, shape: Any) -> tuple[int, ...]:
    """A shape from a sequence of sizes, or from one size.  InputError for a negative one."""
    sizes = integers(name, "shape", (shape,) if isinstance(shape, int | np.integer) else shape)
    if any(size < 0 for size in sizes):
        raise InputError(f"{name}: wanted sizes >= 0 in shape, got {sizes}")
    return sizes


def split(key: KeyLike, num: int | Shape = 2) -> KeyLike:
    """New keys from one, which should not be used again: an array of them, of shape (num,) or `num`.

    Raises InputError for an array of keys or a negative number.  Source: jax.random.split.
    """
    data = one_key("split", key)
    shape = sizes_of("split", num)
    new = _words_together(_stream(data, shape), shape, data._backend)
    return Key(new) if isinstance(key, Key) else new


def fold_in(key: KeyLike, data: ArrayLike) -> KeyLike:
    """A new key from a key and an integer scalar (a step, an index) modulo 2**32.

    Raises InputError for an array of keys or a number that is no integer scalar.  Source: jax.random.fold_in.
    """
    words_of_key = one_key("fold_in", key)
    if is_weak(data):
        number = as_array(np.uint32(integer("fold_in", "data", data) % 2**32))
    else:
        number = as_array(data)
        if number.shape or number.dtype not in INTEGER:
            shown = number._node.tensor_type.short()
            raise InputError(f"fold_in: wanted an integer scalar for data, got {shown}")
        number = lax.convert_element_type(number, U32)
    counter = (filled(0, (1,), U32), Term(lax.reshape(number, (1,))._node))
    first, second = threefry2x32(_key_terms(words_of_key, (1,)), counter)
    new = lax.concatenate([wrap(term.node, words_of_key._backend) for term in (first, second)], 0)
    return Key(new) if isinstance(key, Key) else new


def bits(key: KeyLike, shape: Shape = (), dtype: DTypeLike = np.uint32) -> Array:
    """Random bits of an unsigned integer type.

    Raises DTypeError for another type, InputError for an array of keys or negative sizes.
    Source: jax.random.bits.
    """
    element = canonical(dtype)
    if element not in UNSIGNED:
        raise DTypeError(f"bits: wanted an unsigned integer type, got {element}")
    return random_bits(one_key("bits", key), 8 * element.itemsize, sizes_of("bits", shape))


def random_bits(data: Array, width: int, shape: tuple[int, ...]) -> Array:
    """`width` random bits in each element, from the words of a single key, or of a key for each element."""
    first, second = _stream(data, shape)
    short = (first ^ second).to(np.dtype(f"uint{width}"))
    return wrap((joined(first, second) if width == 64 else short).node, data._backend)


def split_each(data: Array, count: int = 2) -> tuple[Array, ...]:
    """`count` new keys from each of many, whose words lie in the last dimension."""
    shape, backend = data.shape[:-1], data._backend
    key, high = _key_terms(data, shape), filled(0, shape, U32)
    pairs = [threefry2x32(key, (high, filled(number, shape, U32))) for number in range(count)]
    return tuple([_words_together(pair, shape, backend) for pair in pairs])


def _words_together(pair: Pair, shape: tuple[int, ...], backend: Any) -> Array:
    return lax.concatenate([lax.reshape(wrap(term.node, backend), (*shape, 1)) for term in pair], len(shape))


def _stream(data: Array, shape: tuple[int, ...]) -> Pair:
    """Two words for each place, whose row-major number is the counter; 0 where each place has its own key."""
    is_short = prod(shape) <= 2**32
    if data.ndim > 1:
        counter = (filled(0, shape, U32), filled(0, shape, U32))
    else:
        counter = (filled(0, shape, U32), places(shape, U32)) if is_short else words(places(shape, U64))
    return threefry2x32(_key_terms(data, shape), counter)


def _key_terms(data: Array, shape: tuple[int, ...]) -> Pair:
    columns = [lax.slice_in_dim(data, at, at + 1, axis=data.ndim - 1) for at in range(2)]
    if data.ndim > 1:
        first, second = (Term(lax.squeeze(column, (data.ndim - 1,))._node) for column in columns)
    else:
        first, second = (spread(Term(lax.squeeze(column)._node), shape) for column in columns)
    return first, second


def check_fits(name: str, shape: tuple[int, ...], *others: tuple[int, ...]) -> None:
    """ShapeError unless each of `others` broadcasts to `shape`."""
    for other in others:
        padded = (1,) * (len(shape) - len(other)) + other
        if len(other) > len(shape) or any(a not in (1, b) for a, b in zip(padded, shape, strict=True)):
            raise ShapeError(f"{name}: a parameter of shape {other} does not fit the shape {shape}")
