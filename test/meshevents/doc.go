// Package meshevents holds the stream of events of models against a real etcd, which is killed, loses its data, is compacted and
// asks for passwords.
package meshevents
