# Prints whether a port can be reached: arguments are an address and the port. One at which nothing listens is an error.
import socket
import sys

try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()
    print("open")
except TimeoutError:
    print("closed")
