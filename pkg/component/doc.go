// Package component registers the components with the manager: the webhooks of all components, and the controllers of the enabled ones.
//
// The controllers of a component that requires kinds are added on the leader when the kinds are served. When one of the kinds is removed,
// the manager returns ErrAPIRemoved, and the program runs again in the same process.
package component
