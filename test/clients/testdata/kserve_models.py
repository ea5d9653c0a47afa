"""First steps with kserve and a model of ModelMesh: create, wait, change, delete."""

import inspect
import time

from kserve import (KServeClient, V1beta1InferenceService, V1beta1InferenceServiceSpec, V1beta1ModelFormat, V1beta1ModelSpec,
                    V1beta1PredictorSpec, V1beta1StorageSpec)
from kubernetes import client
from steps import NAMESPACE, log_step, eventually, captured

# The client also returns after this time, without an error.
TIMEOUT = 120


def service(path):
    model = V1beta1ModelSpec(model_format=V1beta1ModelFormat(name="sklearn"), storage=V1beta1StorageSpec(key="k", path=path))
    return V1beta1InferenceService(
        api_version="serving.kserve.io/v1beta1", kind="InferenceService",
        metadata=client.V1ObjectMeta(name="digits", namespace=NAMESPACE, annotations={"serving.kserve.io/deploymentMode": "ModelMesh"}),
        spec=V1beta1InferenceServiceSpec(predictor=V1beta1PredictorSpec(model=model)))


def check_ready_before_timeout(step, call):
    start = time.monotonic()
    with captured() as text:
        call()
    assert time.monotonic() - start < TIMEOUT, step + " returned only after its timeout"
    assert "True" in text.getvalue(), step + " did not report a ready model"
    log_step(step)


def deleted():
    try:
        models.get("digits", NAMESPACE)
    except RuntimeError as error:
        assert "404" in str(error), error
        return True
    return False


models = KServeClient()
check_ready_before_timeout("create(watch=True): returns with the ready model", lambda: models.create(service("first"), watch=True, timeout_seconds=TIMEOUT))
check_ready_before_timeout("wait_isvc_ready(watch=True)", lambda: models.wait_isvc_ready("digits", NAMESPACE, watch=True, timeout_seconds=TIMEOUT))
stored = models.get("digits", NAMESPACE)
assert stored["status"]["observedGeneration"] == stored["metadata"]["generation"] == 1, stored
assert stored["status"]["url"], stored
log_step("get: address and observedGeneration")

check_ready_before_timeout("patch(watch=True)", lambda: models.patch("digits", service("second"), NAMESPACE, watch=True, timeout_seconds=TIMEOUT))
if "expected_generation" in inspect.signature(models.wait_isvc_ready).parameters:
    models.wait_isvc_ready("digits", NAMESPACE, expected_generation=2, polling_interval=1, timeout_seconds=TIMEOUT)
    log_step("wait_isvc_ready(expected_generation=2)")
else:
    models.wait_isvc_ready("digits", NAMESPACE, polling_interval=1, timeout_seconds=TIMEOUT)
    log_step("wait_isvc_ready()")

models.delete("digits", NAMESPACE)
eventually(deleted, "the model still exists")
log_step("delete")
