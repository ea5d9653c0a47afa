# Sends images of the digits 0 to 9 for the model argv[2] to the Service of the namespace over the protocol argv[1], grpc or http. Prints
# the ID of the model in the response and the predicted digits.
import json
import sys
import urllib.request

from sklearn.datasets import load_digits

protocol, model = sys.argv[1:]
pixels = load_digits().data[:10]
body = {"inputs": [{"name": "predict", "datatype": "FP32", "shape": list(pixels.shape), "data": pixels.flatten().tolist()}]}
if protocol == "grpc":
    import grpc
    import rest_proxy

    response = rest_proxy.infer(grpc.insecure_channel("modelmesh-serving:8033"), model, body)
else:
    request = urllib.request.Request(f"http://modelmesh-serving:8008/v2/models/{model}/infer", json.dumps(body).encode())
    response = json.load(urllib.request.urlopen(request, timeout=30))
print(response["model_name"], *response["outputs"][0]["data"])
