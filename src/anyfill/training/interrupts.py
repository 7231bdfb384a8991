"""Ctrl-C between steps, never inside one: half an optimizer step is no state to resume from."""

import signal
import threading
from types import FrameType, TracebackType


class Uninterrupted:
    """Inside, a first Ctrl-C waits until the end of the block; a second one is obeyed at once.

    ``patient``: later ones wait too, for what is done inside must be done by all processes or none.

    Only where Python's own handler is in place: a program that handles the signal itself keeps doing so.
    """

    def __init__(self, *, patient: bool = False) -> None:
        self._patient = patient
        self._waiting = False
        self._installed = False

    def __enter__(self) -> None:
        self._waiting = False
        main = threading.current_thread() is threading.main_thread()
        self._installed = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._installed:
            signal.signal(signal.SIGINT, self._note)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._waiting and kind is None:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._waiting and not self._patient:
            raise KeyboardInterrupt
        self._waiting = True
