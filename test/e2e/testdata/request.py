# Sends a request and prints the status code and the body of the response. Arguments: method, URL, token, body.
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
    response = urllib.request.urlopen(request, timeout=5, context=context)
except urllib.error.HTTPError as error:
    response = error
print(response.status)
print(response.read().decode())
