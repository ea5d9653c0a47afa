# Prints the response of a dashboard. Arguments: URL, CA certificate, token or an empty string.
import ssl
import sys
import urllib.error
import urllib.request

request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + sys.argv[3]} if sys.argv[3] else {})
try:
    response = urllib.request.urlopen(request, timeout=5, context=ssl.create_default_context(cadata=sys.argv[2]))
    print(response.status, "ray_version" in response.read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
