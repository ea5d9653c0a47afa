// Package etcdpb has the messages of etcd that package meshetcd uses, see etcd.proto. Those of etcd itself would add 0.7 MB to the
// binary.
package etcdpb
