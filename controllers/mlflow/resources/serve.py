# Runs the command of argv[2:]. With SQLite it runs while no other server holds the file of argv[1], which is on the volume.
import fcntl, os, signal, subprocess, sys

STOP_WITHIN = 45  # seconds, below the grace period of the pod


def say(text):
    print("serve: " + text, file=sys.stderr, flush=True)


def leave(*_):
    sys.exit(0)


def hold(path):
    try:
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o660)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another server still uses this volume; waiting until it has stopped.")
            fcntl.flock(held, fcntl.LOCK_EX)
            say("The other server has stopped.")
    except OSError as problem:
        say("This volume cannot be locked (%s); the server starts without a lock." % problem.strerror)


def stop(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.alarm(STOP_WITHIN)
    os.kill(0, signal.SIGTERM)


stores = [os.environ.get(name, "") for name in ("MLFLOW_BACKEND_STORE_URI", "MLFLOW_REGISTRY_STORE_URI")]
if not any(uri.startswith("sqlite") for uri in stores):
    os.execvp(sys.argv[2], sys.argv[2:])
signal.signal(signal.SIGTERM, leave)
hold(sys.argv[1])
server = subprocess.Popen(sys.argv[2:])
signal.signal(signal.SIGALRM, lambda *_: os.kill(0, signal.SIGKILL))
signal.signal(signal.SIGTERM, stop)
code = server.wait()
stop()
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
sys.exit(code if code >= 0 else 128 - code)
