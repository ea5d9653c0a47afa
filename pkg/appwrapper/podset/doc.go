// Package podset finds the pods in objects of any kind: by a path that the user gives, or for known kinds by itself. The
// webhook and the controller of AppWrapper must agree on this, so all of it is here, and all of it is pure.
//
// Paths start with the word "template", which stands for the object, and continue with .field and [index]. There is no
// quoting, so fields with a dot or a bracket in their name cannot be reached.
package podset
