"""The console script `ggpi`, and `python -m ggpi`: listens for Ctrl-C before anything else is imported."""

import sys
import warnings

from ggpi.cli import stopping


def main() -> int:
    """Runs the command that the process was started with."""
    try:
        stopping.listen()
        from ggpi.cli.main import main as run

        warnings.formatwarning = _one_line
        code = run()
    except BaseException:  # compiled code turns the exception of Ctrl-C into others
        if not stopping.was_pressed():
            raise
        print(stopping.words(sys.argv[1:]), file=sys.stderr)
        code = stopping.CODE
    if stopping.was_pressed():
        stopping.end()
    return code


def _one_line(message: Warning | str, *_: object, **__: object) -> str:
    return f"ggpi: warning: {' '.join(str(message).split())}\n"


if __name__ == "__main__":
    sys.exit(main())
