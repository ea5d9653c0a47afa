// Package modelmesh serves runtimes of ModelMesh: in every enabled namespace one Deployment for each multi-model runtime, the
// Service in front of all of them, and what their pods read.
//
// One controller looks at one namespace at a time: it reads the runtimes, the models and the settings from memory, builds what
// there has to be by pure functions (build_*.go), and hands it to pkg/apply. A runtime that cannot be served holds up no other.
// The models themselves are the business of package models, what only OpenShift has of package companion; both share with this
// one what is in Shared.
package modelmesh
