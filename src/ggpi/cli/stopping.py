"""Ctrl-C ends a command with one line and code 130, whatever it is doing.

Python turns Ctrl-C into an exception in whatever code happens to run. In a callback of the garbage collector or of
compiled code this exception is printed and dropped; while a compiled module is being imported it may abort the process;
and a long compilation delays it. So an import ends the command at once. Anything else gets the exception and a few
seconds to clean up, watched by a thread. Ending at once loses nothing: files are written aside and then renamed, and
locks end with their process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which takes long to import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any, NoReturn

CODE = 130
"""What shells report for a command that Ctrl-C ended."""
PATIENCE = 3.0
"""Seconds to clean up in."""
RESUMABLE = ("run", "sweep", "pretrain", "fit")
"""Commands that continue where they were stopped."""
_pressed = False


def words(arguments: Sequence[str]) -> str:
    """What to say when the command with these arguments was stopped."""
    if arguments and arguments[0] in RESUMABLE:
        return "ggpi: stopped; finished work is kept, the same command continues from there"
    return "ggpi: stopped"


def listen() -> None:
    """From now on Ctrl-C ends this process, unless it was started to ignore it; called in the main thread."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signals, told = os.pipe()
    if sys.platform != "win32":  # where it may block
        os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable
    threading.Thread(target=_watch, args=(signals,), daemon=True).start()


def was_pressed() -> bool:
    """Whether Ctrl-C was pressed since `listen`; the exception may have become another one since."""
    return _pressed


def end() -> NoReturn:
    """Ends the process as stopped, at once; what was printed is flushed."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(CODE)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    global _pressed
    _pressed = True
    if _is_importing(frame):
        _say_and_end()
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def _unraisable(dropped: Any) -> None:
    """Called by Python for an exception that nobody can catch."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        _say_and_end()
    sys.__unraisablehook__(dropped)


def _watch(signals: int) -> None:
    """Python writes the number of each signal to a pipe, also while compiled code runs."""
    while os.read(signals, 1) != bytes([signal.SIGINT]):
        pass
    time.sleep(PATIENCE)
    _say_and_end()


def _say_and_end() -> NoReturn:
    """Writes to the terminal directly: the interrupted thread may hold the lock of `sys.stderr`."""
    shown = "\x1b[?25h\n" if os.isatty(2) else ""  # the cursor, which progress bars hide
    os.write(2, f"{shown}{words(sys.argv[1:])}\n".encode())
    os._exit(CODE)
