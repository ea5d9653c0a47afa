# Prints the experiments whose creation mlflow_writer.py reports as acknowledged, but which the server does not store.
import mlflow

with open("/tmp/acknowledged") as file: # before the search, because mlflow_writer.py creates more meanwhile
    acknowledged = file.read().split()
stored = {experiment.name for experiment in mlflow.search_experiments()}
print(*[name for name in acknowledged if name not in stored])
