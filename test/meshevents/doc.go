// Package meshevents tests the stream of events of models with a real etcd, which is killed, loses its data, is compacted and
// requires passwords.
package meshevents
