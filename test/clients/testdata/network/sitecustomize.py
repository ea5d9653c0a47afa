"""Redirects connections to Services to local processes in place of their pods."""

import json
import os
import socket

SERVICES = json.loads(os.environ["SERVICES"]) or {}
original_getaddrinfo = socket.getaddrinfo


def getaddrinfo(host, port, *args, **kwargs):
    name = host.decode() if isinstance(host, bytes) else host
    if f"{name}:{port}" in SERVICES:
        host, port = "127.0.0.1", SERVICES[f"{name}:{port}"]
    return original_getaddrinfo(host, port, *args, **kwargs)


socket.getaddrinfo = getaddrinfo
