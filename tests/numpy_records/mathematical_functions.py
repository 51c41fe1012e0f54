"""Element-wise functions beyond the Array API standard."""

from tests.support.numpy_records import Record

CLOSE = {"float16": 2e-3, "float32": 1e-6, "float64": 4e-15, "complex64": 1e-6}
#: Of integers of 8 bits results are float16.
NARROW = {**CLOSE, "int8": 2e-3, "uint8": 2e-3, "bool": 2e-3}


RECORDS = {
    "i0": Record(("xp.i0(x)",), limits=(-8, 90), rtol={**CLOSE, "float16": 0.1}),
    "sinc": Record(("xp.sinc(x)",), limits=(-40, 40), rtol={**CLOSE, "float16": 0.1, "float32": 1e-5}),
    "heaviside": Record(("xp.heaviside(x, y)", "xp.heaviside(x, 0.5)"), inputs=2, rtol=0.0),
    "logaddexp2": Record(("xp.logaddexp2(x, y)", "xp.logaddexp2(x, 1.5)"), inputs=2, rtol=NARROW),
    "float_power": Record(
        ("xp.float_power(x, y)", "xp.float_power(x, -2)", "xp.float_power(2, x)", "xp.float_power(x, 1j)"),
        inputs=2,
        special=False,
        limits=(0, 9),
        rtol=1e-13,
    ),
    "gcd": Record(("xp.gcd(x, y)", "xp.gcd(x, 12)", "xp.gcd(x, 0)"), inputs=2),
    "lcm": Record(("xp.lcm(x, y)", "xp.lcm(x, 12)", "xp.lcm(x, 0)"), inputs=2),
    "angle": Record(("xp.angle(x)", "xp.angle(x, deg=True)"), rtol=NARROW),
    "real_if_close": Record(
        ("xp.real_if_close(x)", "xp.real_if_close(x + 1e-14j)", "xp.real_if_close(x, tol=1)"), rtol=0.0
    ),
    "nan_to_num": Record(
        (
            "xp.nan_to_num(x)",
            "xp.nan_to_num(x, nan=3, posinf=7.5, neginf=-1)",
            "xp.nan_to_num(x, True, np.ones(np.shape(x)))",
        ),
        rtol=0.0,
    ),
}
