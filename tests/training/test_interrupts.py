"""Ctrl-C waits for the end of a step; a second one does not."""

import signal
import threading

import pytest

from anyfill.training.run import uninterrupted


def test_a_first_interrupt_waits_until_the_end_of_the_block() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("the rest of the block")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["the rest of the block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_is_obeyed_at_once() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_with_patience_a_second_interrupt_waits_too() -> None:
    done = []

    def work() -> None:
        with uninterrupted(patient=True):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("the rest of the block")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["the rest of the block"]


def test_an_error_inside_is_not_hidden_by_a_waiting_interrupt() -> None:
    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()


def test_other_threads_may_use_it_too() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [1]
