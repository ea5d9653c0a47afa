"""First steps with model-registry, starting with the code of docs/components/modelregistry.md: connect, register, read, change a model."""

import os
import runpy

from model_registry import ModelRegistry
from steps import log_step

# The name of the model, which differs by client.
NAME = os.environ["MODEL"]

if "INCOMPATIBLE" in os.environ:
    try:
        runpy.run_path("snippet.py")
    except Exception as error:  # the class of the generated client differs by release
        assert "404" in str(error), error
        log_step("connect: 404, as in docs/versions.md")
        raise SystemExit(0)
    raise AssertionError("the client connected; correct docs/versions.md, which excludes it")

registry = runpy.run_path("snippet.py")["registry"]
log_step("the code of docs/components/modelregistry.md: connect through the proxy, register a model")

model = registry.get_registered_model(NAME)
assert model.name == NAME, model
version = registry.get_model_version(NAME, "1")
assert version.name == "1", version
artifact = registry.get_model_artifact(NAME, "1")
assert artifact.uri == "s3://models/demo", artifact
log_step("get_registered_model, get_model_version, get_model_artifact")

assert NAME in [m.name for m in registry.get_registered_models()]
log_step("get_registered_models")
try:
    list(registry.get_model_versions(NAME))
except Exception as error:
    assert "parentcontext" in str(error), error
    log_step("get_model_versions: 500, a defect of the server, see docs/versions.md")
else:
    raise AssertionError("the server lists versions; remove the row of docs/versions.md")

model.description = "of " + os.environ["CLIENT"]
try:
    registry.update(model)
except Exception as error:
    assert "verb=patch" in str(error), error
    log_step("update through kube-rbac-proxy: 403 for verb=patch, as in docs/components/modelregistry.md")
else:
    raise AssertionError("the update succeeded; correct docs/components/modelregistry.md")

# Without the proxy, as with a newer proxy that supports the verb.
direct = ModelRegistry("http://localhost", int(os.environ["PORT"]), author="ana", is_secure=False, user_token=open("token").read())
model = direct.get_registered_model(NAME)
model.description = "of " + os.environ["CLIENT"]
direct.update(model)
assert direct.get_registered_model(NAME).description == model.description
log_step("update without the proxy")
