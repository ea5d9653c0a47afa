"""What users of model-registry do first, with the lines of the page: connect, register a model, read it, change it."""

import os
import runpy

from model_registry import ModelRegistry
from steps import did

# What the test called the model of the page: one of each client.
NAME = os.environ["MODEL"]

if "REFUSED" in os.environ:
    try:
        runpy.run_path("snippet.py")
    except Exception as error:  # a class of the generated client, whose name differs by release
        assert "404" in str(error), error
        did("connect: 404, as docs/versions.md says")
        raise SystemExit(0)
    raise AssertionError("this client can connect: docs/versions.md says that it cannot")

registry = runpy.run_path("snippet.py")["registry"]
did("the lines of docs/components/modelregistry.md: connect through the proxy, register a model")

model = registry.get_registered_model(NAME)
assert model.name == NAME, model
version = registry.get_model_version(NAME, "1")
assert version.name == "1", version
artifact = registry.get_model_artifact(NAME, "1")
assert artifact.uri == "s3://models/demo", artifact
did("get_registered_model, get_model_version, get_model_artifact")

assert NAME in [m.name for m in registry.get_registered_models()]
did("get_registered_models")
try:
    list(registry.get_model_versions(NAME))
except Exception as error:
    assert "parentcontext" in str(error), error
    did("get_model_versions: 500, a defect of the server that docs/versions.md names")
else:
    raise AssertionError("the server lists versions: the row of docs/versions.md can go")

model.description = "of " + os.environ["CLIENT"]
try:
    registry.update(model)
except Exception as error:
    assert "verb=patch" in str(error), error
    did("update through kube-rbac-proxy: 403 for verb=patch, as the page says")
else:
    raise AssertionError("the proxy honours verb: the page has to say so")

# Past the proxy, which is what one that honours verb leads to.
past = ModelRegistry("http://localhost", int(os.environ["PORT"]), author="ana", is_secure=False, user_token=open("token").read())
model = past.get_registered_model(NAME)
model.description = "of " + os.environ["CLIENT"]
past.update(model)
assert past.get_registered_model(NAME).description == model.description
did("update at the server itself")
