"""Values of loop programs as expressions of CUDA C++: types, constants, operations, and the helpers that they need.

Nothing depends on a library: float16 is a struct of its bits, complex numbers are pairs.  bfloat16, float8 and the
like are integers in loop programs already.  Signed integers wrap, by way of unsigned ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from xarr.compiler.functions.conversion import narrow
from xarr.compiler.loop_ir.loops import LoopError
from xarr.compiler.loop_ir.scalars import BOOL, COMPARISONS, DType, Value, constant_of
from xarr.dtypes import bfloat16

#: What every text begins with.
TYPES: Final = """\
typedef signed char int8; typedef short int16; typedef int int32; typedef long long int64;
typedef unsigned char uint8; typedef unsigned short uint16; typedef unsigned int uint32;
typedef unsigned long long uint64;
"""
#: By a word that uses of them contain.
HELPERS: Final[dict[str, str]] = {
    "bits<": """\
template <class To, class From> __device__ To bits(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
""",
    "complex64": "struct alignas(8) complex64 { float real, imag; };\n",
    "complex128": "struct alignas(16) complex128 { double real, imag; };\n",
    "float16": """\
struct float16 { uint16 bits; };
#ifdef XARR_EMULATED
__device__ float wide(float16 x) { _Float16 y; memcpy(&y, &x, sizeof y); return (float)y; }
template <class T> __device__ float16 half(T x) { _Float16 y = (_Float16)x; float16 z; memcpy(&z, &y, 2); return z; }
#else
__device__ float wide(float16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
__device__ float16 half(float x) { uint16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); return {y}; }
__device__ float16 half(double x) { uint16 y; asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y) : "d"(x)); return {y}; }
__device__ float16 half(int64 x) { uint16 y; asm("cvt.rn.f16.s64 %0, %1;" : "=h"(y) : "l"(x)); return {y}; }
__device__ float16 half(uint64 x) { uint16 y; asm("cvt.rn.f16.u64 %0, %1;" : "=h"(y) : "l"(x)); return {y}; }
#endif
""",
    # Neighbouring elements as one, which is loaded and stored at once.
    "vectors<": """\
#ifndef XARR_EMULATED
template <class T, int n> struct alignas(n * sizeof(T)) vector { T at[n]; };
template <int n, class T> __device__ vector<T, n> *vectors(T *x) { return (vector<T, n> *)x; }
template <int n, class T> __device__ const vector<T, n> *vectors(const T *x) { return (const vector<T, n> *)x; }
#endif
""",
    # The least and the greatest number as floats, rounded away from 0 where the type has more digits.
    "saturated<": """\
template <class To, class From> __device__ To saturated(From x, To low, To high) {
    return x != x ? (To)0 : x <= (From)low ? low : x >= (From)high ? high : (To)x;
}
""",
    # Of two zeros the sum is -0 if both are.  One instruction knows zeros and NaN too, from Ampere on.
    "maximum(": """\
template <class T> __device__ T maximum(T x, T y) {
    return x > y || x != x ? x : x == y && x == 0 ? x + y : y;
}
#if __CUDA_ARCH__ >= 800
__device__ float maximum(float x, float y) {
    float z;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
#endif
""",
    "minimum(": """\
template <class T> __device__ T minimum(T x, T y) {
    return x < y || x != x ? x : x == y && x == 0 ? -(-x - y) : y;
}
#if __CUDA_ARCH__ >= 800
__device__ float minimum(float x, float y) {
    float z;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
#endif
""",
    # NaN stays NaN.
    "at_least(": """\
#if __CUDA_ARCH__ >= 800
__device__ float at_least(float x, float low) {
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(low));
    return y;
}
#else
__device__ float at_least(float x, float low) { return x < low ? low : x; }
#endif
""",
    "at_most(": """\
#if __CUDA_ARCH__ >= 800
__device__ float at_most(float x, float high) {
    float y;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(high));
    return y;
}
#else
__device__ float at_most(float x, float high) { return x > high ? high : x; }
#endif
""",
    # To nearest even; one instruction from Ampere on, of which all NaN become one, as they do in float16.
    "narrow_bfloat16(": """\
#if __CUDA_ARCH__ >= 800
__device__ uint16 narrow_bfloat16(float x) {
    uint16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
#else
__device__ uint16 narrow_bfloat16(float x) {
    uint32 bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? bits >> 16 & 0x8000 | 0x7fc0 : bits + 0x7fff + (bits >> 16 & 1) >> 16;
}
#endif
""",
    "add_parts(": """\
template <class T> __device__ void add_parts(T *at, T value) {
    atomicAdd(&at->real, value.real);
    atomicAdd(&at->imag, value.imag);
}
""",
    # An element is exchanged until no other thread came between; of 8 or 16 bits the word around it.
    "combine(": """\
template <int bytes> struct word_of { typedef uint32 type; };
template <> struct word_of<8> { typedef uint64 type; };
template <class T, class F> __device__ void combine(T *at, F combined) {
    typedef typename word_of<sizeof(T)>::type Word;
    Word *word = (Word *)((uint64)at & ~(uint64)(sizeof(Word) - 1));
    int shift = ((uint64)at & (sizeof(Word) - 1)) * 8;
    Word mask = (Word)(~0ull >> (64 - 8 * sizeof(T))) << shift, old = *word, before;
    do {
        before = old;
        Word part = before >> shift;
        T element;
        memcpy(&element, &part, sizeof element);
        element = combined(element);
        part = 0;
        memcpy(&part, &element, sizeof element);
        old = atomicCAS(word, before, (before & ~mask) | part << shift);
    } while (old != before);
}
""",
}
_HALF: Final = np.dtype(np.float16)
_BFLOAT16: Final = np.dtype(bfloat16)
INFIX: Final = {
    **{"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "and": "&", "or": "|", "xor": "^"},
    **{"shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
}
#: How tightly the operators of C++ bind; what stands before its operand does more, and names and calls most.
_LEVELS: Final = {
    **{"?": 0, ":": 0, "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6},
    **{"<": 7, "<=": 7, ">": 7, ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10},
}
_PREFIX: Final = 11
_NAME: Final = 12
#: Operators whose levels few remember: their operands stand in parentheses.
_BITWISE: Final = frozenset({"|", "^", "&", "<<", ">>"})
#: Of bools.
_LOGIC: Final = {"and": "&&", "or": "||", "xor": "!="}
_WRAPPING: Final = ("add", "sub", "mul", "shl")
_FUNCTIONS: Final = {
    **{name: name for name in ("sqrt", "rint", "floor", "ceil", "trunc", "copysign", "fma")},
    **{"abs": "fabs", "rem": "fmod"},
}


def type_name(dtype: DType) -> str:
    """The type of an element."""
    return {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)


def helpers_of(text: str) -> str:
    """The types and the helpers that a text uses."""
    return TYPES + "".join(helper for word, helper in HELPERS.items() if word in text)


def literal(value: Value) -> str:
    """A constant, to the bit."""
    number, dtype = constant_of(value), value.dtype
    if dtype == BOOL:
        return "true" if number else "false"
    if dtype == _HALF:
        return f"float16{{{int(number.view(np.uint16)):#06x}}}"
    if dtype.kind == "f":
        suffix, width = ("f", 32) if dtype.itemsize == 4 else ("", 64)
        if np.isfinite(number):
            return f"{number!s}{suffix}"
        mark = "u" if width == 32 else "ull"
        return f"bits<{type_name(dtype)}>({int(number.view(f'u{width // 8}')):#x}{mark})"
    if dtype.kind == "u":
        return f"{int(number)}{'ull' if dtype.itemsize == 8 else 'u'}"
    if int(number) == -(2**63):
        return "(-9223372036854775807ll - 1)"
    return f"{int(number)}ll" if dtype.itemsize == 8 and abs(int(number)) >= 2**31 else str(int(number))


def infix(sign: str, left: str, right: str) -> str:
    """An operation on two expressions, in parentheses where they bind less tightly."""
    least = _LEVELS[sign]
    if sign in _BITWISE:
        return f"{enclose(left, _PREFIX)} {sign} {enclose(right, _PREFIX)}"
    if sign == "+" and right.startswith("-") and _level(right[1:]) == _NAME:
        sign, right = "-", right[1:]
    return f"{enclose(left, least)} {sign} {enclose(right, least + 1)}"


def helper_of(value: Value) -> tuple[str, tuple[Value, ...]] | None:
    """The helper that computes a value of several operations at once, and its arguments; None where none does.

    Numbers are brought into a bound, or rounded to bfloat16.  Of zeros an instruction for extremes tells the signs, and
    of a bound that is NaN it makes NaN; a comparison does neither.
    """
    if value.op == "select" and value.dtype == np.float32:
        condition, bound, x = value.operands
        name = {"lt": "at_least", "gt": "at_most"}.get(condition.op)
        is_bound = bound.op == "constant" and condition.operands == (x, bound)
        is_usual = is_bound and constant_of(bound) != 0 and not np.isnan(constant_of(bound))
        return (name, (x, bound)) if name and is_usual else None
    if value.op == "convert" and value.dtype == np.uint16:
        # All values of equal operations on equal operands are one.
        for x in _numbers_of_bits(value):
            if narrow(x, _BFLOAT16) is value:
                return "narrow_bfloat16", (x,)
    return None


def _numbers_of_bits(value: Value) -> list[Value]:
    """The float32 whose bits a value of integers begins with, along its last operands that are no constants."""
    while value.operands and value.op in ("convert", "or", "shl", "shr", "bitcast"):
        if value.op == "bitcast" and value.operands[0].dtype == np.float32:
            return [value.operands[0]]
        others = [x for x in value.operands if x.op != "constant"]
        if not others:
            break
        value = others[-1]
    return []


def choose(condition: str, chosen: str, other: str) -> str:
    """One of two expressions."""
    return f"{enclose(condition, 1)} ? {enclose(chosen, 1)} : {enclose(other, 1)}"


def enclose(text: str, least: int) -> str:
    """An expression, in parentheses where it binds less tightly than a level."""
    return text if _level(text) >= least else f"({text})"


@lru_cache(4096)
def _level(text: str) -> int:
    """The level of the outermost operator of an expression, around which there are blanks."""
    depth, words, begin = 0, [], 0
    ends_early = False
    for at, letter in enumerate(f"{text} "):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and letter == " ":
            words.append(text[begin:at])
            begin = at + 1
        ends_early |= depth == 0 and letter == ")" and at < len(text) - 1
    if len(words) > 1:
        return min(_LEVELS.get(word, _NAME) for word in words)
    return _PREFIX if text[0] in "-!~" or (text[0] == "(" and ends_early) else _NAME


def expression(value: Value, names: Sequence[str]) -> str:
    """The operation of a value on operands, each a name, a constant or an expression; loads are the emitter's."""
    op, dtype = value.op, value.dtype
    operand = value.operands[0].dtype
    if op in ("real", "imag"):
        return f"{enclose(names[0], _NAME)}.{op}"
    if op == "complex":
        return f"{type_name(dtype)}{{{names[0]}, {names[1]}}}"
    if op == "select":
        return choose(*names)
    if op == "rarely":
        return choose(names[0], names[2], names[1])
    if op == "bitcast":
        return f"bits<{type_name(dtype)}>({_with_type(names[0], operand)})"
    if op == "convert":
        return _conversion(names[0], operand, dtype)
    if operand == _HALF:
        return _of_half(value, names)
    return _of_floats(op, dtype, names) if operand.kind == "f" else _of_integers(op, operand, dtype, names)


def _with_type(name: str, dtype: DType) -> str:
    """A name, or a constant as of its own type: those of less than 64 bits are written as int."""
    return name if name.isidentifier() else f"({type_name(dtype)}){enclose(name, _PREFIX)}"


def _of_half(value: Value, names: Sequence[str]) -> str:
    """An operation on float16, by way of float, rounded once."""
    if value.op == "neg":
        return f"float16{{(uint16)({names[0]}.bits ^ 0x8000)}}"
    if value.op == "abs":
        return f"float16{{(uint16)({names[0]}.bits & 0x7fff)}}"
    if value.op == "copysign":
        return f"float16{{(uint16)(({names[0]}.bits & 0x7fff) | ({names[1]}.bits & 0x8000))}}"
    text = _of_floats(value.op, np.dtype(np.float32), [f"wide({name})" for name in names])
    return text if value.op in COMPARISONS else f"half({text})"


def _of_floats(op: str, dtype: DType, names: Sequence[str]) -> str:
    if op == "neg":
        return f"-({names[0]})" if names[0].startswith("-") else f"-{enclose(names[0], _PREFIX)}"
    if op in ("maximum", "minimum"):
        return f"{op}({names[0]}, {names[1]})"
    if op in _FUNCTIONS:
        return f"{_FUNCTIONS[op]}{'f' if dtype.itemsize == 4 else ''}({', '.join(names)})"
    return infix(INFIX[op], *names)


def _of_integers(op: str, operand: DType, dtype: DType, names: Sequence[str]) -> str:
    """An operation on integers or bools, modulo 2 ** bits."""
    name, is_wide = type_name(dtype), operand.itemsize == 8
    word = "uint64" if is_wide else "uint32"
    own = [enclose(each, _PREFIX) for each in names]
    if op == "neg":
        return f"({name})(0u - ({word}){own[0]})"
    if op == "not":
        return f"!{own[0]}" if dtype == BOOL else f"({name})~{own[0]}"
    if op == "popcount":
        return f"({name})__popcll((uint64)(uint{8 * operand.itemsize}){own[0]})"
    if op == "count_leading_zeros":
        spare = 64 - 8 * operand.itemsize
        return f"({name})(__clzll((int64)(uint64)(uint{8 * operand.itemsize}){own[0]}) - {spare})"
    if dtype == BOOL and op in _LOGIC:
        return infix(_LOGIC[op], *names)
    text = infix(INFIX[op], *names)
    if op in _WRAPPING and operand.kind != "u":
        left, right = (f"({word}){each}" for each in own)
        return f"({name})({left} {INFIX[op]} {right})"
    # Shorter integers are computed as int, which holds all but products.
    if op == "mul" and operand.itemsize < 4:
        return f"({name})(({word}){own[0]} * {own[1]})"
    return f"({name})({text})" if operand.itemsize < 4 and op not in COMPARISONS else text


def _conversion(name: str, old: DType, new: DType) -> str:
    if old == _HALF and new != _HALF:
        name, old = f"wide({name})", np.dtype(np.float32)
    if new == BOOL:
        return infix("!=", name, "0")
    if new == _HALF:
        wider = {"f": type_name(old), "u": "uint64", "i": "int64", "b": "float"}[old.kind]
        return f"half(({wider}){enclose(name, _PREFIX)})"
    if old.kind == "f" and new.kind in "iu":
        info, type = np.iinfo(new), type_name(new)
        low = "(-9223372036854775807ll - 1)" if info.min == -(2**63) else f"{info.min}"
        high = f"{info.max}{'u' if new.kind == 'u' else ''}{'ll' if new.itemsize == 8 else ''}"
        return f"saturated<{type}>({name}, ({type}){low}, ({type}){high})"
    if "c" in (old.kind, new.kind):
        raise LoopError(f"no CUDA C++ for a conversion of {old} to {new}")
    return f"({type_name(new)}){enclose(name, _PREFIX)}"
