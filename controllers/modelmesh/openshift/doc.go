// Package openshift makes the account, storage-config, certificates and bindings around a served namespace, and for each
// InferenceService whose runtime asks for it a Route, or elsewhere an HTTPRoute or an Ingress. On Open Data Hub a second controller did
// this; what that one made is taken over.
//
// All decisions are functions of Inputs, see objects and publish.
package openshift
