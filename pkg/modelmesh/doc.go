// Package modelmesh holds the rules that controllers and webhooks of ModelMesh share: the labels by which the mesh assigns models to
// runtimes, the identity of models, and the validation, endpoints and autoscaling of runtimes. All functions are pure.
package modelmesh
