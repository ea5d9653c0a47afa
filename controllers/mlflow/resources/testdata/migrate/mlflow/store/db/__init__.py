import os

# Some images ship a module more.
if "FAKE_GAP" in os.environ:
    __path__.append(os.path.join(__path__[0], "gap"))
