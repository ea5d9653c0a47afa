// Package instance runs the fake routing layer in pods: one instance in container `mm` of each pod. It reads the environment and
// the files that the manager renders for that container.
//
// The instances of a namespace register in etcd and elect a leader. The leader runs a [modelmesh.Layer] and requests the adapters
// of all pods to load and unload models; the other instances forward their requests to it. Inference requests are sent to a
// model server that has loaded the model. Pods connect to each other on the port that the NetworkPolicy of the manager opens.
//
// It supports neither TLS nor metrics, and forwards unary requests only.
package instance
