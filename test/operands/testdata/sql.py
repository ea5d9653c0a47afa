"""Runs a statement on the database at a URI."""
import sys

import sqlalchemy

with sqlalchemy.create_engine(sys.argv[1]).begin() as connection:
    connection.execute(sqlalchemy.text(sys.argv[2]))
