// Package modelregistry decides about ModelRegistry and Catalog objects at admission, and converts ModelRegistry objects
// between their versions.
//
// The rules are pure functions from the object, the one before it, and what the settings and the cluster say; the controller
// calls the same ones where webhooks are off. Objects are defaulted as decoded JSON and answered with a patch of what
// changed, so that fields which this program does not know survive. Objects that are being deleted pass as they are: their
// end must not depend on rules.
package modelregistry
