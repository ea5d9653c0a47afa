# The REST form of the open inference protocol before a server that has the gRPC form only, with the variables of kserve/rest-proxy.
import importlib.util
import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents", "INT64": "int64_contents",
    "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents",
    "FP32": "fp32_contents", "FP64": "fp64_contents",
}
STATUS = {grpc.StatusCode.NOT_FOUND: 404, grpc.StatusCode.INVALID_ARGUMENT: 400, grpc.StatusCode.UNAVAILABLE: 503}


def messages():
    """The messages alone: to import the package around them takes seconds."""
    package = importlib.util.find_spec("mlserver").submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location("dataplane_pb2", package + "/grpc/dataplane_pb2.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MESSAGES = messages()


def infer(channel, name, body):
    """Answers a request in the form of REST."""
    request = MESSAGES.ModelInferRequest(model_name=name, id=body.get("id", ""))
    for given in body["inputs"]:
        tensor = request.inputs.add(name=given["name"], datatype=given["datatype"], shape=given["shape"])
        getattr(tensor.contents, CONTENTS[given["datatype"]]).extend(given["data"])
    call = channel.unary_unary(
        "/inference.GRPCInferenceService/ModelInfer",
        request_serializer=MESSAGES.ModelInferRequest.SerializeToString,
        response_deserializer=MESSAGES.ModelInferResponse.FromString,
    )
    answer = call(request, timeout=30)
    return {"model_name": answer.model_name, "outputs": [
        {"name": o.name, "datatype": o.datatype, "shape": list(o.shape), "data": list(getattr(o.contents, CONTENTS[o.datatype]))}
        for o in answer.outputs
    ]}


class Handler(BaseHTTPRequestHandler):
    channel = None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        parts = self.path.strip("/").split("/")
        if parts[:2] != ["v2", "models"] or parts[3:] != ["infer"]:
            return self.answer(404, {"error": "unknown path " + self.path})
        try:
            self.answer(200, infer(self.channel, parts[2], body))
        except grpc.RpcError as problem:
            self.answer(STATUS.get(problem.code(), 500), {"error": problem.details()})

    def answer(self, status, document):
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    if os.environ["REST_PROXY_USE_TLS"] == "true":
        raise SystemExit("this proxy knows no TLS")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # which the first process of a container would not heed
    Handler.channel = grpc.insecure_channel("127.0.0.1:" + os.environ["REST_PROXY_GRPC_PORT"])
    ThreadingHTTPServer(("", int(os.environ["REST_PROXY_LISTEN_PORT"])), Handler).serve_forever()
