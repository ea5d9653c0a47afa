package framework

import "testing"

func TestUntilOthersWrite(t *testing.T) {
	mine := Entry{Verb: "patch", Resource: "services", User: "manager"}
	for name, c := range map[string]struct {
		entries Entries
		want    int
	}{
		"no other client":    {Entries{mine, mine}, 2},
		"a write of another": {Entries{mine, {Verb: "update", Resource: "pods", User: "kubelet"}, mine}, 1},
		"reads of another":   {Entries{{Verb: "get", Resource: "pods", User: "admin"}, mine}, 2},
		"leases and Events":  {Entries{{Verb: "update", Resource: "leases", User: "kubelet"}, {Verb: "create", Resource: "events", User: "kubelet"}, mine}, 3},
	} {
		if got := c.entries.untilOthersWrite("manager"); len(got) != c.want {
			t.Errorf("%s: %d entries remain, want %d:\n%s", name, len(got), c.want, got)
		}
	}
}
