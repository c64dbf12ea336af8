"""The command ``refault``, in this process: ``python -m refault``, and the program that pip installs."""

import os
import signal
import sys

from ._refault import command


def open_streams():
    """Opens standard streams that are closed: a file must not get the number of one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def main():
    """Runs it; the exit status."""
    open_streams()
    # Ctrl-C ends it, as any program; where whoever started it ignores Ctrl-C, it goes on.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command(["refault", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
