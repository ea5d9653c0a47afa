# Prints whether connections to a port are open or closed by a policy. Arguments: address, port. A port without a listener is an error.
import socket
import sys

try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()
    print("open")
except TimeoutError:
    print("closed")
