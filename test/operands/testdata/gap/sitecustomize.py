"""Adds mlflow.store.db.migration_gap, with which newer MLflow releases repair databases, to the MLflow of this Python."""
import importlib.util
import os
import sys

NAME = "mlflow.store.db.migration_gap"


class Shipped:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != NAME:
            return None
        return importlib.util.spec_from_file_location(NAME, os.path.join(os.path.dirname(__file__), "migration_gap.py"))


sys.meta_path.append(Shipped)
