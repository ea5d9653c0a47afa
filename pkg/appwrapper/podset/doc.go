// Package podset finds the pod templates in objects of any kind: by the path of a declared pod set, or inferred for known kinds. Webhook and
// controller of AppWrapper share it, and all functions are pure.
//
// Paths start with the word "template", which denotes the object, and continue with .field and [index]. Fields with a dot or a bracket in
// their name cannot be addressed.
package podset
