// Package resources builds the objects of ModelMesh in a namespace: pure functions of RuntimeInputs, what one runtime depends on, and of
// NamespaceInputs, what all runtimes of a namespace have in common. A file is named after what it builds.
package resources
