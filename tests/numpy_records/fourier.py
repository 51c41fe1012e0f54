"""Fourier transforms; tests/test_fft.py looks at them more closely."""

from tests.support.numpy_records import Record

_RTOL = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-12, "complex64": 1e-4, "bool": 1e-12, "int8": 1e-12}
_SHAPES = ((1,), (5,), (3, 4), (0, 3), (2, 3, 1, 4))
#: NumPy 2.4.6 reads beyond its operand where these transform an empty axis, which none of their calls does here.
_FROM_HALF = ("hfft", "irfft")
_INNER_EMPTY = ((1,), (5,), (3, 4), (2, 0, 3), (2, 3, 1, 4))
_HALF = "of float16, whose factors of `norm` NumPy rounds to float16, more exact"


def _one(name: str) -> Record:
    calls = ("x", "x, 3", "x, axis=0", "x, n=4, norm='ortho'", "x, n=5, axis=0, norm='forward'")
    return Record(
        tuple(f"xp.fft.{name}({call})" for call in calls),
        dtypes=tuple(_RTOL),
        shapes=_INNER_EMPTY if name in _FROM_HALF else _SHAPES,
        special=False,
        limits=(-9, 9),
        rtol=_RTOL,
        differs=_HALF,
    )


def _many(name: str) -> Record:
    calls = ("x", "x, (3, 3), (0, 1)", "x, axes=(1, 0)", "x, (2, -1), axes=(0, 1), norm='ortho'")
    return Record(
        tuple(f"xp.fft.{name}({call})" for call in calls),
        dtypes=tuple(_RTOL),
        shapes=_SHAPES,
        special=False,
        limits=(-9, 9),
        rtol=_RTOL,
        differs=_HALF,
    )


RECORDS = {
    **{f"fft.{name}": _one(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{name}": _many(name) for name in ("fft2", "ifft2", "fftn", "ifftn")},
    **{f"fft.{name}": _many(name) for name in ("rfft2", "irfft2", "rfftn", "irfftn")},
    **{
        f"fft.{name}": Record(
            tuple(f"xp.fft.{name}({call})" for call in ("1", "8", "5, 0.1", "4, d=2.0")),
            dtypes=("bool",),
            shapes=((),),
            inputs=0,
        )
        for name in ("fftfreq", "rfftfreq")
    },
    **{
        f"fft.{name}": Record(
            (f"xp.fft.{name}(x)", f"xp.fft.{name}(x, 0)", f"xp.fft.{name}(x, axes=(-1,))"),
            shapes=tuple(shape for shape in _SHAPES if shape),
        )
        for name in ("fftshift", "ifftshift")
    },
}
