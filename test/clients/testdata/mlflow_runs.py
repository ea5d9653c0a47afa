"""First steps with mlflow, starting with the code of docs/components/mlflow.md: a run, an artifact, a model."""

import os
import runpy

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from steps import log_step

NAME = "of-" + mlflow.__version__


def expect_error(call, message):
    try:
        call()
    except MlflowException as error:
        assert message in str(error), error
    else:
        raise AssertionError("the call succeeded, want an error with " + message)


os.environ["MLFLOW_TRACKING_SERVER_CERT_PATH"] = "ca.crt"
os.environ["MLFLOW_TRACKING_TOKEN"] = open("token").read()
mlflow.set_tracking_uri("https://localhost:8443/mlflow")
expect_error(lambda: MlflowClient().search_experiments(), "Workspace context is required")
log_step("without set_workspace: Workspace context is required")

runpy.run_path("snippet.py")
run = MlflowClient().get_run(mlflow.last_active_run().info.run_id)
assert run.data.metrics == {"loss": 0.1}, run
log_step("the code of docs/components/mlflow.md: a run in the workspace of a namespace")

mlflow.set_experiment(NAME)
with mlflow.start_run() as run:
    mlflow.log_param("depth", 3)
    mlflow.log_text("weights", "model/weights.txt")
found = mlflow.search_runs(experiment_names=[NAME], output_format="list")
assert [r.info.run_id for r in found] == [run.info.run_id], found
assert mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/model/weights.txt") == "weights"
log_step("set_experiment, log_param, log_text, search_runs, load_text")

client = MlflowClient()
client.create_registered_model(NAME)
version = client.create_model_version(NAME, f"runs:/{run.info.run_id}/model", run.info.run_id)
client.set_registered_model_alias(NAME, "best", version.version)
assert client.get_model_version_by_alias(NAME, "best").run_id == run.info.run_id
log_step("create_registered_model, create_model_version, an alias")

mlflow.set_workspace(os.environ["OTHER"])
expect_error(lambda: MlflowClient().create_experiment("not-mine"), "PERMISSION_DENIED")
log_step("another namespace: PERMISSION_DENIED")
