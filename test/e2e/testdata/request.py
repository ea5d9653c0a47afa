# Sends a request and prints the status and the body of the answer. Arguments: method, URL, token, body.
import ssl
import sys
import urllib.error
import urllib.request

method, url, token, body = sys.argv[1:]
headers = {"Content-Type": "application/json"}
if token:
    headers["Authorization"] = "Bearer " + token
context = ssl.create_default_context(cafile="/data/tls.crt") if url.startswith("https:") else None
request = urllib.request.Request(url, body.encode() or None, headers, method=method)
try:
    answer = urllib.request.urlopen(request, timeout=5, context=context)
except urllib.error.HTTPError as refused:
    answer = refused
print(answer.status)
print(answer.read().decode())
