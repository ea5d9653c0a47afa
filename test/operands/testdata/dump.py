"""Prints the rows of all tables of the database at a URI, and their columns."""
import sys

import sqlalchemy

engine = sqlalchemy.create_engine(sys.argv[1])
tables = sqlalchemy.MetaData()
tables.reflect(engine)
with engine.connect() as connection:
    for table in tables.sorted_tables:
        print(repr(table), sorted(map(str, connection.execute(table.select()))))
