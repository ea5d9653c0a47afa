def fix_migration_gap_if_needed(engine):
    print("gap", engine)
