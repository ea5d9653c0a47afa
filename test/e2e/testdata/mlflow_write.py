# Logs a run with an artifact in the workspace of the environment, registers the artifact as a model, and prints the ID of the run.
import mlflow

mlflow.set_experiment("trial")
with mlflow.start_run() as run:
    mlflow.log_param("alpha", "0.1")
    mlflow.log_metric("loss", 0.25)
    mlflow.log_text("weights", "model/weights.txt")
client = mlflow.MlflowClient()
name = "model-" + run.info.run_id
client.create_registered_model(name)
client.create_model_version(name, source=run.info.artifact_uri + "/model", run_id=run.info.run_id)
print(run.info.run_id)
