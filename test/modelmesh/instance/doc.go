// Package instance runs the fake of the routing layer as pods do: one instance in each, in container `mm`. It reads the environment
// and the files that the manager renders for that container.
//
// The instances of a namespace find each other in etcd and elect one of them. That one decides, as a [modelmesh.Layer], and has
// the adapters of all pods load and unload models; the others hand requests on to it. Requests for inference go to a model
// server that has the model. Pods reach each other at the port that the NetworkPolicy of the manager opens for that.
//
// It knows no TLS, makes no metrics, and forwards single requests only, no streams.
package instance
