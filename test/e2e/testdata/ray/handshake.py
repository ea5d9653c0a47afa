# Prints whether the client port at the address argv[1] talks to a client with or without a certificate: argv[2] is `with` or `without`.
import os
import socket
import ssl
import sys

address, certificate = sys.argv[1:]
host, port = address.split(":")
context = ssl.create_default_context(cafile=os.environ["RAY_TLS_CA_CERT"])
context.set_alpn_protocols(["h2"])
if certificate == "with":
    context.load_cert_chain(os.environ["RAY_TLS_SERVER_CERT"], os.environ["RAY_TLS_SERVER_KEY"])
try:
    with context.wrap_socket(socket.create_connection((host, port), 5), server_hostname=host) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")  # an empty SETTINGS frame
        print("talks" if connection.recv(9) else "closes")
except (ssl.SSLError, ConnectionResetError):
    print("refuses")
