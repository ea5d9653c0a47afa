// Package companion makes what stands beside the model mesh of a namespace: the account of its pods with what its sidecar needs to
// know callers, the storage entries of data connections, what lets a Prometheus in, and a Route for each InferenceService that asks for one. On
// Open Data Hub a second controller did this; what that one made is taken over.
//
// All decisions are functions of Inputs, see objects and publish.
package companion
