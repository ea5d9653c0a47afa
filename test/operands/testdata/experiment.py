"""Creates the named experiments in the database at a URI, and prints the names of all experiments."""
import sys

from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

store = SqlAlchemyStore(sys.argv[1], "file:///artifacts")
for name in sys.argv[2:]:
    store.create_experiment(name)
print(*sorted(experiment.name for experiment in store.search_experiments()))
