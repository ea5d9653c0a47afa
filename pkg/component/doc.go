// Package component is the socket of the program: a Component describes a product area, and Setup registers the
// webhooks of all and starts the controllers of the enabled ones, as soon as the kinds they require are served.
//
// A component that requires kinds runs under supervision. Its controllers are built when the kinds appear, stopped
// when one of them goes, and built again when it returns, all without a restart of the process.
package component
