from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from prudent.errors import ModelError, PrudentError
from prudent.runtime.executors import check_executor, check_sendable, finished
from prudent.runtime.limits import Stopped


def divide(a, b):
    return a / b


@pytest.mark.parametrize("workers", [0, 3])
def test_every_call_comes_back_with_its_number_and_failures_do_too(workers):
    executor = ThreadPoolExecutor(workers) if workers else None
    done = dict(finished(executor, divide, [(6, 1), (6, 0), (6, 3)], lambda: False))
    assert (done[0].result(), done[2].result()) == (6, 2)
    assert isinstance(done[1].exception(), ZeroDivisionError)


def test_once_asked_to_stop_only_what_has_begun_is_finished():
    begun, go_on = Event(), Event()

    def work(number):
        begun.set()
        assert go_on.wait(10)
        return number

    def stop():
        begun.wait(10)
        go_on.set()
        return True

    with ThreadPoolExecutor(1) as executor:
        done = list(finished(executor, work, [(i,) for i in range(100)], stop))
    assert 1 <= len(done) < 100
    assert list(finished(None, divide, [(1, 1)], lambda: True)) == []


def test_an_executor_has_no_more_calls_than_it_may():
    class Counting(ThreadPoolExecutor):
        handed_out = 0

        def submit(self, *call):
            self.handed_out += 1
            return super().submit(*call)

    with Counting(2) as executor:
        seen, calls = [], [(i, 2) for i in range(20)]
        for number, future in finished(executor, divide, calls, lambda: len(seen) == 15, at_once=3):
            assert executor.handed_out <= len(seen) + 4 and future.result() == number / 2
            seen.append(number)
    assert 15 <= len(seen) <= 18 and executor.handed_out == 18


def test_what_was_not_waited_for_is_cancelled():
    go_on = Event()
    with ThreadPoolExecutor(1) as executor:
        calls = finished(executor, lambda wait: wait and go_on.wait(10), [(False,), *[(True,)] * 50], lambda: False)
        next(calls)
        calls.close()
        go_on.set()
    assert executor._work_queue.qsize() <= 1


def test_what_is_no_executor_is_refused():
    class Client:
        def get_executor(self):
            """As Dask's."""

    check_executor(None)
    with pytest.raises(PrudentError, match=r"executor is a Client; it must be an executor, such as one of client.get_"):
        check_executor(Client())
    with pytest.raises(PrudentError, match="executor is a int; it must be an executor"):
        check_executor(2)


def test_functions_without_a_name_of_their_own_cannot_be_sent():
    check_sendable("make", divide, "none")
    with pytest.raises(
        PrudentError, match=r"make cannot be sent to another process \(.*\); define it with def in a module"
    ):
        check_sendable("make", lambda: 1, "none")


@pytest.mark.parametrize("error", [ModelError(["first", "second"]), Stopped("time", "simulating runs")])
def test_errors_come_back_from_another_process_as_they_were(error):
    kind, arguments = error.__reduce__()[:2]
    again = kind(*arguments)
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
