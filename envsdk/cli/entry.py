"""The door of the program ``envsdk``: from the first moment on, an interrupt is one line, one envelope, exit code 130.

A request to end (SIGTERM, as service managers, schedulers and container engines send it) is an interrupt: what was
started is closed, what ended is kept. Loads nothing before an interrupt is caught: loading the program itself takes
longer than a finger. Not promised: the interpreter's own first hundredth of a second.
"""

import signal
import sys
from typing import Any


def main() -> None:
    """Run the process's own command line and end the process."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        from envsdk.cli.app import main as run_and_exit

        run_and_exit()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not cut the first one's answer
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        from envsdk.cli.app import interrupted

        sys.exit(interrupted(sys.argv[1:]))


def _interrupt(*_: Any) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a script
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)
