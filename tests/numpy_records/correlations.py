"""Covariances and convolutions."""

from tests.support.numpy_records import Record

#: Sums in another order.
CLOSE = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-12, "complex64": 4e-6}
UNSEEN = "negative and fractional weights go unseen in a traced function"


def _sliding(name: str) -> Record:
    calls = [f"xp.{name}(x, {v}, {mode!r})" for v in ("[1, 2, 3]", "y") for mode in ("full", "same", "valid")]
    more = (f"xp.{name}([3, 1], x)", f"xp.{name}(x, y[:2] * 1j)", f"xp.{name}(x[:3], y)")
    return Record(
        (*calls, *more),
        shapes=((0,), (1,), (5,), (8,), (3, 4)),
        inputs=2,
        special=False,
        limits=(-50, 50),
        rtol=CLOSE,
    )


RECORDS = {
    "cov": Record(
        (
            "xp.cov(x)",
            "xp.cov(x, y, rowvar=False)",
            "xp.cov(x, bias=True)",
            "xp.cov(x, ddof=3)",
            "xp.cov(x, dtype='complex128')",
            "xp.cov(x, fweights=np.arange(np.shape(x)[-1]) + 1)",
            "xp.cov(x, y, ddof=2, aweights=np.arange(np.shape(x)[-1]) + 0.5)",
            "xp.cov(x, None, True, False, None, np.full(np.shape(x)[-1], 2.0), np.arange(np.shape(x)[-1]) + 0.5)",
        ),
        shapes=((1,), (5,), (3, 4), (0, 4), (4, 2), (1, 2, 3)),
        inputs=2,
        special=False,
        limits=(-50, 50),
        rtol=CLOSE,
        differs=UNSEEN,
    ),
    "corrcoef": Record(
        ("xp.corrcoef(x)", "xp.corrcoef(x, y, False)", "xp.corrcoef(x, dtype='float32')"),
        shapes=((1,), (5,), (3, 4), (4, 2)),
        inputs=2,
        special=False,
        limits=(-50, 50),
        rtol={**CLOSE, "float64": 1e-6},
    ),
    "convolve": _sliding("convolve"),
    "correlate": _sliding("correlate"),
}
