# Opens the page argv[1] in a browser that sends the token argv[2] with every request and trusts the CA certificate of standard input.
# Waits until the page contains all further arguments, and prints its text and a screenshot as JSON.
import json
import os
import subprocess
import sys
import tempfile
import time

url, token, *texts = sys.argv[1:]
home = tempfile.mkdtemp()
database = "sql:" + os.path.join(home, ".pki/nssdb")
os.makedirs(database.removeprefix("sql:"))
subprocess.run(["certutil", "-d", database, "-N", "--empty-password"], check=True)
subprocess.run(["certutil", "-d", database, "-A", "-a", "-n", "authority", "-t", "C,,"], check=True, input=sys.stdin.buffer.read())

# Chromium reads commands from descriptor 3 and writes responses to 4. A container has no permission to create the sandbox.
browser = subprocess.Popen(
    ["sh", "-c", 'exec chromium "$@" 3<&0 4>&1 </dev/null >/dev/null 2>"$HOME/log"', "sh", "--headless=new", "--remote-debugging-pipe",
     "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
     "--hide-scrollbars", "--window-size=1400,800", "--user-data-dir=" + os.path.join(home, "profile")],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"HOME": home})
number = 0


def call(method, session=None, **params):
    global number
    number += 1
    message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
    browser.stdin.write(json.dumps(message).encode() + b"\0")
    browser.stdin.flush()
    while True:
        response = json.loads(receive())
        if response.get("id") == number:
            return response


def receive():
    message = bytearray()
    while (byte := browser.stdout.read(1)) != b"\0":
        if not byte:
            sys.exit("the browser exited:\n" + open(os.path.join(home, "log")).read())
        message += byte
    return message


target = call("Target.createTarget", url="about:blank")["result"]["targetId"]
page = call("Target.attachToTarget", targetId=target, flatten=True)["result"]["sessionId"]
call("Network.enable", page)
call("Network.setExtraHTTPHeaders", page, headers={"Authorization": "Bearer " + token})

# A page does not retry requests that a busy server did not serve in time, so the loop reloads it.
deadline, interval, shown = time.monotonic() + 300, 60, ""
problem, loaded = call("Page.navigate", page, url=url)["result"].get("errorText"), time.monotonic()
if problem:
    sys.exit(problem)
while not all(text in shown for text in texts):
    if time.monotonic() > deadline:
        sys.exit("the page shows only:\n" + shown[-2000:])
    if time.monotonic() > loaded + interval:
        call("Page.reload", page)
        loaded = time.monotonic()
    time.sleep(0.2)
    # The page has no body during a reload.
    response = call("Runtime.evaluate", page, expression="document.body?.innerText ?? ''", returnByValue=True)
    shown = response.get("result", {}).get("result", {}).get("value", "")
picture = call("Page.captureScreenshot", page, format="png")["result"]["data"]
print(json.dumps({"text": shown, "picture": picture}))
browser.kill()
