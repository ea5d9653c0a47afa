"""Prints the revision of the database at a URI."""
import sys

import sqlalchemy

with sqlalchemy.create_engine(sys.argv[1]).connect() as connection:
    print(connection.execute(sqlalchemy.text("SELECT version_num FROM alembic_version")).scalar_one())
