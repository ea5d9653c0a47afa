// Package component is the socket of the program: a Component describes a product area, and Setup registers the
// webhooks of all and starts the controllers of the enabled ones, as soon as the kinds they require are served.
//
// A component that requires kinds starts late: its controllers are set up, on the replica that leads, when the kinds are served.
// When one of them goes, the manager ends with ErrGone, to be started again.
package component
