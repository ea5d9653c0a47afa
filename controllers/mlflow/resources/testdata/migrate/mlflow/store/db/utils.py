import logging
import os
import warnings

HEAD = "head"
revisions = {}


def create_sqlalchemy_engine_with_retry(uri):
    if "FAKE_ERROR" in os.environ:
        logging.getLogger("mlflow").error("cannot connect to %s", uri)
        warnings.warn(uri, stacklevel=1)
        raise ConnectionError(os.environ["FAKE_ERROR"] + uri)
    name = uri.rsplit("/", 1)[-1]
    print("connect", name)
    revisions[name] = os.environ.get("FAKE_REVISION") or None
    return name


def _get_schema_version(engine):
    return revisions[engine]


def _initialize_tables(engine):
    print("initialize", engine)
    revisions[engine] = HEAD


def _upgrade_db(engine):
    print("upgrade", engine)
    revisions[engine] = os.environ.get("FAKE_UPGRADED", HEAD)


def _get_latest_schema_revision():
    return HEAD


def create_sqlalchemy_engine(uri):
    return create_sqlalchemy_engine_with_retry(uri)


def _get_alembic_config(db_url):
    return HEAD
