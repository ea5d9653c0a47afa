// Package podset finds the pod templates in objects of any kind: by the path of a declared pod set, or inferred for known kinds. The webhook
// and the controller of AppWrappers use it. No function has state or accesses the cluster.
//
// Paths start with the word "template", which denotes the object, and continue with .field and [index]. They cannot contain fields with a dot or
// a bracket in the name.
package podset
