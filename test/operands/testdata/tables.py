"""Prints the tables of the database at a URI."""
import sys

import sqlalchemy

print(*sqlalchemy.inspect(sqlalchemy.create_engine(sys.argv[1])).get_table_names())
