import os

VERSION = os.environ.get("FAKE_VERSION", "3.14.0")
