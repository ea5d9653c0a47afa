// Package meshevents tests the stream of model events with a real etcd: through crashes, data loss, compaction and password
// changes.
package meshevents
