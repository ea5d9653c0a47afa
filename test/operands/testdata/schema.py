"""Migrates an empty database to a revision of an older MLflow release, and then executes an SQL statement."""
import sys

import sqlalchemy
from alembic import command
from mlflow.store.db import utils

uri, revision, statement = sys.argv[1:]
engine = sqlalchemy.create_engine(uri)
utils.InitialBase.metadata.create_all(engine)
config = utils._get_alembic_config(uri)
with engine.begin() as connection:
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
with engine.begin() as connection:
    connection.execute(sqlalchemy.text(statement))
