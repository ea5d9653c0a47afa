"""Prints the columns and rows of all tables of the database at a URI."""
import sys

import sqlalchemy

engine = sqlalchemy.create_engine(sys.argv[1])
tables = sqlalchemy.MetaData()
tables.reflect(engine)
with engine.connect() as connection:
    for table in sorted(tables.tables.values(), key=str):
        print(table, [f"{c.name} {c.type}" for c in table.columns], sorted(map(str, connection.execute(table.select()))))
