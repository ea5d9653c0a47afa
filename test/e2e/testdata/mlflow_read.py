# Prints the data that mlflow_write.py wrote for the run argv[1] and its model.
import sys

import mlflow

client = mlflow.MlflowClient()
run = client.get_run(sys.argv[1])
version = client.get_model_version("model-" + sys.argv[1], "1")
weights = mlflow.artifacts.load_text(run.info.artifact_uri + "/model/weights.txt")
registered = mlflow.artifacts.load_text(client.get_model_version_download_uri(version.name, "1") + "/weights.txt")
print(run.data.params["alpha"], run.data.metrics["loss"], weights, registered, version.run_id == run.info.run_id)
