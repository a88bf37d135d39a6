"""Ctrl-C ends a command with one line and code 130, whatever code it meets; each command is a process of its own."""

import subprocess
import sys

import pytest

from ggpi.cli import stopping

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes cannot send Ctrl-C to themselves")

START = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also if the tests run in the background of a shell
sys.argv = ["ggpi", *{arguments!r}]
def press(): os.kill(os.getpid(), signal.SIGINT)
{code}
from ggpi.__main__ import main
sys.exit(main())
"""
WHILE_IMPORTING = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {!r}: press()
sys.meta_path.insert(0, Finder())
"""
WORK = """
import ggpi.cli.main, ggpi.cli.stopping, time
def work():
    {}
ggpi.cli.main.COMMANDS["list"] = lambda options, rest: work()
"""


def outcome(code, *arguments):
    """Exit code, output and errors of a command around which this code was run."""
    words = [sys.executable, "-c", START.format(arguments=arguments, code=code)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("module", ["ggpi.cli.main", "ggpi.cli.config", "rich"])
def test_while_modules_are_imported(module):
    code = WHILE_IMPORTING.format(module)
    assert outcome(code, "diagnose", "nowhere") == (130, "", "ggpi: stopped\n")


def test_commands_that_can_continue_say_so():
    code = WHILE_IMPORTING.format("ggpi.cli.main")
    assert outcome(code, "fit")[2] == (
        "ggpi: stopped; finished work is kept, the same command continues from there\n"
    )


def test_work_is_cleaned_up_and_what_was_printed_appears():
    code = WORK.format("try: print('begun'); press(); time.sleep(600)\n    finally: print('cleaned up')")
    assert outcome(code, "list") == (130, "begun\ncleaned up\n", "ggpi: stopped\n")


def test_code_that_drops_exceptions_does_not_lose_it():
    """As the callbacks of JAX for the garbage collector do: Python prints the exception and continues."""
    code = WORK.format("type('Last', (), {'__del__': lambda self: press()})(); time.sleep(600)")
    assert outcome(code, "list") == (130, "", "ggpi: stopped\n")


def test_code_that_catches_everything_gets_a_few_seconds():
    code = WORK.format(
        "ggpi.cli.stopping.PATIENCE = 0.1; press()\n    while True:\n"
        "        try: time.sleep(600)\n        except BaseException: pass"
    ).replace("press()\n", "\n    try: press()\n    except BaseException: pass\n")
    assert outcome(code, "list") == (130, "", "ggpi: stopped\n")


def test_a_process_that_was_told_to_ignore_it_does():
    code = "signal.signal(signal.SIGINT, signal.SIG_IGN)" + WORK.format("press(); print('done')")
    assert outcome(code, "list") == (0, "done\n", "")


@pytest.mark.parametrize("error", ["ValueError", "RuntimeError"])
def test_errors_that_it_became_are_not_the_users(error):
    """Callbacks from compiled code turn the exception into errors of their own."""
    code = WORK.format(f"\n    try: press()\n    except BaseException: raise {error}('in a callback')")
    found, _, said = outcome(code, "list")
    assert found == stopping.CODE and "Traceback" not in said


def test_warnings_are_one_line():
    code = WORK.format("import warnings; warnings.warn('all plans\\nare worth 0')")
    assert outcome(code, "list") == (0, "", "ggpi: warning: all plans are worth 0\n")
