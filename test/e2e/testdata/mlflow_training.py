# Logs a run with metrics for each step of a training, and prints the IDs of the experiment and the run.
import math

import mlflow
from mlflow.entities import Metric

experiment = mlflow.set_experiment("credit-risk")
with mlflow.start_run(run_name="gradient-boosting") as run:
    mlflow.log_params({"learning_rate": 0.1, "max_depth": 6, "estimators": 300})
    began = run.info.start_time
    curves = {"loss": lambda step: 0.18 + 0.5 * math.exp(-step / 9), "accuracy": lambda step: 0.94 - 0.4 * math.exp(-step / 12)}
    mlflow.MlflowClient().log_batch(
        run.info.run_id, [Metric(name, curve(step), began + 100 * step, step) for name, curve in curves.items() for step in range(60)])
    mlflow.log_metric("auc", 0.94)
print(experiment.experiment_id, run.info.run_id)
