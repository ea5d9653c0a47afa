# Runs `mlflow gc`, which reads the store from its arguments alone. The URI from a Secret stays out of the command line of the process.
import os
import sys

from mlflow.cli import cli

cli([*sys.argv[1:], "--backend-store-uri", os.environ["MLFLOW_BACKEND_STORE_URI"]], prog_name="mlflow")
