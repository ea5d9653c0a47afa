# Prints those of the experiments that mlflow_writer.py says were acknowledged that the server does not have.
import mlflow

stored = {experiment.name for experiment in mlflow.search_experiments()}
with open("/tmp/acknowledged") as acknowledged:
    print(*[name for name in acknowledged.read().split() if name not in stored])
