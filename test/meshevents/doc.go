// Package meshevents tests the stream of model events with a real etcd: through crashes, data loss, compaction and changes
// of passwords and certificates. It also tests the etcd accounts of namespaces.
package meshevents
