// Package openshift makes the account, storage-config, certificates and bindings around a served namespace, and a Route for each
// InferenceService whose runtime asks for one. On Open Data Hub a second controller did this; what that one made is taken over.
//
// All decisions are functions of Inputs, see objects and publish.
package openshift
