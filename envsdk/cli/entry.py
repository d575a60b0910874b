"""The door of the program ``envsdk``: from the first moment on, an interrupt is one line, one envelope, exit code 130.

Loads nothing before an interrupt is caught: loading the program itself takes longer than a finger. Not promised: the
interpreter's own first hundredth of a second.
"""

import signal
import sys


def main() -> None:
    """Run the process's own command line and end the process."""
    try:
        from envsdk.cli.app import main as run_and_exit

        run_and_exit()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not cut the first one's answer
        from envsdk.cli.app import interrupted

        sys.exit(interrupted(sys.argv[1:]))
