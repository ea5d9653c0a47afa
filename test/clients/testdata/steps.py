"""What the scripts share."""

import contextlib
import io
import os
import sys
import time

NAMESPACE = os.environ["NAMESPACE"]


def did(what):
    """Tell the test of a step that was taken; it makes a table of them."""
    print("did:", what, flush=True)


@contextlib.contextmanager
def printed():
    """Collect what a client prints in the block, and print it."""
    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            yield text
    finally:
        sys.stdout.write(text.getvalue())


def eventually(check, what, patience=120):
    """Wait until the check is true."""
    deadline = time.monotonic() + patience
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)
