def fix_migration_gap_if_needed(engine):
    print("gap of", engine.url.database.rsplit("/", 1)[-1], flush=True)
