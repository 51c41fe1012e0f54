"""Tables of who waits where."""

import json
import sys
import threading
from types import TracebackType

from xarr.communication.communicator import CollectiveCall
from xarr.distributed.reports import (
    Standing,
    begin_at_script,
    describe,
    line_of,
    line_of_thread,
    ranks,
    table,
)

CALL = CollectiveCall("all_reduce", "(float64[3], add)", (0, 1), "train.py:7 in step")


def test_a_table_has_a_row_for_each_replica_in_order() -> None:
    rows = [
        Standing(10, "has returned"),
        Standing(2, "runs", call=CALL, number=4, line="train.py:9 in main"),
        Standing(0, "waits", 1.26, CALL, 5, (2, 10)),
    ]
    assert table("they differ", rows, "do this").splitlines() == [
        "they differ",
        "  replica  0: waits 1.3 s for replicas 2, 10 in #5 all_reduce(float64[3], add), built at train.py:7 in step",
        "  replica  2: runs at train.py:9 in main, after #4 all_reduce(float64[3], add), built at train.py:7 in step",
        "  replica 10: has returned, before its first collective",
        "do this",
    ]


def test_long_lists_of_replicas_are_shortened() -> None:
    assert ranks((3,)) == "replica 3"
    assert ranks((3, 5)) == "replicas 3, 5"
    assert ranks(tuple(range(4096))) == "replicas 0, 1, 2, … 4095 (4096 of them)"


def test_a_call_without_a_line_is_described_without_one() -> None:
    assert describe(CollectiveCall("recv", "(channel 3)", ()), 0) == "#0 recv(channel 3)"
    assert describe(None, 0) == "no collective"


def test_the_line_of_a_stack_is_the_users() -> None:
    frame = sys._getframe()
    assert line_of(frame) == f"test_reports.py:{frame.f_lineno} in test_the_line_of_a_stack_is_the_users"
    assert line_of(None) == ""


def test_a_traceback_begins_with_the_users_line() -> None:
    try:
        json.loads("{")
    except ValueError as error:
        own, library = error.__traceback__, error.__traceback__
    assert begin_at_script(own) is own
    assert library is not None
    assert library.tb_next is not None
    outside = TracebackType(own, library.tb_next.tb_frame, 0, 1)
    assert begin_at_script(outside) is own
    assert begin_at_script(library.tb_next) is library.tb_next, "there is none of the user's"
    assert begin_at_script(None) is None


def test_the_line_of_a_thread_is_not_that_of_the_library_it_is_in() -> None:
    ready, done = threading.Event(), threading.Event()

    def body() -> None:
        ready.set()
        done.wait()

    thread = threading.Thread(target=body)
    thread.start()
    ready.wait()
    try:
        assert line_of_thread(thread.ident).endswith(" in body")
    finally:
        done.set()
        thread.join()
    assert line_of_thread(thread.ident) == ""
