"""Strings and checksums: CRC-32, Adler-32, the rolling hash of Rabin and Karp, pairs of letters, LZW."""

from __future__ import annotations

import numpy as np

from program_rows.row import EACH_ELEMENT, VALUE_DECIDES, Array, Program, integers, prange

# --- CRC-32 by a table ---------------------------------------------------------------------------------------


def crc_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table


def crc_numpy(xp: Array, data: Array, table: Array) -> Array:
    crc = xp.asarray(0xFFFFFFFF, dtype="uint32")
    for k in range(data.shape[0]):
        crc = table[(crc ^ data[k]) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def crc_jax(jnp: Array, lax: Array, data: Array, table: Array) -> Array:
    def step(crc: Array, byte: Array) -> Array:
        return table[(crc ^ byte) & 0xFF] ^ (crc >> 8), None

    return lax.scan(step, jnp.asarray(0xFFFFFFFF, dtype="uint32"), data)[0] ^ 0xFFFFFFFF


def crc_loops(data: Array, table: Array) -> Array:
    crc = np.uint32(0xFFFFFFFF)
    for k in range(data.size):
        crc = table[(crc ^ data[k]) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)


# --- Adler-32 ------------------------------------------------------------------------------------------------

PRIME = 65521


def adler_numpy(xp: Array, data: Array) -> Array:
    n = data.shape[0]
    first = (1 + data.sum()) % PRIME
    second = (n + (data * xp.arange(n, 0, -1)).sum()) % PRIME
    return second * 65536 + first


def adler_jax(jnp: Array, lax: Array, data: Array) -> Array:
    def step(k: Array, carry: Array) -> Array:
        first = (carry[0] + data[k]) % PRIME
        return first, (carry[1] + first) % PRIME

    first, second = lax.fori_loop(0, data.shape[0], step, (jnp.asarray(1), jnp.asarray(0)))
    return second * 65536 + first


def adler_loops(data: Array) -> Array:
    first, second = 1, 0
    for k in range(data.size):
        first = (first + data[k]) % PRIME
        second = (second + first) % PRIME
    return second * 65536 + first


# --- Rabin-Karp: where the hash of a window is that of a pattern ---------------------------------------------

BASE, MODULUS = 257, 1_000_003


def matches_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    text = integers(3, n)
    return text, text[n // 2 : n // 2 + 4]


def powers(m: int) -> np.ndarray:
    return np.array([pow(BASE, m - 1 - k, MODULUS) for k in range(m)])


def matches_numpy(xp: Array, text: Array, pattern: Array) -> Array:
    weights = powers(pattern.shape[0])
    windows = xp.lib.stride_tricks.sliding_window_view(text, pattern.shape[0])
    return (windows * weights).sum(axis=1) % MODULUS == (pattern * weights).sum() % MODULUS


def matches_jax(jnp: Array, lax: Array, text: Array, pattern: Array) -> Array:
    m = pattern.shape[0]
    weights = powers(m)
    wanted = (pattern * weights).sum() % MODULUS

    def roll(value: Array, letters: Array) -> Array:
        leaves, enters = letters
        value = ((value - leaves * int(weights[0])) * BASE + enters) % MODULUS
        return value, value == wanted

    first = (text[:m] * weights).sum() % MODULUS
    _, rest = lax.scan(roll, first, (text[:-m], text[m:]))
    return jnp.concatenate([(first == wanted)[None], rest])


def matches_loops(text: Array, pattern: Array) -> Array:
    m = pattern.size
    wanted, value, leading = 0, 0, 1
    for k in range(m):
        wanted = (wanted * BASE + pattern[k]) % MODULUS
        value = (value * BASE + text[k]) % MODULUS
        if k:
            leading = leading * BASE % MODULUS
    result = np.zeros(text.size - m + 1, np.bool_)
    result[0] = value == wanted
    for k in range(m, text.size):
        value = ((value - text[k - m] * leading) * BASE + text[k]) % MODULUS
        result[k - m + 1] = value == wanted
    return result


# --- Counts of pairs of letters ------------------------------------------------------------------------------


def pairs_numpy(xp: Array, text: Array) -> Array:
    counts = xp.zeros((26, 26), dtype="int64")
    xp.add.at(counts, (text[:-1], text[1:]), 1)
    return counts


def pairs_jax(jnp: Array, lax: Array, text: Array) -> Array:
    return jnp.zeros((26, 26), dtype="int64").at[text[:-1], text[1:]].add(1)


def pairs_loops(text: Array) -> Array:
    counts = np.zeros((26, 26), np.int64)
    for k in range(text.size - 1):
        counts[text[k], text[k + 1]] += 1
    return counts


# --- Collatz: steps until 1 ----------------------------------------------------------------------------------


def collatz_numpy(xp: Array, numbers: Array) -> Array:
    numbers, counts = numbers.copy(), xp.zeros_like(numbers)
    for _ in range(120):
        active = numbers > 1
        counts = counts + active
        after = xp.where(numbers % 2 == 0, numbers // 2, 3 * numbers + 1)
        numbers = xp.where(active, after, numbers)
    return counts


def collatz_jax(jnp: Array, lax: Array, numbers: Array) -> Array:
    def step(_: Array, carry: Array) -> Array:
        numbers, counts = carry
        active = numbers > 1
        after = jnp.where(numbers % 2 == 0, numbers // 2, 3 * numbers + 1)
        return jnp.where(active, after, numbers), counts + active

    return lax.fori_loop(0, 120, step, (numbers, jnp.zeros_like(numbers)))[1]


def collatz_loops(numbers: Array) -> Array:
    counts = np.zeros_like(numbers)
    for i in prange(numbers.size):
        n, count = numbers[i], 0
        while n > 1 and count < 120:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        counts[i] = count
    return counts


# --- Lempel, Ziv and Welch's code, by a table of the children of words ------------------------------------------


def lzw_numpy(xp: Array, text: Array) -> tuple[Array, Array]:
    """The codes of a text of four letters, and how many there are."""
    n = text.shape[0]
    child = xp.zeros((n + 4, 4), dtype="int64")
    codes = xp.zeros(n, dtype="int64")
    size, count, word = 4, 0, int(text[0])
    for i in range(1, n):
        letter = int(text[i])
        longer = int(child[word, letter])
        if longer:
            word = longer
        else:
            child[word, letter] = size
            codes[count] = word
            size, count, word = size + 1, count + 1, letter
    codes[count] = word
    return codes, xp.asarray(count + 1)


def lzw_jax(jnp: Array, lax: Array, text: Array) -> tuple[Array, Array]:
    n = text.shape[0]

    def step(i: Array, state: Array) -> Array:
        child, codes, size, count, word = state
        letter = text[i]
        longer = child[word, letter]
        known = longer > 0
        child = child.at[word, letter].set(jnp.where(known, longer, size))
        codes = codes.at[count].set(jnp.where(known, codes[count], word))
        sizes = jnp.where(known, size, size + 1), jnp.where(known, count, count + 1)
        return child, codes, *sizes, jnp.where(known, longer, letter)

    tables = jnp.zeros((n + 4, 4), dtype="int64"), jnp.zeros(n, dtype="int64")
    _, codes, _, count, word = lax.fori_loop(1, n, step, (*tables, 4, 0, text[0]))
    return codes.at[count].set(word), count + 1


def lzw_loops(text: Array) -> tuple[Array, Array]:
    n = text.shape[0]
    child = np.zeros((n + 4, 4), np.int64)
    codes = np.zeros(n, np.int64)
    size, count, word = 4, 0, text[0]
    for i in range(1, n):
        letter = text[i]
        longer = child[word, letter]
        if longer:
            word = longer
        else:
            child[word, letter] = size
            codes[count] = word
            size, count, word = size + 1, count + 1, letter
    codes[count] = word
    return codes, np.array(count + 1)


BYTES = (100, 3000, 100_000)

ROWS = (
    Program(
        "CRC-32",
        lambda n: (integers(256, n, dtype="uint32"), crc_table()),
        *(crc_numpy, crc_jax, crc_loops),
        sizes=BYTES,
        tiny=9,
        untraceable=EACH_ELEMENT,
    ),
    Program(
        "Adler-32", lambda n: (integers(256, n),), adler_numpy, adler_jax, adler_loops, sizes=BYTES, tiny=9
    ),
    Program("Rabin-Karp", matches_data, matches_numpy, matches_jax, matches_loops, sizes=BYTES, tiny=12),
    Program(
        "pairs of letters",
        lambda n: (integers(26, n),),
        *(pairs_numpy, pairs_jax, pairs_loops),
        sizes=(100, 10_000, 1_000_000),
        tiny=9,
    ),
    Program(
        "Collatz",
        lambda n: (integers(10_000, n) + 1,),
        *(collatz_numpy, collatz_jax, collatz_loops),
        sizes=(100, 3000, 100_000),
        tiny=5,
    ),
    Program(
        "Lempel-Ziv-Welch",
        lambda n: (integers(4, n) * integers(2, n, seed=1),),
        *(lzw_numpy, lzw_jax, lzw_loops),
        sizes=(50, 3000, 100_000),
        tiny=20,
        untraceable=VALUE_DECIDES,
    ),
)
