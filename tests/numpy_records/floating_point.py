"""Parts of floating-point numbers."""

from tests.support.numpy_records import Record

RECORDS = {
    "frexp": Record(("xp.frexp(x)", "xp.frexp(x * 1e-5)", "xp.frexp([5e-324, -3e-310, 1.7e308])"), rtol=0.0),
    "ldexp": Record(
        (
            "xp.ldexp(x, 3)",
            "xp.ldexp(x, y)",
            "xp.ldexp(y, np.asarray(-14))",
            "xp.ldexp(1.75, x)",
            "xp.ldexp([1.5, 3.3e-310, 5e-324, 1.1], [-1074, 40, 2000, -1060])",
        ),
        inputs=2,
        rtol=0.0,
    ),
    "modf": Record(("xp.modf(x)", "xp.modf([-0.0, -0.5])")),
    "spacing": Record(
        ("xp.spacing(x)", "xp.spacing([1e308, 5e-324, -2e-310, 1.7976931348623157e308])"), rtol=0.0
    ),
}
