// Package resources holds the builders that more than one component uses for
// the objects it makes. All of them are pure.
package resources
