# Sends a request to the path argv[1] with the token argv[2], unless it is empty, and prints the status code. A third argument is the
# JSON body.
import os
import ssl
import sys
import urllib.error
import urllib.request

path, token = sys.argv[1:3]
body = sys.argv[3].encode() if len(sys.argv) > 3 else None
request = urllib.request.Request(os.environ["MLFLOW_TRACKING_URI"] + path, body)
request.add_header("X-MLFLOW-WORKSPACE", os.environ["MLFLOW_WORKSPACE"])
request.add_header("Content-Type", "application/json")
if token:
    request.add_header("Authorization", "Bearer " + token)
trusted = ssl.create_default_context(cafile=os.environ["MLFLOW_TRACKING_SERVER_CERT_PATH"])
try:
    print(urllib.request.urlopen(request, timeout=30, context=trusted).status)
except urllib.error.HTTPError as problem:
    print(problem.code)
