// Package meshevents tests the stream of model events with a real etcd: through crashes, data loss, compaction and changes
// of passwords and accounts.
package meshevents
