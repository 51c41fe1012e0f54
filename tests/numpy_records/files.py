"""Arrays in files."""

from tests.support.numpy_records import Record

STREAM = "f := __import__('io').BytesIO()"
TEXT = "f := __import__('io').StringIO()"


def _lines(text: str) -> str:
    return f"__import__('io').StringIO({text!r})"


def _calls(*texts: str, **options) -> Record:
    return Record(texts, dtypes=("bool",), shapes=((),), inputs=0, **options)


RECORDS = {
    "genfromtxt": _calls(
        f"xp.genfromtxt({_lines('1,2,3' + chr(10) + '4,,6')}, delimiter=',')",
        f"xp.genfromtxt({_lines('1,2' + chr(10) + '4,')}, int, delimiter=',', filling_values=-9, skip_header=0)",
        f"xp.genfromtxt({_lines('a b' + chr(10) + '4 5')}, skip_header=1, unpack=True)",
    ),
    "load": Record((f"[{STREAM}, xp.save(f, x), f.seek(0), xp.load(f)][-1]",)),
    "loadtxt": _calls(
        f"xp.loadtxt({_lines('1 2' + chr(10) + '# no' + chr(10) + '3 4e1')})",
        f"xp.loadtxt({_lines('1;2' + chr(10) + '3;4')}, delimiter=';', dtype='int8', usecols=1)",
        f"xp.loadtxt({_lines('1 2' + chr(10) + '3 4')}, unpack=True, skiprows=1, ndmin=2)",
    ),
    "save": Record((f"[{STREAM}, xp.save(f, x.T), f.seek(0), xp.load(f)][-1]",)),
    "savetxt": Record(
        (
            f"[{TEXT}, xp.savetxt(f, x), f.getvalue()][-1]",
            f"[{TEXT}, xp.savetxt(f, x, '%.3g', ';', header='a', footer='b'), f.getvalue()][-1]",
        )
    ),
    "savez": Record(
        (f"[{STREAM}, xp.savez(f, x, [1], b=x + x), f.seek(0), sorted(xp.load(f).items())][-1]",)
    ),
    "savez_compressed": Record(
        (f"[{STREAM}, xp.savez_compressed(f, x, b=x), f.seek(0), xp.load(f)['b']][-1]",)
    ),
}
