"""What users of kserve do first with a model of ModelMesh: create it, wait for it, change it, delete it."""

import inspect
import time

from kserve import (KServeClient, V1beta1InferenceService, V1beta1InferenceServiceSpec, V1beta1ModelFormat, V1beta1ModelSpec,
                    V1beta1PredictorSpec, V1beta1StorageSpec)
from kubernetes import client
from steps import NAMESPACE, did, eventually, printed

# The client returns at this time too, and says nothing.
PATIENCE = 120


def service(path):
    model = V1beta1ModelSpec(model_format=V1beta1ModelFormat(name="sklearn"), storage=V1beta1StorageSpec(key="k", path=path))
    return V1beta1InferenceService(
        api_version="serving.kserve.io/v1beta1", kind="InferenceService",
        metadata=client.V1ObjectMeta(name="digits", namespace=NAMESPACE, annotations={"serving.kserve.io/deploymentMode": "ModelMesh"}),
        spec=V1beta1InferenceServiceSpec(predictor=V1beta1PredictorSpec(model=model)))


def in_time(what, call):
    began = time.monotonic()
    with printed() as text:
        call()
    assert time.monotonic() - began < PATIENCE, what + " returned at its timeout only"
    assert "True" in text.getvalue(), what + " saw no model that is ready"
    did(what)


def gone():
    try:
        models.get("digits", NAMESPACE)
    except RuntimeError as error:
        assert "404" in str(error), error
        return True
    return False


models = KServeClient()
in_time("create(watch=True): returns with the ready model", lambda: models.create(service("first"), watch=True, timeout_seconds=PATIENCE))
in_time("wait_isvc_ready(watch=True)", lambda: models.wait_isvc_ready("digits", NAMESPACE, watch=True, timeout_seconds=PATIENCE))
stored = models.get("digits", NAMESPACE)
assert stored["status"]["observedGeneration"] == stored["metadata"]["generation"] == 1, stored
assert stored["status"]["url"], stored
did("get: address and observedGeneration")

in_time("patch(watch=True)", lambda: models.patch("digits", service("second"), NAMESPACE, watch=True, timeout_seconds=PATIENCE))
if "expected_generation" in inspect.signature(models.wait_isvc_ready).parameters:
    models.wait_isvc_ready("digits", NAMESPACE, expected_generation=2, polling_interval=1, timeout_seconds=PATIENCE)
    did("wait_isvc_ready(expected_generation=2)")
else:
    models.wait_isvc_ready("digits", NAMESPACE, polling_interval=1, timeout_seconds=PATIENCE)
    did("wait_isvc_ready()")

models.delete("digits", NAMESPACE)
eventually(gone, "the model is still there")
did("delete")
