# Prints those of the experiments that mlflow_writer.py says were acknowledged that the server does not have.
import mlflow

with open("/tmp/acknowledged") as file: # first: the client writes on meanwhile
    acknowledged = file.read().split()
stored = {experiment.name for experiment in mlflow.search_experiments()}
print(*[name for name in acknowledged if name not in stored])
