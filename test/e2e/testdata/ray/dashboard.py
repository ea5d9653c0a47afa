# Prints the answer of a dashboard: arguments are a URL, the CA that it must have, and a token or nothing.
import ssl
import sys
import urllib.error
import urllib.request

request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + sys.argv[3]} if sys.argv[3] else {})
try:
    answer = urllib.request.urlopen(request, timeout=5, context=ssl.create_default_context(cadata=sys.argv[2]))
    print(answer.status, "ray_version" in answer.read().decode())
except urllib.error.HTTPError as refusal:
    print(refusal.code)
