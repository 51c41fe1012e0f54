"""Records are frozen dataclasses to everybody who asks, though their methods are written late."""

import copy
import inspect
import pickle
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

import xarr
from xarr.base.frozen_dataclasses import record
from xarr.ir import ops
from xarr.ir.op import Op, operation


@record
class Point:
    """A point of the plane."""

    x: int
    y: float = 2.0
    tags: list[str] = field(default_factory=list, compare=False)
    secret: str = field(default="", repr=False)


@record
class Marked(Point):
    mark: str = "!"


@dataclass(frozen=True)
class Model:
    """A Point as it should be."""

    x: int
    y: float = 2.0
    tags: list[str] = field(default_factory=list, compare=False)
    secret: str = field(default="", repr=False)


@record(eq=False)
class Alone:
    size: int


@record(eq=False)
class Lonely(Alone):
    """Nothing but another name."""


@record
class Interval:
    name: str
    end: int = 0


@dataclass(frozen=True)
class ModelInterval:
    """An Interval as it should be."""

    name: str
    end: int = 0


@record
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number <= 0:
            raise ValueError(f"got {self.number}")


@operation
class Toy(Op):
    """An op with a field."""

    axis: int
    name = "toy"
    lax_name = "toy"


class Bare(Toy):
    """One more, without fields of its own."""


def test_init_of_plain_fields_is_the_one_of_the_standard_library() -> None:
    fast, model = Interval.__init__, ModelInterval.__init__
    assert inspect.signature(fast) == inspect.signature(model)
    assert fast.__annotations__ == model.__annotations__
    assert fast.__module__ == __name__
    assert fast.__qualname__ == "Interval.__init__"
    assert replace(Interval("a"), end=3) == Interval("a", 3)


def test_record_without_fields_of_its_own_has_the_methods_of_its_base() -> None:
    assert "__init__" not in Lonely.__dict__
    assert repr(Lonely(1)) == f"{Lonely.__qualname__}(size=1)"
    with pytest.raises(FrozenInstanceError):
        Lonely(1).size = 2  # type: ignore[misc]


def test_first_object_of_a_class_takes_few_calls_of_python() -> None:
    # Written by dataclass(), an `__init__` takes a hundred, and a first evaluation makes objects of many classes.
    @record
    class Fresh:
        a: int
        b: str = ""

    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        Fresh(1)
    finally:
        sys.setprofile(None)
    assert calls <= 20


def test_methods_are_written_when_they_are_looked_up() -> None:
    @record
    class Fresh:
        a: int

    assert not inspect.isfunction(Fresh.__dict__["__init__"])
    assert Fresh(1).a == 1
    assert inspect.isfunction(Fresh.__dict__["__init__"])
    assert not inspect.isfunction(Fresh.__dict__["__eq__"])


def test_record_is_a_dataclass_like_the_standard_library_s() -> None:
    assert is_dataclass(Point)
    assert inspect.signature(Point) == inspect.signature(Model)
    assert Point.__init__.__qualname__ == "Point.__init__"
    assert Point.__match_args__ == Model.__match_args__
    assert [f.name for f in fields(Point)] == [f.name for f in fields(Model)]
    assert repr(Point(1, secret="s")) == "Point(x=1, y=2.0, tags=[])"
    assert hash(Point(1)) == hash(Model(1))
    assert Point(1).tags is not Point(1).tags
    assert asdict(Point(1)) == asdict(Model(1))
    assert replace(Point(1), y=3.0) == Point(1, 3.0)


def test_equality_comes_from_the_class_and_the_fields_that_compare() -> None:
    assert Point(1, tags=["a"]) == Point(1)
    assert Point(1) != Point(2)
    assert Point(1) != Model(1)
    assert Point(1) != Marked(1)
    assert Alone(1) != Alone(1)
    assert len({Alone(1), Alone(1)}) == 2


def test_record_of_a_record_has_the_fields_of_both() -> None:
    assert Marked(1, mark="?") == Marked(1, 2.0, [], "", "?")
    assert repr(Marked(1)) == "Marked(x=1, y=2.0, tags=[], mark='!')"
    assert Marked.__doc__ == "Marked(mark)"


@pytest.mark.parametrize(
    "change",
    [
        lambda value: setattr(value, "x", 3),
        lambda value: setattr(value, "other", 3),
        lambda value: delattr(value, "x"),
    ],
    ids=["field", "other", "deletion"],
)
def test_record_never_changes(change: Callable[[Any], None]) -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="of Point, which is immutable"):
        change(point)
    assert point == Point(1)


def test_record_checks_itself_after_it_is_made() -> None:
    assert Positive(1).number == 1
    with pytest.raises(ValueError, match="got 0"):
        Positive(0)
    with pytest.raises(ValueError, match="got -1"):
        replace(Positive(1), number=-1)


def test_wrong_arguments_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1, z=2)


@pytest.mark.parametrize("value", [Point(1, 2.5, ["a"]), Marked(1), Toy(1), Bare(2)], ids=repr)
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))],
    ids=["copy", "deep", "pickle"],
)
def test_copies_and_pickles_are_equal(value: Any, copied: Callable[[Any], Any]) -> None:
    result = copied(value)
    assert result == value
    assert type(result) is type(value)


def test_op_without_fields_of_its_own_has_those_of_its_base() -> None:
    assert Bare(1) == Bare(1)
    assert Bare(1) != Toy(1)
    assert repr(Bare(1)) == "Bare(axis=1)"
    assert replace(Bare(1), axis=2) == Bare(2)


def test_ops_of_the_library_have_their_signatures() -> None:
    assert str(inspect.signature(ops.Transpose)).startswith("(permutation")
    assert str(inspect.signature(ops.Add)) == "() -> None"


def test_late_names_of_the_package_are_listed_and_found() -> None:
    for name in (
        "explain",
        "explain_broadcast",
        "explain_gather",
        "explain_scatter",
        "jit",
        "random",
        "stablehlo",
    ):
        assert name in dir(xarr)
        assert getattr(xarr, name).__name__.rpartition(".")[2] == name
    with pytest.raises(AttributeError, match="module 'xarr' has no attribute 'explian'"):
        getattr(xarr, "explian")  # noqa: B009
