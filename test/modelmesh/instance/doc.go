// Package instance runs the fake of the routing layer as pods do: one instance in each, in container `mm`. It reads the environment
// and the files that the manager renders for that container.
//
// The instances of a namespace find each other in etcd and elect a leader. The leader decides, as a [modelmesh.Layer], and has
// the adapters of all pods load and unload models; the others forward requests to it. Requests for inference go to a model
// server that has the model. Pods reach each other at the port that the NetworkPolicy of the manager opens for that.
//
// It has neither TLS nor metrics, and forwards single requests only, no streams.
package instance
