# Creates experiments until the file /tmp/stop exists, and prints the names of acknowledged ones. It first sends an incomplete request:
# a server that waits for open connections then does not stop.
import itertools
import json
import os
import socket
import ssl
import time
import urllib.parse
import urllib.request

url = os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/experiments/create"
with open("/var/run/secrets/kubernetes.io/serviceaccount/token") as token:
    headers = {
        "Authorization": "Bearer " + token.read(), "X-MLFLOW-WORKSPACE": os.environ["MLFLOW_WORKSPACE"], "Content-Type": "application/json",
    }
trusted = ssl.create_default_context(cafile=os.environ["MLFLOW_TRACKING_SERVER_CERT_PATH"])
address = urllib.parse.urlsplit(url)
unfinished = trusted.wrap_socket(socket.create_connection((address.hostname, address.port)), server_hostname=address.hostname)
lines = [f"POST {address.path} HTTP/1.1", f"Host: {address.netloc}", "Content-Length: 100", *(f"{name}: {value}" for name, value in headers.items())]
unfinished.sendall(("\r\n".join(lines) + "\r\n\r\n{").encode())

for number in itertools.count():
    if os.path.exists("/tmp/stop"):
        break
    name = f"experiment-{number}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps({"name": name}).encode(), headers), timeout=5, context=trusted) as response:
            if response.status == 200:
                print(name)
    except Exception:
        pass # not acknowledged
    time.sleep(0.05) # leaves CPU time for the server
