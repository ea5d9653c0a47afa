"""Brings the databases of MLflow to the schema of the MLflow that this image holds. With the argument "check", it opens them
and changes nothing.

The text travels in an environment variable. Kubernetes replaces a dollar sign before a parenthesis there, so none occurs. The
operator reads the exit code and the last line of the termination log, which describe() forms, and never copies a message. What is
printed here names no URI and no text of a foreign error, because both may hold passwords.
"""

import importlib.util
import logging
import os
import re
import sys
import warnings

TERMINATION_LOG = "/dev/termination-log"

# What the operator's table of exit codes lists. All but TRY_AGAIN and NOT_READABLE are final: the same run would end the same way again.
WRONG_VERSION = 10
BACKEND_NOT_SQL = 11
REGISTRY_NOT_SQL = 12
WRONG_REVISION = 13
BROKEN_HISTORY = 14
TRY_AGAIN = 15
NOT_READABLE = 16
NEWER_DATABASE = 17

CHECKS = sys.argv[1:] == ["check"]

SQL_DIALECTS = ("sqlite", "postgresql", "mysql")

# How Alembic, in lower case, says that it does not know a revision, or that its history is broken.
UNKNOWN_REVISION = "can't locate revision identified by"
HISTORY_ERRORS = (
    UNKNOWN_REVISION,
    "multiple heads are present",
    "cycle is detected in revisions",
    "dependency cycle detected",
)

# How drivers, in lower case, say why a database cannot be used. The operator reads the name of the cause.
CAUSES = (
    ("login", ("password authentication failed", "no password supplied", "no pg_hba.conf entry", "access denied for user")),
    ("name", ("could not translate host name", "name or service not known", "name resolution", "getaddrinfo failed", "no address associated")),
    ("refused", ("connection refused",)),
    ("timeout", ("timed out", "timeout expired", "no route to host", "network is unreachable")),
    ("certificate", ("certificate verify failed", "ssl error", "does not support ssl", "ssl connection")),
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


class Found:
    """What the image holds, and the revisions that its databases are at."""

    def __init__(self):
        self.mlflow, self.schema, self.databases, self.cause = "-", "-", [], "-"

    def describe(self):
        """For the operator, which reads words of these forms and nothing else."""
        database = next((revision for revision in self.databases if revision != self.schema), self.schema if self.databases else "-")
        return f"mlflow={self.mlflow} schema={self.schema} database={database} cause={self.cause}"


found = Found()


def release(version):
    """A version to compare by: its numbers, and whether it is no pre-release of them."""
    parts = re.match(r"(\d+(?:\.\d+)*)[-._]?(a|b|c|rc|pre|dev)?", version)
    numbers = [int(number) for number in parts.group(1).split(".")] if parts else []
    return numbers + [0] * (4 - len(numbers)), bool(parts and not parts.group(2))


def check_image():
    """Older images than the operator supports are refused."""
    from mlflow.version import VERSION

    oldest, found.mlflow = normalized(setting("SUPPORTED_MLFLOW_VERSION")), normalized(VERSION)
    if oldest and release(found.mlflow) < release(oldest):
        raise Failure(WRONG_VERSION, f"this image holds MLflow {found.mlflow}, the oldest supported is {oldest}")
    from mlflow.store.db import utils

    found.schema = utils._get_latest_schema_revision()


def knows(revision):
    """Whether a revision has a place in the history of this image."""
    from alembic.script import ScriptDirectory
    from mlflow.store.db import utils

    try:
        ScriptDirectory.from_config(utils._get_alembic_config(db_url="")).get_revision(revision)
    except Exception as error:
        if UNKNOWN_REVISION in str(error).lower():
            return False
        raise
    return True


def revision_of(name, engine):
    """The revision of a store, None if it is empty. Nothing may be written to one that a newer MLflow has migrated."""
    from mlflow.store.db import utils

    revision = utils._get_schema_version(engine)
    if revision is not None and not knows(revision):
        found.databases = [revision]
        raise Failure(NEWER_DATABASE, f"the {name} store is at revision {revision}, which MLflow {found.mlflow} of this image does not "
                      f"know: its newest is {found.schema}")
    return revision


def repairs_gap():
    """Some images repair databases that a release before them left between two revisions."""
    return importlib.util.find_spec("mlflow.store.db.migration_gap") is not None


def close_gap(engine):
    if not repairs_gap():
        return
    from mlflow.store.db.migration_gap import fix_migration_gap_if_needed

    fix_migration_gap_if_needed(engine)


def migrate(all_stores):
    """Creates or upgrades the tables of all stores, once it knows that it can, and checks what came of it."""
    from mlflow.store.db import utils

    opened = []
    for name, uri in all_stores:
        engine = utils.create_sqlalchemy_engine_with_retry(uri)
        if name == "backend":
            close_gap(engine)
        opened.append((name, engine, revision_of(name, engine)))
    for name, engine, before in opened:
        if before is None:
            print(f"{name} store: empty, creating the tables", flush=True)
            utils._initialize_tables(engine)
        else:
            print(f"{name} store: at revision {before}, upgrading", flush=True)
            utils._upgrade_db(engine)
        after = utils._get_schema_version(engine)
        found.databases.append(after)
        if after != found.schema:
            raise Failure(WRONG_REVISION, f"the {name} store is at revision {after}, the head of this image is {found.schema}")
        print(f"{name} store: at revision {after}", flush=True)


def check(all_stores):
    """Opens each store once and looks for its revision in the history of this image. It changes nothing."""
    from mlflow.store.db import utils

    for name, uri in all_stores:
        if uri.startswith("sqlite"):  # opening a file may create it
            print(f"{name} store: a file, which is not opened", flush=True)
            found.databases.append("-")
            continue
        engine = utils.create_sqlalchemy_engine(uri)
        if repairs_gap():  # its revision may have a place in the history only after the repair
            revision, known = utils._get_schema_version(engine), "-"
        else:
            revision = known = revision_of(name, engine)
        found.databases.append(known or "none")
        print(f"{name} store: at revision {revision}", flush=True)


def run():
    all_stores = stores()
    if not all_stores:
        print("no store is configured, there is nothing to migrate", flush=True)
        return
    check_image()
    if CHECKS:
        check(all_stores)
    else:
        migrate(all_stores)


def classified(error):
    """The failure that a foreign error counts as. Its text decides, and is not shown."""
    kind, text = type(error).__name__, str(error).lower()
    if any(sign in text for sign in HISTORY_ERRORS):
        return Failure(BROKEN_HISTORY, f"the schema has no place in the history of this image: {kind}")
    found.cause = next((cause for cause, signs in CAUSES if any(sign in text for sign in signs)), "-")
    cause = kind if found.cause == "-" else f"{kind}, {found.cause}"
    if CHECKS:
        return Failure(NOT_READABLE, f"a database cannot be opened or read: {cause}")
    return Failure(TRY_AGAIN, f"the migration failed: {cause}")


def report(*lines):
    try:
        with open(TERMINATION_LOG, "w", encoding="utf-8") as log:
            log.write("\n".join((*lines, found.describe())))
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
        report()
        return 0
    print(end, file=sys.stderr, flush=True)
    report(str(end))
    return end.code


sys.exit(main())
