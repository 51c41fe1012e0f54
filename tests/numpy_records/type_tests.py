"""Questions about elements and element types."""

from tests.support.numpy_records import Record

RECORDS = {
    **{name: Record((f"xp.{name}(x)",)) for name in ("isneginf", "isposinf")},
    **{name: Record((f"xp.{name}(x)", f"xp.{name}(x * 1j)")) for name in ("iscomplex", "isreal")},
    **{name: Record((f"xp.{name}(x)", f"xp.{name}(3j)")) for name in ("iscomplexobj", "isrealobj")},
}
