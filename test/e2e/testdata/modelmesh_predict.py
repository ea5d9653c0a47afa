# Asks the Service of the namespace which digits ten pictures show, over argv[1], grpc or http, by the model argv[2], and prints the
# id of the model that answered and the digits, which are 0 to 9.
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

    answer = rest_proxy.infer(grpc.insecure_channel("modelmesh-serving:8033"), model, body)
else:
    request = urllib.request.Request(f"http://modelmesh-serving:8008/v2/models/{model}/infer", json.dumps(body).encode())
    answer = json.load(urllib.request.urlopen(request, timeout=30))
print(answer["model_name"], *answer["outputs"][0]["data"])
