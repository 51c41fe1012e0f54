"""Keys, and the bits that come of them.  Source of all rules: jax.random, and Salmon et al. (2011)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax, tree
from xarr.base.configuration import current as config
from xarr.base.host_arrays import is_weak
from xarr.base.names import did_you_mean
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.calls.operands import as_array
from xarr.dtypes import BOOL, INTEGER, UNSIGNED, KeyType, canonical
from xarr.errors import ArgumentError, DTypeError, InputError, ShapeError, ValueRangeError
from xarr.ir.ops.ciphers import U32, U64, Pair, words
from xarr.ir.ops.formula import Term, fill, spread
from xarr.ir.ops.random import row_major_indices
from xarr.lax.core import ArrayLike, integer, integers
from xarr.numpy_api.creation.arrays import asarray
from xarr.numpy_api.manipulation import shapes as manipulation
from xarr.numpy_api.mathematics import elementwise
from xarr.random.prng import PRNG, PRNGS, Words
from xarr.runtime.handles import Handle, wrap

Shape = int | Sequence[int]
#: The name of a generator, or the element type of its keys.
Impl = str | KeyType | None


@dataclass(frozen=True, eq=False, repr=False)
class Key:
    """A random key, or an array of keys.  `data` holds the uint32 words of each in the last dimension.

    impl: the name of the generator, "threefry2x32" unless another was asked for.

    A pytree: keys go through cond, scan and while_loop like arrays.  They have no arithmetic; functions that only
    arrange elements (stack, concatenate, tile, broadcast_to, reshape, ravel, expand_dims, where, full_like) take them.
    """

    data: Array
    impl: str = tree.static(default="threefry2x32")

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
        return key_dtype(self.impl)

    @property
    def itemsize(self) -> int:
        """Bytes of one key."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all keys."""
        return self.size * self.itemsize

    @property
    def device(self) -> Any:
        """The device of their words, as of an Array."""
        return self.data.device

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
        return self._rearrange(manipulation.reshape, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Key:
        """The keys in one dimension."""
        return self.reshape(-1)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Key:
        """The keys without dimensions of size 1.  Raises ShapeError, AxisError."""
        return self._rearrange(manipulation.squeeze, axis)

    def transpose(self, *axes: Any) -> Key:
        """The keys with permuted dimensions.  Raises ShapeError, AxisError."""
        return self._rearrange(manipulation.transpose, axes or None)

    def copy(self) -> Key:
        """New keys that are equal to these."""
        return self._like(self.data.copy())

    def block_until_ready(self) -> Key:
        """The keys, once they have been computed."""
        self.data.block_until_ready()
        return self

    def _like(self, data: Array) -> Key:
        """Keys of the same generator."""
        return Key(data, self.impl)

    def _as_array(self, name: str, dtype: Any, device: Any, copy: bool | None) -> Key:
        """`asarray(self, dtype, device=device, copy=copy)`."""
        if dtype is not None and dtype != self.dtype:
            raise DTypeError(
                f"{name}: keys of type {self.dtype} are not converted to {dtype}; "
                "random.key_data(key) are their numbers"
            )
        return self._like(asarray(self.data, device=device, copy=copy))

    def _rearrange(self, function: Callable[..., Array], *args: Any) -> Key:
        arranged: Key = self._arrange(function, (self, *args), {})
        return arranged

    @staticmethod
    def _arrange(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The result for keys of a function that only arranges elements: it is called with their numbers instead."""
        leaves, structure = tree.flatten((args, kwargs), _is_key)
        keys = [leaf for leaf in leaves if _is_key(leaf)]
        arrays = [as_array(leaf) for leaf in leaves if isinstance(leaf, Handle | np.ndarray)]
        if any(array.dtype not in BOOL for array in arrays):
            raise InputError(f"{function.__name__}: keys cannot be combined with numbers")
        impl, *others = dict.fromkeys(key.impl for key in keys)
        if others:
            raise InputError(
                f"{function.__name__}: keys of {impl} cannot be combined with keys of {others[0]}"
            )
        starts = accumulate([each.size for each in keys], initial=0)
        numbers = iter([_numbers(each.shape, start) for each, start in zip(keys, starts, strict=False)])
        leaves = [next(numbers) if _is_key(leaf) else leaf for leaf in leaves]
        args, kwargs = tree.unflatten(structure, leaves)
        rows = [lax.reshape(each.data, (each.size, PRNGS[impl].size)) for each in keys]
        words = lax.concatenate(rows, 0)
        return tree.map(
            lambda leaf: (
                Key(words.at[leaf].get(mode="promise_in_bounds"), impl) if isinstance(leaf, Handle) else leaf
            ),
            function(*args, **kwargs),
        )

    def __len__(self) -> int:
        if not self.shape:
            raise InputError("a single key has no len(); split makes several of it")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Key:
        items = index if isinstance(index, tuple) else (index,)
        if not self.shape and items != (...,):
            raise InputError("a single key cannot be indexed; split makes several of it")
        full = items if any(item is Ellipsis for item in items) else (*items, ...)
        return self._like(self.data[(*full, slice(None))])

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
        if isinstance(other, Key) and other.impl != self.impl:
            raise DTypeError(f"a key of {self.impl} is not comparable with a key of {other.impl}")
        return isinstance(other, Key)

    def _same_words(self, other: Any) -> Array:
        mine, theirs = self.data, other.data
        # One key beside several is a scalar: it stretches in every mode, though its words are a dimension.
        if mine.ndim == 1:
            mine = lax.broadcast_in_dim(mine, theirs.shape, (theirs.ndim - 1,))
        elif theirs.ndim == 1:
            theirs = lax.broadcast_in_dim(theirs, mine.shape, (mine.ndim - 1,))
        same = elementwise.equal(mine, theirs)
        return lax.reduce_and(same, (same.ndim - 1,))

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise InputError(
            "a random key cannot be computed with, and is not a NumPy array; random.key_data(key) are its numbers"
        )

    def __repr__(self) -> str:
        if self.data._node.traced:
            return f"Key(<traced {self.impl}{list(self.shape)}>)"
        return f"Key({np.asarray(self.data).tolist()}, impl={self.impl!r})"


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
        if values.impl != self._keys.impl:
            raise InputError(f"keys.at[…].set: wanted a key of {self._keys.impl}, got one of {values.impl}")
        return self._keys._like(self._keys.data.at[self._index].set(values.data, mode=mode))

    def get(self, *, mode: str | None = None) -> Key:
        """The keys at the index."""
        return self._keys._like(self._keys.data.at[self._index].get(mode=mode))


def _is_key(value: Any) -> bool:
    return isinstance(value, Key)


def _numbers(shape: tuple[int, ...], start: int) -> Array:
    """start, start + 1, … in this shape."""
    count = lax.iota(np.int64, prod(shape))
    return lax.reshape(lax.add(count, np.int64(start)), shape)


def _resolve(name: str, impl: Impl, dtype: Impl = None) -> PRNG:
    """The generator that was asked for, by default that of `config.default_prng_impl`."""
    if impl is not None and dtype is not None:
        raise InputError(f"{name}: wanted impl or dtype, which mean the same, got both")
    asked = dtype if impl is None else impl
    if isinstance(asked, KeyType):
        return next(each for each in PRNGS.values() if each.tag == asked.impl)
    known = config.default_prng_impl if asked is None else asked
    if known not in PRNGS:
        hint = did_you_mean(str(known), PRNGS)
        raise ArgumentError(
            f"{name}: wanted one of {', '.join(map(repr, PRNGS))} for impl, got {known!r}"
            + (f"; {hint}" if hint else "")
        )
    return PRNGS[known]


def words_per_key() -> int:
    """The size of the last dimension of words that are taken for keys."""
    return _resolve("key", None).size


@names_errors
def key_dtype(impl_spec: Impl = None) -> KeyType:
    """The element type of arrays of keys of a generator.

    Raises ArgumentError for a generator that there is not.  Source: jax.random.key_dtype.
    """
    prng = _resolve("key_dtype", impl_spec)
    return KeyType(prng.tag, 4 * prng.size)


#: A Key, or its words as PRNGKey gives them.
KeyLike = Any


@names_errors
def key(seed: ArrayLike, *, impl: Impl = None, dtype: Impl = None) -> Key:
    """A key from an integer: a Python int of 64 bits, or an integer scalar.

    impl: the generator, one of "threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg" and "unsafe_rbg", or
    the `dtype` of other keys; None for that of `config.default_prng_impl`.  dtype: another name of impl.
    Raises ArgumentError for another one, InputError for an array, a float, or both impl and dtype;
    ValueRangeError for an int beyond int64.  Source: jax.random.key.
    """
    prng = _resolve("key", impl, dtype)
    return Key(_seed_key("key", seed, prng), prng.name)


@names_errors
def PRNGKey(seed: ArrayLike, *, impl: Impl = None) -> Array:
    """The words of `key(seed)` as a uint32 array, which all functions take for a key.

    Words do not say which generator they are of: functions take them for keys of `config.default_prng_impl`.
    Source: jax.random.PRNGKey.
    """
    return _seed_key("PRNGKey", seed, _resolve("PRNGKey", impl))


def _seed_key(name: str, seed: ArrayLike, prng: PRNG) -> Array:
    both = _seed_words(name, seed)
    if prng.name == "threefry2x32":
        return both
    return _words_together(prng.seed(*_columns(both)), ())


def _seed_words(name: str, seed: ArrayLike) -> Array:
    """The high and the low word of a seed."""
    if isinstance(seed, Key):
        raise InputError(f"{name}: wanted an integer seed, got a key; fold_in mixes a number into it")
    if isinstance(seed, bool | np.bool_):
        raise InputError(f"{name}: wanted an integer seed, got the bool {seed}")
    if is_weak(seed) and isinstance(seed, int):
        if not -(2**63) <= seed < 2**63:
            raise ValueRangeError(
                f"{name}: wanted a seed of 64 bits, in [-2**63, 2**63), got a larger one; "
                "np.uint64(seed) is taken up to 2**64"
            )
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
        high, low = (wrap(term.node) for term in words(wide))
    return lax.concatenate([lax.reshape(high, (1,)), lax.reshape(low, (1,))], 0)


@names_errors
def wrap_key_data(key_bits_array: ArrayLike, *, impl: Impl = None, dtype: Impl = None) -> Key:
    """Keys from their words, uint32 of shape (…, n): the inverse of key_data.

    impl, dtype: as of `key`; n is 2 for "threefry2x32" and "philox4x32", 1 for "philox2x32", else 4.
    Source: jax.random.wrap_key_data.
    """
    prng = _resolve("wrap_key_data", impl, dtype)
    return Key(_words_of("wrap_key_data", key_bits_array, prng), prng.name)


@names_errors
def key_data(keys: KeyLike) -> Array:
    """The words of keys, uint32 of shape (*keys.shape, n).  Source: jax.random.key_data."""
    return _keys_of("key_data", keys).data


@names_errors
def key_impl(keys: KeyLike) -> str:
    """The name of the generator, as `impl=` takes it.  Source: jax.random.key_impl."""
    return _keys_of("key_impl", keys).impl


@names_errors
def clone(key: KeyLike) -> KeyLike:
    """An equal key, for readers who watch that each is used once.  Source: jax.random.clone."""
    _keys_of("clone", key)
    return key


def _keys_of(name: str, keys: KeyLike) -> Key:
    if isinstance(keys, Key):
        return keys
    prng = _resolve(name, None)
    return Key(_words_of(name, keys, prng), prng.name)


def _words_of(name: str, value: ArrayLike, prng: PRNG) -> Array:
    if not isinstance(value, Handle | np.ndarray):
        raise InputError(f"{name}: wanted a key, which random.key(seed) makes, got {value!r}")
    array = as_array(value)
    if array.dtype != U32 or array.shape[-1:] != (prng.size,):
        others = [each.name for each in PRNGS.values() if array.shape[-1:] == (each.size,)]
        hint = f"; wrap_key_data(words, impl={others[0]!r}) makes a key of them" if others else ""
        raise InputError(
            f"{name}: wanted a key or the words u32[{prng.size}] of one of {prng.name}, "
            f"got {array._node.tensor_type.short()}" + (hint if array.dtype == U32 else "")
        )
    return array


def one_key(name: str, key: KeyLike) -> Key:
    """A single key, of a Key or its words.  InputError for an array of keys."""
    single = _keys_of(name, key)
    if single.ndim:
        raise InputError(
            f"{name}: wanted a single key, got an array of keys of shape {single.shape}; call it for each"
        )
    return single


def sizes_of(name: str, shape: Any) -> tuple[int, ...]:
    """A shape from a sequence of sizes, or from one size.  InputError for a negative one."""
    sizes = integers(name, "shape", (shape,) if isinstance(shape, int | np.integer) else shape)
    if any(size < 0 for size in sizes):
        raise InputError(f"{name}: wanted sizes >= 0 in shape, got {sizes}")
    return sizes


@names_errors
def split(key: KeyLike, num: int | Shape = 2) -> KeyLike:
    """New keys from one, which should not be used again: an array of them, of shape (num,) or `num`.

    Raises InputError for an array of keys or a negative number.  Source: jax.random.split.
    """
    single, shape = one_key("split", key), sizes_of("split", num)
    prng, data = PRNGS[single.impl], single.data
    new = _words_together(prng.split(_spread(data, shape), _numbers_of(shape)), shape)
    return single._like(new) if isinstance(key, Key) else new


@names_errors
def fold_in(key: KeyLike, data: ArrayLike) -> KeyLike:
    """A new key from a key and an integer scalar (a step, an index) modulo 2**32.

    Raises InputError for an array of keys or a number that is no integer scalar.  Source: jax.random.fold_in.
    """
    single = one_key("fold_in", key)
    if is_weak(data):
        number = as_array(np.uint32(integer("fold_in", "data", data) % 2**32))
    else:
        number = as_array(data)
        if number.shape or number.dtype not in INTEGER:
            shown = number._node.tensor_type.short()
            raise InputError(f"fold_in: wanted an integer scalar for data, got {shown}")
        number = lax.convert_element_type(number, U32)
    folded = PRNGS[single.impl].fold_in(_columns(single.data), Term(number._node))
    new = _words_together(folded, ())
    return single._like(new) if isinstance(key, Key) else new


@names_errors
def bits(key: KeyLike, shape: Shape = (), dtype: DTypeLike = np.uint32) -> Array:
    """Random bits of an unsigned integer type.

    Raises DTypeError for another type, InputError for an array of keys or negative sizes.
    Source: jax.random.bits.
    """
    element = canonical(dtype)
    if element not in UNSIGNED:
        raise DTypeError(f"bits: wanted an unsigned integer type, got {element}")
    return random_bits(one_key("bits", key), 8 * element.itemsize, sizes_of("bits", shape))


def random_bits(key: Key, width: int, shape: tuple[int, ...]) -> Array:
    """`width` random bits in each element, from a single key, or from a key for each element."""
    data, prng = key.data, PRNGS[key.impl]
    if key.ndim:
        zero = fill(0, shape, U32)
        drawn = prng.bits(_columns(data), (zero, zero), width)
    elif prng.is_one_stream:
        return lax.rng_bit_generator(data, shape, np.dtype(f"uint{width}"))[1]
    else:
        drawn = prng.bits(_spread(data, shape), _numbers_of(shape), width)
    return wrap(drawn.node)


def split_each(keys: Key, count: int = 2) -> tuple[Key, ...]:
    """`count` new keys from each of many."""
    data, shape = keys.data, keys.shape
    own, high = _columns(data), fill(0, shape, U32)
    columns = [PRNGS[keys.impl].split(own, (high, fill(number, shape, U32))) for number in range(count)]
    return tuple([keys._like(_words_together(each, shape)) for each in columns])


def _words_together(columns: Words, shape: tuple[int, ...]) -> Array:
    parts = [lax.reshape(wrap(term.node), (*shape, 1)) for term in columns]
    return lax.concatenate(parts, len(shape))


def _numbers_of(shape: tuple[int, ...]) -> Pair:
    """The row-major number of each element, in two words."""
    is_short = prod(shape) <= 2**32
    return (
        (fill(0, shape, U32), row_major_indices(shape, U32))
        if is_short
        else words(row_major_indices(shape, U64))
    )


def _columns(data: Array) -> Words:
    """The words of keys, one by one."""
    axis = data.ndim - 1
    columns = [lax.index_in_dim(data, at, axis, keepdims=False) for at in range(data.shape[axis])]
    return tuple([Term(column._node) for column in columns])


def _spread(data: Array, shape: tuple[int, ...]) -> Words:
    """The words of a single key, for each element."""
    return tuple([spread(word, shape) for word in _columns(data)])


def check_fits(name: str, shape: tuple[int, ...], *others: tuple[int, ...]) -> None:
    """ShapeError unless each of `others` broadcasts to `shape`."""
    for other in others:
        padded = (1,) * (len(shape) - len(other)) + other
        if len(other) > len(shape) or any(a not in (1, b) for a, b in zip(padded, shape, strict=True)):
            raise ShapeError(f"{name}: a parameter of shape {other} does not fit the shape {shape}")
