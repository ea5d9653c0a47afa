"""Helpers of the scripts."""

import contextlib
import io
import os
import sys
import time

NAMESPACE = os.environ["NAMESPACE"]


def log_step(step):
    """Report a completed step to the test, which prints a table of all steps."""
    print("step:", step, flush=True)


@contextlib.contextmanager
def captured():
    """Capture the output of a client in the block, and print it."""
    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            yield text
    finally:
        sys.stdout.write(text.getvalue())


def eventually(check, message, timeout=120):
    """Wait until the check is true."""
    deadline = time.monotonic() + timeout
    while not check():
        assert time.monotonic() < deadline, message
        time.sleep(0.2)
