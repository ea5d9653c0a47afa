class ScriptDirectory:
    @classmethod
    def from_config(cls, head):
        return cls()

    def get_revision(self, revision):
        if revision == "unknown":
            raise LookupError(f"Can't locate revision identified by '{revision}'")
