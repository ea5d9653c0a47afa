"""Brings the databases of MLflow to the schema of the MLflow that this image holds. With the argument "check", it opens them
and changes nothing.

The text travels in an environment variable of the migration Job. Kubernetes replaces a dollar sign before a parenthesis
there, so none occurs. Exit codes are read by the operator, which never copies a message: what is printed here names no URI
and no text of a foreign error, because both may hold passwords.
"""

import importlib.util
import logging
import os
import sys
import warnings

TERMINATION_LOG = "/dev/termination-log"

# What the operator's table of exit codes lists. All but the last two are final: the same run would end the same way again.
WRONG_VERSION = 10
BACKEND_NOT_SQL = 11
REGISTRY_NOT_SQL = 12
WRONG_REVISION = 13
BROKEN_HISTORY = 14
TRY_AGAIN = 15
NOT_READABLE = 16

CHECKS = sys.argv[1:] == ["check"]

SQL_DIALECTS = ("sqlite", "postgresql", "mysql")

# How Alembic, in lower case, says that the revision of a database has no place in its history.
HISTORY_ERRORS = (
    "can't locate revision identified by",
    "multiple heads are present",
    "cycle is detected in revisions",
    "dependency cycle detected",
)


class Failure(Exception):
    """An end that the operator has a name for. Its message may be shown."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def setting(name):
    return os.environ.get(name, "").strip()


def normalized(version):
    """A version without what builds put around it: v3.14.0+rhai1 is 3.14.0."""
    return version.strip().removeprefix("v").split("+", 1)[0]


def is_sql(uri):
    """Whether Alembic can migrate it. The driver, as in mysql+pymysql, does not matter."""
    return uri.split(":", 1)[0].split("+", 1)[0] in SQL_DIALECTS


def stores():
    """Names and URIs of the databases, the backend first. A registry that shares the backend's is migrated with it."""
    backend = setting("MLFLOW_BACKEND_STORE_URI")
    registry = setting("MLFLOW_REGISTRY_STORE_URI")
    found = []
    if backend:
        if not is_sql(backend):
            raise Failure(BACKEND_NOT_SQL, "the backend store is none of " + ", ".join(SQL_DIALECTS))
        found.append(("backend", backend))
    if registry and registry != backend:
        if not is_sql(registry):
            raise Failure(REGISTRY_NOT_SQL, "the registry store is none of " + ", ".join(SQL_DIALECTS))
        found.append(("registry", registry))
    return found


def check_version():
    """The operator asks for one version; an image with another one would leave a schema that nobody expects."""
    from mlflow.version import VERSION

    supported, installed = normalized(setting("SUPPORTED_MLFLOW_VERSION")), normalized(VERSION)
    if supported and supported != installed:
        raise Failure(WRONG_VERSION, f"this image holds MLflow {installed}, expected is {supported}")


def repairs_gap():
    """Some images repair databases that a release before them left between two revisions."""
    return importlib.util.find_spec("mlflow.store.db.migration_gap") is not None


def close_gap(engine):
    if not repairs_gap():
        return
    from mlflow.store.db.migration_gap import fix_migration_gap_if_needed

    fix_migration_gap_if_needed(engine)


def migrate(name, uri):
    """Creates or upgrades the tables of one store, and checks what came of it."""
    from mlflow.store.db import utils

    engine = utils.create_sqlalchemy_engine_with_retry(uri)
    if name == "backend":
        close_gap(engine)
    before = utils._get_schema_version(engine)
    if before is None:
        print(f"{name} store: empty, creating the tables", flush=True)
        utils._initialize_tables(engine)
    else:
        print(f"{name} store: at revision {before}, upgrading", flush=True)
        utils._upgrade_db(engine)
    after, head = utils._get_schema_version(engine), utils._get_latest_schema_revision()
    if after != head:
        raise Failure(WRONG_REVISION, f"the {name} store is at revision {after}, the head of this image is {head}")
    print(f"{name} store: at revision {after}", flush=True)


def check(name, uri):
    """Opens a store and looks for its revision in the history of this image. It changes nothing, and tries once."""
    if uri.startswith("sqlite"):  # opening a file may create it
        print(f"{name} store: a file, which is not opened", flush=True)
        return
    from mlflow.store.db import utils

    revision = utils._get_schema_version(utils.create_sqlalchemy_engine(uri))
    if revision is not None and not repairs_gap():
        from alembic.script import ScriptDirectory

        ScriptDirectory.from_config(utils._get_alembic_config(db_url="")).get_revision(revision)
    print(f"{name} store: at revision {revision}", flush=True)


def run():
    found = stores()
    if not found:
        print("no store is configured, there is nothing to migrate", flush=True)
        return
    check_version()
    work = check if CHECKS else migrate
    for name, uri in found:
        work(name, uri)


def classified(error):
    """The failure that a foreign error counts as. Its text decides, and is not shown."""
    kind, text = type(error).__name__, str(error).lower()
    if any(sign in text for sign in HISTORY_ERRORS):
        return Failure(BROKEN_HISTORY, f"the schema has no place in the history of this image: {kind}")
    if CHECKS:
        return Failure(NOT_READABLE, f"a database cannot be opened or read: {kind}")
    return Failure(TRY_AGAIN, f"the migration failed: {kind}")


def report(message):
    print(message, file=sys.stderr, flush=True)
    try:
        with open(TERMINATION_LOG, "w", encoding="utf-8") as log:
            log.write(message)
    except OSError:
        pass


def main():
    # Libraries log errors in full, a URI or a password among them.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    try:
        run()
    except Failure as failure:
        end = failure
    except Exception as error:
        end = classified(error)
    else:
        return 0
    report(str(end))
    return end.code


sys.exit(main())
