# Sends the request argv[3] for the model argv[2] to the Service of the namespace over the protocol argv[1], grpc or http, and prints the
# response as JSON.
import json
import sys
import urllib.request

protocol, model, body = sys.argv[1:]
if protocol == "grpc":
    import grpc
    import rest_proxy
    from google.protobuf import json_format

    messages = rest_proxy.MESSAGES
    call = grpc.insecure_channel("modelmesh-serving:8033").unary_unary(
        "/inference.GRPCInferenceService/ModelInfer",
        request_serializer=messages.ModelInferRequest.SerializeToString,
        response_deserializer=messages.ModelInferResponse.FromString,
    )
    response = json_format.MessageToDict(call(json_format.Parse(body, messages.ModelInferRequest()), timeout=30))
else:
    request = urllib.request.Request(f"http://modelmesh-serving:8008/v2/models/{model}/infer", body.encode())
    response = json.load(urllib.request.urlopen(request, timeout=30))
print(json.dumps(response))
