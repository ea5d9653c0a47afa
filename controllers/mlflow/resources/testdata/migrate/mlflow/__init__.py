"""Stands in for MLflow: prints what is asked of it, and answers as the variables whose names begin with FAKE_ say."""
