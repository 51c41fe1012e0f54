"""Windows of signal processing."""

from tests.support.numpy_records import Record


def _record(name: str, rtol: float) -> Record:
    calls = tuple(f"xp.{name}({samples})" for samples in (-2, 0, 1, 2, 3, 8, 51))
    return Record(calls, dtypes=("bool",), shapes=((),), inputs=0, rtol=rtol)


RECORDS = {
    **{name: _record(name, 1e-15) for name in ("bartlett", "blackman", "hamming", "hanning")},
    "kaiser": Record(
        tuple(f"xp.kaiser({samples}, {beta})" for samples in (-2, 0, 1, 2, 3, 51) for beta in (0, 8.6, 14)),
        dtypes=("bool",),
        shapes=((),),
        inputs=0,
        rtol=4e-15,
    ),
}
