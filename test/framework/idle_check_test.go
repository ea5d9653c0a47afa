package framework

import (
	"testing"
	"time"
)

func TestDuring(t *testing.T) {
	at := func(second int64, entry Entry) Entry {
		entry.Received, entry.Responded = time.Unix(second, 0), time.Unix(second, 0)
		return entry
	}
	write := Entry{Verb: "patch", Resource: "services", User: "manager"}
	slow := at(3, Entry{Verb: "delete", Resource: "pods", User: "admin"})
	slow.Responded = time.Unix(5, 0)
	for name, c := range map[string]struct {
		entries               Entries
		managerStartStopTimes []time.Time
		want                  int
	}{
		"no other client":              {Entries{at(1, write), at(3, write), at(4, write)}, nil, 2},
		"write of another client":      {Entries{at(3, write), at(4, Entry{Verb: "update", Resource: "pods", User: "kubelet"}), at(5, write)}, nil, 1},
		"request with a late response": {Entries{at(4, write), slow}, nil, 0},
		"reads of another client":      {Entries{at(3, Entry{Verb: "get", Resource: "pods", User: "admin"}), at(4, write)}, nil, 2},
		"leases and Events": {Entries{
			at(3, Entry{Verb: "update", Resource: "leases", User: "kubelet"}), at(4, Entry{Verb: "create", Resource: "events", User: "kubelet"}), at(5, write),
		}, nil, 3},
		"restart of a manager":      {Entries{at(3, write), at(6, write)}, []time.Time{time.Unix(1, 0), time.Unix(5, 0)}, 1},
		"request before the period": {Entries{at(1, write)}, nil, 0},
	} {
		if got := c.entries.during(idlePeriod{"manager", time.Unix(2, 0)}, c.managerStartStopTimes); len(got) != c.want {
			t.Errorf("%s: %d entries, want %d:\n%s", name, len(got), c.want, got)
		}
	}
}
