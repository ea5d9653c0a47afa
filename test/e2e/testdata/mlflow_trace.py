# Creates an experiment, and sends a trace to it through OTLP with one span that ended two hours ago.
import os
import time

import mlflow
import requests

experiment = mlflow.create_experiment("traced")
began = time.time_ns() - 2 * 3600 * 10**9
span = {
    "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "answer", "kind": 1,
    "startTimeUnixNano": str(began), "endTimeUnixNano": str(began + 10**9),
}
with open("/var/run/secrets/kubernetes.io/serviceaccount/token") as token:
    headers = {
        "Authorization": "Bearer " + token.read(), "X-MLFLOW-WORKSPACE": os.environ["MLFLOW_WORKSPACE"],
        "X-Mlflow-Experiment-Id": experiment,
    }
response = requests.post(
    os.environ["MLFLOW_TRACKING_URI"].removesuffix("/mlflow") + "/v1/traces", headers=headers, verify=os.environ["MLFLOW_TRACKING_SERVER_CERT_PATH"],
    json={"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}, timeout=30,
)
print(response.status_code, response.text if response.status_code != 200 else "")
